// A long schedule at a glance: its columns and steps, the race, and what of them is in view.  To press or to pull there
// scrolls.  The slider does as much for the keyboard and for a screen reader.
toolrt.Minimap = class Minimap {
  constructor(view) {
    const { element } = toolrt;
    this.view = view;
    this.canvas = element("canvas");
    this.frame = element("div", { class: "frame" });
    this.here = element("div", { class: "mark" });
    this.host = element("div", { class: "minimap", "aria-hidden": "true" }, this.canvas, this.frame, this.here);
    const go = (event) => {
      if (!(event.buttons & 1)) return;
      const { top, height } = this.host.getBoundingClientRect();
      const { scroll, rowHeight, shown } = view;
      scroll.scrollTop = ((event.clientY - top) / height) * shown.length * rowHeight - scroll.clientHeight / 2;
    };
    this.host.addEventListener("pointerdown", (event) => {
      this.host.setPointerCapture(event.pointerId);
      go(event);
    });
    this.host.addEventListener("pointermove", go);
  }

  // In pixels; a schedule that is soon scrolled through has none.
  get width() {
    return this.view.shown.length > 100 ? (this.view.app.narrow() ? 20 : 36) : 0;
  }

  draw() {
    const { view, width } = this;
    this.host.hidden = width === 0;
    if (!width) return;
    const { scroll, shown, head } = view;
    const height = Math.max(1, scroll.clientHeight - head);
    const looks = `${width} ${height} ${shown.version} ${view.app.raceOf(view.side)} ${document.documentElement.dataset.theme} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
    if (this.looks !== looks) {
      this.looks = looks;
      toolrt.placed(this.host, { top: scroll.offsetTop + head, right: scroll.offsetWidth - scroll.clientWidth, width, height });
      this.paint(width, height);
    }
    const row = height / shown.length;
    const inView = height / view.rowHeight;
    toolrt.placed(this.frame, { top: (scroll.scrollTop / view.rowHeight) * row, height: Math.max(4, inView * row) });
    toolrt.placed(this.here, { top: shown.rowOf(view.app.momentOf(view.side)) * row });
  }

  paint(width, height) {
    const { run, shown, side, app } = this.view;
    const scale = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * scale, height: height * scale });
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    const [wide, high] = [width / run.columns.length, height / shown.length];
    const race = new Set(app.raceOf(side) || []);
    const [plain, marked] = [getComputedStyle(this.host).color, getComputedStyle(this.here).color];
    for (let row = 0; row < shown.length; row += 1) {
      const moment = shown.at(row);
      if (typeof moment !== "number") continue;
      const touched = run.hasSteps && run.steps.touched[moment].length > 0;
      pen.fillStyle = plain;
      pen.globalAlpha = touched ? 0.8 : 0.3;
      // Many steps of one line add up to a darker one.
      pen.fillRect(run.columnAt(moment) * wide, row * high, Math.max(1.5, wide - 1), Math.max(0.3, high));
    }
    pen.globalAlpha = 1;
    pen.fillStyle = marked;
    for (const moment of race) pen.fillRect(0, shown.rowOf(moment) * high - 1, width, 2);
  }
};
