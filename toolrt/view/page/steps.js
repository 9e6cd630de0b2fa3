// Steps as rows, a column for each task.  Only the rows in view exist.
toolrt.StepsView = class StepsView {
  constructor(run, side, app) {
    this.run = run;
    this.side = side;
    this.app = app;
    this.rowHeight = 26;
    this.zoomed = false;
    this.fold = new toolrt.Fold();
    this.overscan = 6;
    const { element } = toolrt;
    this.heads = element("div", { class: "heads", role: "row" });
    this.rows = element("div", { class: "rows", role: "presentation" });
    this.shown = new toolrt.Rows(this.rows, (moment) => this.row(moment));
    this.overlay = toolrt.svg("svg", { class: "overlay", "aria-hidden": "true" });
    this.sheet = element("div", { class: "sheet", role: "presentation" }, this.heads, this.rows, this.overlay);
    this.scroll = element("div", {
      class: "scroll steps",
      tabindex: 0,
      role: "grid",
      "aria-label": `${run.name}: steps, one column for each task`,
      "aria-rowcount": run.length + 1,
      "aria-colcount": run.columns.length + 1,
      "aria-readonly": true,
      "aria-activedescendant": `here-${side}`,
    }, this.sheet);
    this.draw = toolrt.oncePerFrame(() => this.drawNow());
    this.scroll.addEventListener("scroll", this.draw, { passive: true });
    this.rows.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) app.goTo(Number(row.dataset.moment));
    });
    this.size = new ResizeObserver(this.draw);
    this.size.observe(this.scroll);
  }

  zoom(factor) {
    const middle = (this.scroll.scrollTop + this.scroll.clientHeight / 2) / this.rowHeight;
    this.zoomed = true;
    this.rowHeight = factor === 0 ? this.fitting() : Math.min(40, Math.max(3, this.rowHeight * factor));
    this.drawNow();
    this.scroll.scrollTop = middle * this.rowHeight - this.scroll.clientHeight / 2;
    this.draw();
  }

  fitting() {
    return Math.min(this.tall, Math.max(3, (this.scroll.clientHeight - this.head) / Math.max(1, this.run.length)));
  }

  layout() {
    this.left = this.run.hasTime ? 128 : 56;
    const all = this.scroll.clientWidth - this.left;
    this.columnWidth = Math.max(this.app.narrow() || this.app.runs.length > 1 ? 104 : 150, Math.floor(all / Math.max(1, this.run.columns.length)));
    const width = this.left + this.columnWidth * this.run.columns.length;
    const dense = this.columnWidth < 150;
    this.gap = dense ? 14 : 20;
    this.font = `${dense ? 12 : 14}px system-ui, sans-serif`;
    // In pixels, about: two lines where the longest text may not fit in one.
    const room = this.columnWidth - this.gap - (dense ? 13 : 19);
    this.tall = this.run.longest * (dense ? 6 : 7) > room ? (dense ? 32 : 40) : 26;
    if (!this.zoomed) this.rowHeight = this.tall;
    if (this.measured !== this.columnWidth) {
      this.measured = this.columnWidth;
      const font = `600 ${dense ? 12 : 14}px system-ui, sans-serif`;
      const folds = this.run.columns.some((title) => this.fold.width(title, font) > this.columnWidth - 14);
      this.head = folds ? (dense ? 34 : 42) : 28;
    }
    this.sheet.style.width = `${width}px`;
    this.sheet.style.height = `${this.head + this.run.length * this.rowHeight}px`;
    this.rows.style.top = `${this.head}px`;
    this.heads.style.height = `${this.head}px`;
    this.width = width;
    this.sheet.classList.toggle("dense", dense);
  }

  show(moment) {
    if (this.head === undefined) this.layout();
    const top = this.head + moment * this.rowHeight;
    const view = this.scroll;
    if (top < view.scrollTop + this.head + this.rowHeight) view.scrollTop = top - this.head - 2 * this.rowHeight;
    else if (top + 2 * this.rowHeight > view.scrollTop + view.clientHeight) view.scrollTop = top + 3 * this.rowHeight - view.clientHeight;
    if (moment < this.run.length) {
      const left = this.left + this.run.columnAt(moment) * this.columnWidth;
      if (left - this.left < view.scrollLeft) view.scrollLeft = left - this.left;
      else if (left + this.columnWidth > view.scrollLeft + view.clientWidth) view.scrollLeft = left + this.columnWidth - view.clientWidth;
    }
    this.draw();
  }

  drawNow() {
    if (!this.scroll.isConnected || this.scroll.clientHeight === 0) return;
    this.layout();
    const view = this.scroll;
    const first = Math.max(0, Math.floor((view.scrollTop - this.head) / this.rowHeight) - this.overscan);
    const last = Math.min(this.run.length, Math.ceil((view.scrollTop + view.clientHeight) / this.rowHeight) + this.overscan);
    const size = `${this.rowHeight} ${this.columnWidth} ${this.left}`;
    this.drawHeads(size);
    const now = this.app.momentOf(this.side);
    this.shown.show(
      first, last, (moment) => `${size} ${this.app.marksOf(this.side, moment).words}`,
      (moment) => Math.sign(moment - now), (row, place) => this.mark(row, place),
    );
    this.drawArrows(first, last);
    this.app.drawn += 1;
  }

  // Says of a row whether it is before the present step, that step (0) or after it.
  mark(row, place) {
    row.classList.toggle("here", place === 0);
    row.classList.toggle("later", place > 0);
    row.setAttribute("aria-selected", String(place === 0));
    if (place === 0) row.id = `here-${this.side}`;
    else row.removeAttribute("id");
  }

  drawHeads(size) {
    const { element, placed } = toolrt;
    const from = Math.max(0, Math.floor((this.scroll.scrollLeft - this.left) / this.columnWidth));
    const to = Math.min(this.run.columns.length, from + Math.ceil(this.scroll.clientWidth / this.columnWidth) + 2);
    if (this.headLooks === `${size} ${from} ${to}`) return;
    this.headLooks = `${size} ${from} ${to}`;
    const heads = [placed(element("div", { class: "number", role: "columnheader" }, this.run.hasSteps ? "step" : "event"), { left: 0, width: 52 })];
    if (this.run.hasTime) heads.push(placed(element("div", { class: "number", role: "columnheader" }, "time"), { left: 52, width: 76 }));
    for (let column = from; column < to; column += 1) {
      heads.push(placed(
        element("div", { role: "columnheader", "aria-colindex": column + 2, title: this.run.columns[column] }, this.run.columns[column]),
        { left: this.left + column * this.columnWidth, width: this.columnWidth, height: this.head },
      ));
    }
    this.heads.replaceChildren(...heads);
  }

  row(moment) {
    const { element, placed } = toolrt;
    const run = this.run;
    const marks = this.app.marksOf(this.side, moment);
    const classes = ["row"];
    if (run.preempting.has(moment)) classes.push("preempts");
    if (marks.race) classes.push("race");
    if (marks.parts) classes.push("parts");
    const tall = this.rowHeight >= 15;
    const wide = this.columnWidth >= 190;
    const tags = [];
    if (tall && marks.parts) tags.push(element("span", { class: "tag parts" }, wide ? "first difference" : "≠"));
    if (tall && marks.race) tags.push(element("span", { class: "tag race" }, wide ? marks.race : marks.race === "race: first" ? "R1" : "R2"));
    const preempts = run.preempting.has(moment) ? "> " : "";
    const line = this.columnWidth < 150 ? 14 : 17;
    const lines = Math.max(1, Math.floor((this.rowHeight - 4) / line));
    const words = run.wordsAt(moment);
    const column = run.columnAt(moment);
    const made = element(
      "div",
      {
        class: classes.join(" "),
        role: "row",
        "aria-rowindex": moment + 2,
        "data-moment": moment,
      },
      placed(element("div", { class: "number", role: "rowheader" }, tall ? String(moment) : ""), { left: 0, width: 52 }),
      run.hasTime ? placed(element("div", { class: "number", role: "gridcell" }, tall ? toolrt.seconds(run.timeAt(moment)) : ""), { left: 52, width: 76 }) : null,
      placed(
        element(
          "div",
          { class: "cell", role: "gridcell", "aria-colindex": column + 2, title: words, "aria-label": `${run.nameAt(moment)}: ${marks.words}${preempts ? "preempts; " : ""}${words}` },
          tags, tall ? this.folded(preempts, words, lines, tags.length * (wide ? 92 : 26)) : "",
        ),
        { left: this.left + column * this.columnWidth, width: this.columnWidth - this.gap - 2 },
      ),
    );
    const cell = made.lastChild;
    if (lines > 1) {
      // The lines stand in the middle of the row, however many there are.
      cell.classList.add("folds");
      cell.style.lineHeight = `${line}px`;
    }
    placed(made, { top: moment * this.rowHeight, height: this.rowHeight });
    made.style.lineHeight = `${this.rowHeight}px`;
    return made;
  }

  // A cell ends with a whole word.  What a step only ran from may shrink to the line's number, and an access to its values.
  folded(preempts, words, lines, taken) {
    const place = /^runs from (.+):(\d+)$/.exec(words);
    const values = /^(?:reads ([^,]+ = [^,]+)|(?:reads\+)?writes ([^,]+ -> [^,]+))$/.exec(words);
    const shorter = place ? [`${place[1]}:${place[2]}`, `line ${place[2]}`] : values ? [values[1] || values[2]] : [];
    const margin = this.gap + (this.columnWidth < 150 ? 13 : 19);
    const text = this.fold.first([words, ...shorter].map((each) => preempts + each), this.font, this.columnWidth - margin, lines, taken);
    // An arrow of two letters is not torn apart.
    return text.split(" -> ").flatMap((part, place) => (place ? [" ", toolrt.element("span", { class: "to" }, "->"), ` ${part}`] : [part]));
  }

  drawArrows(first, last) {
    const drawn = [];
    const overlay = this.overlay;
    const want = this.app.arrows;
    const seen = new Set();
    const add = (edge) => {
      if (seen.has(edge) || drawn.length > 600) return;
      seen.add(edge);
      const kind = edge.race && this.app.isShownRace(this.side, edge) ? "race" : edge.wakes ? "wakes" : "touches";
      drawn.push(...this.arrow(edge.before, edge.after, kind));
    };
    if (want === "here") {
      const here = this.app.momentOf(this.side);
      for (const edge of this.run.edgesTo.get(here) || []) add(edge);
      for (const edge of this.run.edgesFrom.get(here) || []) add(edge);
    } else if (want === "all") {
      for (let moment = first; moment < last; moment += 1) {
        for (const edge of this.run.edgesTo.get(moment) || []) add(edge);
        for (const edge of this.run.edgesFrom.get(moment) || []) add(edge);
      }
    }
    const race = this.app.raceOf(this.side);
    if (race) drawn.push(...this.arrow(race[0], race[1], "race"));
    if (!drawn.length && !overlay.firstChild) return;
    // As high as what is in view: a picture as high as ten thousand rows takes long to paint.
    const top = first * this.rowHeight;
    toolrt.placed(overlay, { left: 0, top: this.head + top });
    overlay.setAttribute("viewBox", `0 ${top} ${this.width} ${Math.max(1, (last - first) * this.rowHeight)}`);
    overlay.setAttribute("width", this.width);
    overlay.setAttribute("height", Math.max(1, (last - first) * this.rowHeight));
    overlay.replaceChildren(...drawn);
  }

  // From the side of one cell to that of the other which faces it; between columns there is room for it.
  arrow(before, after, kind) {
    const [one, other] = [this.run.columnAt(before), this.run.columnAt(after)];
    const right = other >= one;
    const from = { x: this.edge(one, right), y: (before + 0.62) * this.rowHeight };
    const to = { x: this.edge(other, one === other || !right), y: (after + 0.38) * this.rowHeight };
    return toolrt.arrow(from, to, kind, right ? 1 : -1, one === other ? -1 : right ? 1 : -1);
  }

  edge(column, right) {
    return this.left + column * this.columnWidth + (right ? this.columnWidth - this.gap : 2);
  }

  close() {
    this.size.disconnect();
  }
};
