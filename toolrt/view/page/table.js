// The same as a table: what a screen reader, a search and a copy want.  A hundred rows at a time.
toolrt.TableView = class TableView {
  constructor(run, side, app) {
    this.run = run;
    this.side = side;
    this.app = app;
    this.size = 100;
    this.page = 0;
    const { element } = toolrt;
    this.scroll = element("div", { class: "scroll table", tabindex: 0, role: "region", "aria-label": `${run.name}: table of steps` });
    this.back = element("button", { type: "button", onclick: () => this.turn(-1) }, "Rows before");
    this.on = element("button", { type: "button", onclick: () => this.turn(1) }, "Rows after");
    this.where = element("span", {});
    this.pager = element("div", { class: "pager" }, this.back, this.on, this.where);
    this.draw = toolrt.oncePerFrame(() => this.drawNow());
  }

  turn(by) {
    const pages = Math.ceil(this.run.length / this.size);
    this.page = Math.min(pages - 1, Math.max(0, this.page + by));
    this.drawNow();
    this.scroll.scrollTop = 0;
  }

  zoom() {}

  show(moment) {
    const page = Math.floor(Math.min(moment, Math.max(0, this.run.length - 1)) / this.size);
    if (page !== this.page) this.page = page;
    this.drawNow();
    const row = this.scroll.querySelector('[aria-current="true"]');
    if (row) row.scrollIntoView({ block: "nearest" });
  }

  drawNow() {
    const { element } = toolrt;
    const run = this.run;
    const first = this.page * this.size;
    const last = Math.min(run.length, first + this.size);
    const names = [run.hasSteps ? "Step" : "Event", ...(run.hasTime ? ["Time"] : []), "Task", ...(run.hasSteps ? ["Could run", "Touched"] : []), "What happened"];
    const rows = [];
    for (let moment = first; moment < last; moment += 1) {
      const marks = this.app.marksOf(this.side, moment);
      const touched = run.touchedAt(moment).map((each) => `${each.write ? "writes" : "reads"} ${each.resource}${each.value === null ? "" : ` = ${each.value}`}`);
      const told = run.seqsAt(moment).map((seq) => run.events.told[seq]);
      rows.push(element(
        "tr",
        { "aria-current": moment === this.app.momentOf(this.side) ? "true" : null, class: marks.parts ? "parts" : null, onclick: () => this.app.goTo(moment) },
        element("th", { scope: "row" }, String(moment)),
        run.hasTime ? element("td", {}, toolrt.seconds(run.timeAt(moment))) : null,
        element("td", { class: "task" }, run.nameAt(moment)),
        run.hasSteps ? element("td", {}, run.enabledAt(moment).join(", ")) : null,
        run.hasSteps ? element("td", {}, touched.join(", ") || "nothing") : null,
        element("td", {}, `${marks.words}${told.join("; ") || (touched.length ? "" : run.steps.done[moment])}`),
      ));
    }
    const shown = run.length ? `${first} to ${last - 1} of ${run.length}` : "nothing happened";
    this.scroll.replaceChildren(element("div", { class: "sheet" }, element(
      "table", {},
      element("caption", {}, `${run.name}: ${run.hasSteps ? "steps" : "events"} ${shown}`),
      element("thead", {}, element("tr", {}, names.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, rows),
    )));
    this.pager.hidden = run.length <= this.size;
    this.back.disabled = this.page === 0;
    this.on.disabled = last >= run.length;
    this.where.textContent = shown;
    this.app.drawn += 1;
  }

  close() {}
};
