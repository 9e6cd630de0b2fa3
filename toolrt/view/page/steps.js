// Steps as rows, a column for each task.  Only the rows in view exist.
toolrt.StepsView = class StepsView {
  constructor(run, side, app) {
    this.run = run;
    this.side = side;
    this.app = app;
    this.shown = app.shown[side];
    this.rowHeight = 26;
    this.zoomed = false;
    this.fold = new toolrt.Fold();
    this.overscan = 6;
    const { element } = toolrt;
    this.heads = element("div", { class: "heads", role: "row" });
    this.rows = element("div", { class: "rows", role: "presentation" });
    this.made = new toolrt.Rows(this.rows, (row) => this.row(row));
    this.overlay = toolrt.svg("svg", { class: "overlay", "aria-hidden": "true" });
    this.sheet = element("div", { class: "sheet", role: "presentation" }, this.heads, this.rows, this.overlay);
    this.scroll = element("div", {
      class: "scroll steps",
      tabindex: 0,
      role: "grid",
      "aria-label": `${run.name}: steps, one column for each task`,
      "aria-colcount": run.columns.length + 1,
      "aria-readonly": true,
      "aria-activedescendant": `here-${side}`,
    }, this.sheet);
    this.map = new toolrt.Minimap(this);
    this.draw = toolrt.oncePerFrame(() => this.drawNow());
    this.scroll.addEventListener("scroll", this.draw, { passive: true });
    this.rows.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (!row) return;
      this.scroll.focus({ preventScroll: true });
      app.goTo(Number(row.dataset.moment));
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
    return Math.min(this.tall, Math.max(3, (this.scroll.clientHeight - this.head) / Math.max(1, this.shown.length)));
  }

  // ---- sizes

  layout() {
    const asked = `${this.scroll.clientWidth} ${this.shown.version} ${this.app.narrow()}`;
    if (this.asked !== asked) {
      this.asked = asked;
      this.measure();
    }
    if (!this.zoomed) this.rowHeight = this.tall;
    this.sheet.style.width = `${this.width + this.map.width}px`;
    this.sheet.style.height = `${this.head + this.shown.length * this.rowHeight}px`;
    this.rows.style.top = `${this.head}px`;
    this.heads.style.height = `${this.head}px`;
  }

  // Columns have the width that their texts ask for, as far as there is room; what is left over is shared out.
  measure() {
    const { run, shown } = this;
    const count = run.columns.length;
    this.watchLeft = run.hasTime ? 128 : 52;
    this.left = (run.hasTime ? 128 : 56) + (this.app.watching ? StepsView.WATCHED : 0);
    const broad = this.scroll.clientWidth - this.map.width;
    const room = broad - this.left - shown.folded.size * StepsView.FOLDED;
    const open = Math.max(1, count - shown.folded.size);
    const dense = room / open < 150;
    this.dense = dense;
    this.gap = dense ? 14 : 20;
    this.margin = this.gap + (dense ? 13 : 19);
    this.font = `${dense ? 12 : 14}px system-ui, sans-serif`;
    const titled = `600 ${this.font}`;
    const letter = dense ? 6 : 7;
    // Of each column what it needs, for a short text in two lines, and what it would like, for the whole text in one.
    const sizes = run.columns.map((title, column) => {
      if (shown.folded.has(column)) return { needs: StepsView.FOLDED, likes: StepsView.FOLDED };
      const { whole, brief } = run.longest[column];
      const head = Math.max(...title.split(" ").map((word) => this.fold.width(word, titled))) + 16;
      const needs = Math.min(dense ? 150 : 200, Math.max(dense ? 88 : 110, head, (brief / 2 + 3) * letter + this.margin));
      return { needs, likes: Math.max(needs, Math.min(420, whole * letter + this.margin)) };
    });
    const sum = (what) => sizes.reduce((all, each) => all + each[what], 0);
    const [all, needed, liked] = [broad - this.left, sum("needs"), sum("likes")];
    const share = Math.max(0, Math.min(1, (all - needed) / Math.max(1, liked - needed)));
    const spare = Math.max(0, (all - liked) / open);
    this.widths = sizes.map(({ needs, likes }, column) => Math.floor(needs + share * (likes - needs) + (shown.folded.has(column) ? 0 : spare)));
    this.lefts = [];
    let left = this.left;
    for (const width of this.widths) {
      this.lefts.push(left);
      left += width;
    }
    this.width = left;
    // In pixels, about: two lines where the longest text may not fit in one.
    this.tall = run.longest.some(({ whole }, column) => !shown.folded.has(column) && whole * letter * 1.1 > this.widths[column] - this.margin) ? (dense ? 32 : 40) : 26;
    const folds = run.columns.some((title, column) => !shown.folded.has(column) && this.fold.width(title, titled) > this.widths[column] - 14);
    this.head = folds ? (dense ? 34 : 42) : 28;
    this.sheet.classList.toggle("dense", dense);
    this.scroll.setAttribute("aria-rowcount", shown.length + 1);
    this.looks = `${this.widths.join(" ")} ${this.head} ${this.left} ${this.app.watching ? this.app.watching.text : ""}`;
  }

  show(moment) {
    if (this.asked === undefined) this.layout();
    if (moment < this.run.length && !this.shown.has(moment)) this.shown.open(moment);
    const top = this.head + this.shown.rowOf(moment) * this.rowHeight;
    const view = this.scroll;
    if (top < view.scrollTop + this.head + this.rowHeight) view.scrollTop = top - this.head - 2 * this.rowHeight;
    else if (top + 2 * this.rowHeight > view.scrollTop + view.clientHeight) view.scrollTop = top + 3 * this.rowHeight - view.clientHeight;
    if (moment < this.run.length) {
      const column = this.run.columnAt(moment);
      const [left, right] = [this.lefts[column] - this.left, this.lefts[column] + this.widths[column]];
      if (left < view.scrollLeft) view.scrollLeft = left;
      else if (right > view.scrollLeft + view.clientWidth - this.map.width) view.scrollLeft = right - view.clientWidth + this.map.width;
    }
    this.draw();
  }

  // ---- drawing

  drawNow() {
    if (!this.scroll.isConnected || this.scroll.clientHeight === 0) return;
    this.layout();
    const view = this.scroll;
    const first = Math.max(0, Math.floor((view.scrollTop - this.head) / this.rowHeight) - this.overscan);
    const last = Math.min(this.shown.length, Math.ceil((view.scrollTop + view.clientHeight) / this.rowHeight) + this.overscan);
    this.drawHeads();
    const now = this.app.momentOf(this.side);
    const size = `${this.rowHeight} ${this.looks}`;
    const momentOf = (row) => {
      const at = this.shown.at(row);
      return typeof at === "number" ? at : at[0];
    };
    this.made.show(
      first, last, (row) => `${this.shown.at(row)} ${size} ${this.app.marksOf(this.side, momentOf(row)).words}`,
      (row) => Math.sign(momentOf(row) - now), (row, place) => this.mark(row, place),
    );
    this.drawArrows(first, last);
    this.map.draw();
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

  drawHeads() {
    const { element, placed } = toolrt;
    const right = this.scroll.scrollLeft + this.scroll.clientWidth;
    const seen = this.run.columns.map((_, column) => column).filter((column) => this.lefts[column] < right && this.lefts[column] + this.widths[column] > this.scroll.scrollLeft);
    // What is drawn again loses the focus, so only what has changed is.
    const looks = `${this.looks} ${seen[0]} ${seen.length}`;
    if (this.headLooks === looks) return;
    this.headLooks = looks;
    const heads = [placed(element("div", { class: "number", role: "columnheader" }, this.run.hasSteps ? "step" : "event"), { left: 0, width: 52 })];
    if (this.run.hasTime) heads.push(placed(element("div", { class: "number", role: "columnheader" }, "time"), { left: 52, width: 76 }));
    if (this.app.watching) heads.push(placed(element("div", { class: "number", role: "columnheader", title: this.app.watching.text }, "watch"), { left: this.watchLeft, width: StepsView.WATCHED }));
    for (const column of seen) {
      const title = this.run.columns[column];
      const folded = this.shown.folded.has(column);
      heads.push(placed(
        element("div", { role: "columnheader", class: folded ? "folded" : null, "aria-colindex": column + 2 }, element(
          "button", {
            type: "button", "aria-expanded": String(!folded), "aria-label": folded ? `${title}, folded` : null,
            title: `${title}: ${folded ? "unfold" : "fold"} this column (c)`, onclick: () => this.foldColumn(column),
          }, folded ? "⋮" : title,
        )),
        { left: this.lefts[column], width: this.widths[column], height: this.head },
      ));
    }
    const focused = [...this.heads.children].indexOf(document.activeElement && document.activeElement.parentElement);
    this.heads.replaceChildren(...heads);
    if (focused >= 0 && heads[focused]) heads[focused].firstElementChild.focus();
  }

  foldColumn(column) {
    this.shown.foldColumn(column);
    this.app.refresh();
    document.getElementById("said").textContent = `${this.run.columns[column]}: ${this.shown.folded.has(column) ? "folded" : "unfolded"}`;
  }

  row(place) {
    const { element, placed } = toolrt;
    const run = this.run;
    const moment = this.shown.at(place);
    if (typeof moment !== "number") return this.gapRow(place, moment);
    const marks = this.app.marksOf(this.side, moment);
    const classes = ["row"];
    if (run.preempting.has(moment)) classes.push("preempts");
    if (marks.race) classes.push("race");
    if (marks.parts) classes.push("parts");
    const column = run.columnAt(moment);
    const width = this.widths[column];
    const tall = this.rowHeight >= 15 && !this.shown.folded.has(column);
    const wide = width >= 260;
    const tags = [];
    if (tall && marks.parts) tags.push(element("span", { class: "tag parts" }, wide ? "first difference" : "≠"));
    if (tall && marks.old) tags.push(element("span", { class: "tag old" }, wide ? "from an old read" : "old"));
    if (tall && marks.race) tags.push(element("span", { class: "tag race" }, wide ? marks.race : marks.race === "race: first" ? "R1" : "R2"));
    const preempts = run.preempting.has(moment) ? "> " : "";
    const line = this.dense ? 14 : 17;
    const lines = Math.max(1, Math.floor((this.rowHeight - 4) / line));
    const words = run.wordsAt(moment);
    const made = element(
      "div",
      {
        class: classes.join(" "),
        role: "row",
        "aria-rowindex": place + 2,
        "data-moment": moment,
      },
      placed(element("div", { class: "number", role: "rowheader" }, this.rowHeight >= 15 ? String(moment) : ""), { left: 0, width: 52 }),
      run.hasTime ? placed(element("div", { class: "number", role: "gridcell" }, this.rowHeight >= 15 ? toolrt.seconds(run.timeAt(moment)) : ""), { left: 52, width: 76 }) : null,
      this.app.watching ? this.watched(moment) : null,
      placed(
        element(
          "div",
          { class: "cell", role: "gridcell", "aria-colindex": column + 2, title: words, "aria-label": `${run.nameAt(moment)}: ${marks.words}${preempts ? "preempts; " : ""}${words}` },
          tags, tall ? this.folding(preempts, words, width, lines, tags.length * (wide ? 92 : 22)) : "",
        ),
        { left: this.lefts[column], width: this.right(column) - this.lefts[column] - 2 },
      ),
    );
    const cell = made.lastChild;
    if (lines > 1) {
      // The lines stand in the middle of the row, however many there are.
      cell.classList.add("folds");
      cell.style.lineHeight = `${line}px`;
    }
    return this.standing(made, place);
  }

  watched(moment) {
    const { text, step } = this.app.watchedAt(this.side, moment);
    const classes = `number watched${step === moment ? " changes" : ""}`;
    return toolrt.placed(
      toolrt.element("div", { class: classes, role: "gridcell", title: `${this.app.watching.text}: ${text}` }, this.rowHeight >= 15 ? text : ""),
      { left: this.watchLeft, width: StepsView.WATCHED },
    );
  }

  // Steps that are left out: one row, which unfolds.
  gapRow(place, [first, last]) {
    const { element, placed } = toolrt;
    const count = last - first + 1;
    const steps = toolrt.count(count, this.run.hasSteps ? "step" : "event");
    const told = this.rowHeight < 15 ? "" : element("button", { type: "button", class: "go", title: `Show ${first} to ${last}` }, `${steps} left out`);
    return this.standing(element(
      "div", { class: "row gap", role: "row", "aria-rowindex": place + 2, "data-moment": first },
      placed(element("div", { class: "number", role: "rowheader", "aria-hidden": "true" }, this.rowHeight < 15 ? "" : "⋯"), { left: 0, width: 52 }),
      placed(element("div", { role: "gridcell" }, told), { left: this.left, width: Math.max(60, this.width - this.left) }),
    ), place);
  }

  standing(made, place) {
    toolrt.placed(made, { top: place * this.rowHeight, height: this.rowHeight });
    made.style.lineHeight = `${this.rowHeight}px`;
    return made;
  }

  // A cell ends with a whole word.  What a step only ran from may shrink to the line's number, and an access to its values.
  folding(preempts, words, width, lines, taken) {
    const place = /^runs from .+:(\d+)$/.exec(words);
    const brief = toolrt.Run.brief(words);
    // `account.balance 100 -> 50` may shrink to `balance 100 -> 50`, and that to `100 -> 50`.
    const last = brief.replace(/^[^\s,]+\.(?=\w+ )/u, "");
    const value = last.replace(/^\w+ (?=(?:= |\S+ -> ))/u, "");
    const shorter = place ? [brief, `line ${place[1]}`] : [/, (?:reads|writes)/.test(words) ? `${brief} …` : brief, brief, last, value];
    const text = this.fold.first([words, ...shorter].map((each) => preempts + each), this.font, width - this.margin, lines, taken);
    // An arrow of two letters is not torn apart.
    return text.split(" -> ").flatMap((part, at) => (at ? [" ", toolrt.element("span", { class: "to" }, "->"), ` ${part}`] : [part]));
  }

  // ---- arrows

  drawArrows(first, last) {
    const drawn = [];
    const overlay = this.overlay;
    const want = this.app.arrows;
    const seen = new Set();
    const race = this.app.raceOf(this.side);
    const add = (edge) => {
      // That a task's steps follow each other is plain; and what is left out has no arrow.
      if (seen.has(edge) || drawn.length > 600 || this.run.columnAt(edge.before) === this.run.columnAt(edge.after)) return;
      if (!this.shown.has(edge.before) || !this.shown.has(edge.after)) return;
      seen.add(edge);
      if (race && race[0] === edge.before && race[1] === edge.after) return;
      drawn.push(...this.arrow(edge.before, edge.after, edge.wakes ? "wakes" : "touches"));
    };
    if (want === "here") {
      const here = this.app.momentOf(this.side);
      for (const edge of this.run.edgesTo.get(here) || []) add(edge);
      for (const edge of this.run.edgesFrom.get(here) || []) add(edge);
    } else if (want === "all") {
      for (let row = first; row < last; row += 1) {
        const moment = this.shown.at(row);
        for (const edge of this.run.edgesTo.get(moment) || []) add(edge);
        for (const edge of this.run.edgesFrom.get(moment) || []) add(edge);
      }
    }
    if (race && race.every((moment) => this.shown.has(moment))) drawn.push(...this.arrow(race[0], race[1], "race"));
    if (!drawn.length && !overlay.firstChild) return;
    // As high as what is in view: a picture as high as ten thousand rows takes long to paint.
    const top = first * this.rowHeight;
    toolrt.placed(overlay, { left: 0, top: this.head + top });
    overlay.setAttribute("viewBox", `0 ${top} ${this.width} ${Math.max(1, (last - first) * this.rowHeight)}`);
    overlay.setAttribute("width", this.width);
    overlay.setAttribute("height", Math.max(1, (last - first) * this.rowHeight));
    overlay.replaceChildren(...drawn);
  }

  // Straight lines: out of the cell's side, down between two columns, and along the other step's row, where no other cell
  // stands.  So no arrow crosses a cell.
  arrow(before, after, kind) {
    const [one, other] = [this.run.columnAt(before), this.run.columnAt(after)];
    const way = other > one ? 1 : other < one ? -1 : 0;
    const from = { x: way < 0 ? this.lefts[one] + 2 : this.right(one), y: (this.shown.rowOf(before) + 0.62) * this.rowHeight };
    const to = { x: way > 0 ? this.lefts[other] + 2 : this.right(other), y: (this.shown.rowOf(after) + (kind === "race" ? 0.5 : 0.38)) * this.rowHeight };
    const down = from.x + (way || 1) * (kind === "race" ? 0.3 : 0.55) * this.gap;
    const tip = way || -1;
    return [
      toolrt.svg("path", { class: `arrow ${kind}`, d: `M${from.x} ${from.y}H${down}V${to.y}H${to.x - tip * 6}` }),
      toolrt.svg("polygon", { class: `head ${kind}`, points: `${to.x},${to.y} ${to.x - tip * 8},${to.y - 4} ${to.x - tip * 8},${to.y + 4}` }),
    ];
  }

  // Where the cells of a column end; between columns there is room for arrows.
  right(column) {
    return this.lefts[column] + this.widths[column] - (this.shown.folded.has(column) ? 12 : this.gap);
  }

  close() {
    this.size.disconnect();
  }
};

// Pixels of a column that is folded.
toolrt.StepsView.FOLDED = 30;

// Pixels of the values of a watch expression.
toolrt.StepsView.WATCHED = 60;
