// The same as a table: what a screen reader, a search and a copy want.  A hundred rows at a time.
toolrt.TableView = class TableView {
  constructor(run, side, app) {
    this.run = run;
    this.side = side;
    this.app = app;
    this.size = 100;
    this.page = 0;
    this.rows = [];
    this.here = null;
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
    const row = this.rows[moment - page * this.size];
    if (!row) return;
    // Under the head, which stays in view.
    const [view, head, top, height] = [this.scroll, this.head.offsetHeight, row.offsetTop, row.offsetHeight];
    const [from, room] = [view.scrollTop, view.clientHeight];
    if (top < from + head) view.scrollTop = top - head;
    else if (top + height > from + room) view.scrollTop = top + height - room;
  }

  drawNow() {
    const marks = this.app.marked(this.side).join(" ");
    if (this.looks !== `${this.page} ${marks}`) {
      this.looks = `${this.page} ${marks}`;
      this.drawPage();
    }
    const here = this.rows[this.app.momentOf(this.side) - this.page * this.size] || null;
    if (this.here !== here) {
      if (this.here) this.here.removeAttribute("aria-current");
      if (here) here.setAttribute("aria-current", "true");
      this.here = here;
    }
    this.app.drawn += 1;
  }

  drawPage() {
    const { element } = toolrt;
    const run = this.run;
    const first = this.page * this.size;
    const last = Math.min(run.length, first + this.size);
    const names = [run.hasSteps ? "Step" : "Event", ...(run.hasTime ? ["Time"] : []), "Task", ...(run.hasSteps ? ["Could run", "Touched"] : []), "What happened"];
    this.rows = [];
    for (let moment = first; moment < last; moment += 1) this.rows.push(this.row(moment));
    this.here = null;
    const shown = run.length ? `${first} to ${last - 1} of ${run.length}` : "nothing happened";
    this.head = element("thead", {}, element("tr", {}, names.map((name) => element("th", { scope: "col", class: name === "Could run" ? "could" : null }, name))));
    const body = element("tbody", {}, this.rows);
    body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row) this.app.goTo(first + this.rows.indexOf(row));
    });
    this.scroll.replaceChildren(element("div", { class: "sheet" }, element(
      "table", {}, element("caption", {}, `${run.name}: ${run.hasSteps ? "steps" : "events"} ${shown}`), this.head, body,
    )));
    this.pager.hidden = run.length <= this.size;
    this.back.disabled = this.page === 0;
    this.on.disabled = last >= run.length;
    this.where.textContent = shown;
  }

  row(moment) {
    const { element } = toolrt;
    const run = this.run;
    const marks = this.app.marksOf(this.side, moment);
    const touched = run.touchedAt(moment).map((each) => `${each.write ? "writes" : "reads"} ${each.resource}${each.value === null ? "" : ` = ${each.value}`}`);
    const told = run.seqsAt(moment).map((seq) => run.events.told[seq]);
    return element(
      "tr",
      { class: marks.parts ? "parts" : null },
      element("th", { scope: "row" }, String(moment)),
      run.hasTime ? element("td", {}, toolrt.seconds(run.timeAt(moment))) : null,
      element("td", { class: "task" }, run.nameAt(moment)),
      run.hasSteps ? element("td", { class: "could" }, run.enabledAt(moment).join(", ")) : null,
      run.hasSteps ? element("td", {}, touched.join(", ") || "nothing") : null,
      element("td", {}, `${marks.words}${told.join("; ") || (touched.length ? "" : run.steps.done[moment])}`),
    );
  }

  close() {}
};
