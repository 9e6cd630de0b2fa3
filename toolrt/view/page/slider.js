// Schedules of one program under one slider, the steps of each under another.
toolrt.Slider = class Slider {
  constructor(data) {
    this.data = data;
    this.byId = (id) => document.getElementById(id);
    this.before = null;
    this.shown = data.schedules.map((_, place) => place);
    this.at = 0;
    this.step = 0;
    this.byId("title").textContent = document.title;
    this.byId("summary").textContent = `${toolrt.count(data.schedules.length, "schedule")}, ${toolrt.count(data.columns.length, "task")}; ← → steps, ↑ ↓ schedules`;
    this.count();
    this.byId("heads").replaceChildren(toolrt.element("tr", {}, toolrt.element("th", { scope: "col" }, "step"), data.columns.map((column) => toolrt.element("th", { scope: "col" }, column))));
    this.byId("schedule").addEventListener("input", (event) => this.go(Number(event.target.value)));
    this.byId("slider").addEventListener("input", (event) => this.stand(Number(event.target.value)));
    this.byId("filter").addEventListener("change", (event) => this.filter(event.target.value));
    this.byId("back").addEventListener("click", () => this.stand(this.step - 1));
    this.byId("forward").addEventListener("click", () => this.stand(this.step + 1));
    this.byId("theme").addEventListener("click", toolrt.nextTheme);
    document.addEventListener("keydown", (event) => this.key(event));
    this.go(0);
  }

  get schedule() {
    return this.data.schedules[this.shown[this.at]];
  }

  // How all of them end, the most frequent first; each is a choice of what to show.
  count() {
    const { element } = toolrt;
    const counts = new Map();
    let wrong = 0;
    for (const schedule of this.data.schedules) {
      const known = counts.get(schedule.ended) || { count: 0, wrong: false };
      counts.set(schedule.ended, { count: known.count + 1, wrong: known.wrong || schedule.wrong });
      wrong += schedule.wrong;
    }
    const sorted = [...counts].sort((one, other) => other[1].count - one[1].count);
    this.byId("endings").replaceChildren(...sorted.map(([ended, found]) => element("li", { class: found.wrong ? "broken" : null }, `${found.wrong ? "✗" : "✓"} ${found.count.toLocaleString("en")} × ${ended}`)));
    const options = [element("option", { value: "all" }, `all ${this.data.schedules.length.toLocaleString("en")}`)];
    if (wrong && wrong < this.data.schedules.length) options.push(element("option", { value: "wrong" }, `the ${wrong.toLocaleString("en")} that go wrong`), element("option", { value: "right" }, "those that go right"));
    sorted.slice(0, 50).forEach(([ended], place) => options.push(element("option", { value: String(place) }, `those that end in ${ended}`)));
    this.endings = sorted.map(([ended]) => ended);
    this.byId("filter").replaceChildren(...options);
  }

  filter(value) {
    const wanted = {
      all: () => true,
      wrong: (schedule) => schedule.wrong,
      right: (schedule) => !schedule.wrong,
    }[value] || ((schedule) => schedule.ended === this.endings[Number(value)]);
    this.before = this.schedule;
    this.shown = this.data.schedules.map((_, place) => place).filter((place) => wanted(this.data.schedules[place]));
    this.at = 0;
    this.draw();
  }

  go(at) {
    const next = Math.max(0, Math.min(this.shown.length - 1, at));
    if (next !== this.at) this.before = this.schedule;
    this.at = next;
    this.draw();
  }

  stand(step) {
    this.step = step;
    this.draw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
    const actions = {
      ArrowLeft: () => this.stand(this.step - 1),
      ArrowRight: () => this.stand(this.step + 1),
      ArrowUp: () => this.go(this.at - 1),
      ArrowDown: () => this.go(this.at + 1),
      Home: () => this.stand(0),
      End: () => this.stand(Infinity),
      t: toolrt.nextTheme,
    };
    // On the slider of schedules left and right are schedules.
    if (event.target.id === "schedule" && event.key.startsWith("Arrow")) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // The first step at which this schedule does something else than the one shown before.
  parts() {
    if (!this.before || this.before === this.schedule) return null;
    const mine = this.schedule.steps;
    const theirs = this.before.steps;
    for (let step = 0; step < Math.max(mine.length, theirs.length); step += 1) {
      if (!mine[step] || !theirs[step] || mine[step][0] !== theirs[step][0]) return step;
    }
    return null;
  }

  draw() {
    const { element } = toolrt;
    const { steps, ended, wrong, name } = this.schedule;
    this.step = Math.max(0, Math.min(steps.length - 1, this.step));
    const parts = this.parts();
    const words = this.data.words;
    this.byId("steps").replaceChildren(...steps.map(([column, done, preempts], step) => {
      const cells = this.data.columns.map((_, place) => element("td", {}, place === column ? element("div", { class: `cell${preempts ? " chosen" : ""}` }, `${preempts ? "> " : ""}${words[done]}`) : null));
      const kind = [step > this.step ? "later" : "", step === parts ? "parts" : ""].join(" ").trim();
      return element("tr", { class: kind || null, "aria-current": step === this.step ? "true" : null, onclick: () => this.stand(step) }, element("th", { scope: "row" }, String(step)), cells);
    }));
    const [column, done, preempts, time] = steps[this.step];
    this.byId("end").textContent = `${wrong ? "✗" : "✓"} ${ended}`;
    this.byId("end").className = wrong ? "broken" : "";
    this.byId("now").textContent = `Step ${this.step}, at ${toolrt.seconds(time)}: ${this.data.columns[column]} ${words[done]}${preempts ? "; the task before it could have gone on" : ""}.`;
    const memory = new Map();
    for (const [, , , , known] of steps.slice(0, this.step + 1)) for (const [resource, value] of known) memory.set(resource, value);
    const held = [...memory].map(([resource, value]) => element("li", {}, element("code", {}, `${words[resource]} = ${words[value]}`)));
    this.byId("memory").replaceChildren(...(held.length ? held : [element("li", { class: "soft" }, "nothing is known (run it with details=True)")]));
    this.byId("beside").textContent = parts === null ? "Nothing differs." : `They part at step ${parts}.`;
    const slider = this.byId("schedule");
    slider.max = String(this.shown.length - 1);
    slider.value = String(this.at);
    slider.setAttribute("aria-valuetext", `${name || `schedule ${this.at + 1}`}, ends in ${ended}`);
    this.byId("which").textContent = `${(this.at + 1).toLocaleString("en")} of ${this.shown.length.toLocaleString("en")}${name ? `: ${name}` : ""}`;
    const stepper = this.byId("slider");
    stepper.max = String(steps.length - 1);
    stepper.value = String(this.step);
    stepper.setAttribute("aria-valuetext", `step ${this.step}: ${this.data.columns[column]} ${words[done]}`);
    this.byId("position").textContent = `step ${this.step} of ${steps.length - 1}`;
    this.byId("back").disabled = this.step === 0;
    this.byId("forward").disabled = this.step === steps.length - 1;
    const row = this.byId("steps").children[this.step];
    if (row) row.scrollIntoView({ block: "nearest" });
  }
};

toolrt.slider = new toolrt.Slider(JSON.parse(document.getElementById("document").textContent));
