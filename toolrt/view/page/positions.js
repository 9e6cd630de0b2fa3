// A slider for each thing that is moved; what is shown was run before the page was made.
toolrt.Positions = class Positions {
  constructor({ axes, runs }) {
    const { element } = toolrt;
    this.axes = axes;
    this.runs = runs;
    this.at = axes.map(() => 0);
    this.moved = 0;
    this.before = null;
    this.byId = (id) => document.getElementById(id);
    this.byId("title").textContent = document.title;
    this.byId("summary").textContent = `${toolrt.count(runs.length, "position")}, each run beforehand; move a slider with ← →`;
    this.byId("theme").addEventListener("click", toolrt.nextTheme);
    this.sliders = axes.map(([name, places], axis) => element("input", { type: "range", id: `axis${axis}`, min: 0, max: places.length - 1, value: 0, oninput: (event) => this.move(axis, Number(event.target.value)) }));
    this.outputs = axes.map((_, axis) => element("output", { for: `axis${axis}` }));
    this.byId("axes").replaceChildren(...axes.flatMap(([name], axis) => [element("label", { for: `axis${axis}` }, name), this.sliders[axis], this.outputs[axis]]));
    this.draw();
  }

  // The number of the run at a position: the last axis moves fastest.
  number(at) {
    return this.axes.reduce((number, [, places], axis) => number * places.length + at[axis], 0);
  }

  move(axis, place) {
    this.before = this.runs[this.number(this.at)];
    this.at[axis] = place;
    this.moved = axis;
    this.draw();
  }

  draw() {
    const { element } = toolrt;
    const run = this.runs[this.number(this.at)];
    this.axes.forEach(([, places], axis) => {
      const place = places[this.at[axis]];
      this.outputs[axis].textContent = place;
      this.sliders[axis].setAttribute("aria-valuetext", place);
    });
    const hasBars = run.values.some(([, , number]) => number !== null);
    this.byId("along").textContent = hasBars ? `along ${this.axes[this.moved][0]}` : "";
    this.byId("values").replaceChildren(...run.values.map(([name, text, number]) => {
      const known = this.before && this.before.values.find(([each]) => each === name);
      const was = known && known[1] !== text ? known[1] : "";
      return element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, text), element("td", {}, was), element("td", {}, number === null ? null : this.bars(name)));
    }));
    this.byId("said").textContent = run.values.map(([name, text]) => `${name}: ${text}`).join(", ");
    const picture = this.byId("picture");
    picture.src = `data:image/svg+xml,${encodeURIComponent(run.picture)}`;
    picture.alt = `${document.title}, at ${this.axes.map(([name, places], axis) => `${name} ${places[this.at[axis]]}`).join(", ")}`;
  }

  // A value at every position of the slider that was moved last, the others left where they are.
  bars(name) {
    const places = this.axes[this.moved][1];
    const found = places.map((_, place) => {
      const at = this.at.map((each, axis) => (axis === this.moved ? place : each));
      const value = this.runs[this.number(at)].values.find(([each]) => each === name);
      return value && value[2] !== null ? value[2] : 0;
    });
    const most = Math.max(...found.map(Math.abs)) || 1;
    const bars = found.map((value, place) => {
      const height = Math.max(1, (Math.abs(value) / most) * 26);
      return toolrt.svg("rect", { class: place === this.at[this.moved] ? "bar here" : "bar", x: place * 16, y: 28 - height, width: 12, height });
    });
    return toolrt.svg("svg", { width: places.length * 16, height: 28, "aria-hidden": "true" }, ...bars);
  }
};

toolrt.positions = new toolrt.Positions(JSON.parse(document.getElementById("document").textContent));
