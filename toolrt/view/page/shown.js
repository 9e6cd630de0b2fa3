// Which steps and columns of an execution the page shows.  What is left out stands as one row, or as a narrow column, and
// unfolds.
toolrt.Shown = class Shown {
  constructor(run, side, app) {
    this.run = run;
    this.side = side;
    this.app = app;
    this.folded = new Set();
    this.keep({ kind: "all", name: "" });
  }

  // What there is to choose from, by kind: tasks, variables and files of all runs.
  static choices(runs) {
    const some = (names) => [...new Set(names)].filter(Boolean).sort(Shown.order).slice(0, 300);
    return {
      task: some(runs.flatMap((run) => run.columns.map(Shown.taskOf))),
      resource: some(runs.flatMap((run) => [...run.resourceTouches.keys()].map((resource) => run.resources[resource]))),
      file: some(runs.flatMap((run) => [...Object.keys(run.details.sources), ...run.files.keys()])),
    };
  }

  static order(one, other) {
    return one.localeCompare(other, "en", { numeric: true });
  }

  static taskOf(title) {
    return title.split(" ")[0];
  }

  // Shows what the filter lets through: `kind` is "all", "touching", "task", "resource" or "file".
  keep(filter) {
    this.filter = filter;
    this.opened = new Set();
    this.folded.clear();
    if (filter.kind === "task") {
      this.run.columns.forEach((title, column) => {
        if (Shown.taskOf(title) !== filter.name) this.folded.add(column);
      });
    }
    this.build();
  }

  // Rows: a step is its number, steps that are left out are [first, last].  `rowAt` has the row of each step.
  build() {
    this.version = (this.version || 0) + 1;
    if (this.filter.kind === "all") {
      this.rows = null;
      return;
    }
    this.rows = [];
    this.rowAt = new Int32Array(this.run.length);
    let gap = null;
    for (let moment = 0; moment < this.run.length; moment += 1) {
      if (this.passes(moment) || this.opened.has(moment)) {
        gap = null;
        this.rows.push(moment);
      } else if (gap) gap[1] = moment;
      else this.rows.push(gap = [moment, moment]);
      this.rowAt[moment] = this.rows.length - 1;
    }
    // A single step has as much room as a row that stands for it.
    if (this.filter.kind === "touching") this.rows = this.rows.map((row) => (row[0] === row[1] ? row[0] ?? row : row));
  }

  passes(moment) {
    const { run, filter } = this;
    if (filter.kind === "task") return Shown.taskOf(run.columns[run.columnAt(moment)]) === filter.name;
    if (filter.kind === "resource") return run.hasSteps && run.steps.touched[moment].some((code) => run.resources[code >> 1] === filter.name);
    const seqs = run.seqsAt(moment);
    if (filter.kind === "file") {
      return run.placesAt(moment).some((place) => place.slice(0, place.lastIndexOf(":")) === filter.name)
        || seqs.some((seq) => run.events.fields[seq].file === filter.name);
    }
    return seqs.length > 0 || run.steps.touched[moment].length > 0 || this.app.marksOf(this.side, moment).words !== "";
  }

  get length() {
    return this.rows ? this.rows.length : this.run.length;
  }

  at(row) {
    return this.rows ? this.rows[row] : row;
  }

  rowOf(moment) {
    return this.rows ? this.rowAt[moment] : moment;
  }

  has(moment) {
    return moment < this.run.length && (!this.rows || typeof this.rows[this.rowAt[moment]] === "number");
  }

  // Shows the steps that were left out around one of them.
  open(moment) {
    const [first, last] = this.rows[this.rowAt[moment]];
    for (let each = first; each <= last; each += 1) this.opened.add(each);
    this.build();
  }

  foldColumn(column) {
    if (!this.folded.delete(column)) this.folded.add(column);
    this.version += 1;
  }
};
