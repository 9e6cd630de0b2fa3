// On paper stand the verdict and all steps in a table: the views show what fits on a screen.
toolrt.prints = function prints(app) {
  const table = document.getElementById("printed");
  const most = 2_000;
  window.addEventListener("beforeprint", () => {
    const { element } = toolrt;
    const parts = app.runs.map((run, side) => {
      const head = element("tr", {}, [run.hasSteps ? "step" : "event", "task", "what it did", "line"].map((text) => element("th", { scope: "col" }, text)));
      const rows = toolrt.range(Math.min(run.length, most)).map((moment) => element(
        "tr", { class: app.marksOf(side, moment).words ? "changed" : null },
        [moment, run.columns[run.columnAt(moment)], app.marksOf(side, moment).words + run.wordsAt(moment), run.placesAt(moment)[0] || ""].map((text) => element("td", {}, String(text))),
      ));
      const left = run.length > most ? element("tr", {}, element("td", { colspan: 4 }, `and ${(run.length - most).toLocaleString("en")} more`)) : null;
      return element("tbody", {}, element("tr", {}, element("th", { colspan: 4, scope: "rowgroup" }, run.name)), head, rows, left);
    });
    table.replaceChildren(...parts);
    const verdict = document.getElementById("verdict");
    if (verdict) verdict.open = true;
  });
  window.addEventListener("afterprint", () => table.replaceChildren());
};
