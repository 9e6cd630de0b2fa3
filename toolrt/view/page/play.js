// Be the scheduler: every schedule of a small program is here, as a tree; a player walks down it.
toolrt.Play = class Play {
  constructor(data) {
    this.data = data;
    this.nodes = data.nodes.map(([task, does, after]) => ({ task, does, after }));
    this.seen = new Set();
    this.endings = new Map();
    this.columns = [...new Set(this.nodes.map((node) => node.task.split("=")[0]))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
    this.look();
    this.path = [];
    this.turns = [];
    const byId = (id) => document.getElementById(id);
    document.title = data.name;
    byId("title").textContent = data.name;
    byId("story").textContent = data.story;
    byId("source").textContent = data.source;
    byId("aim").textContent = data.wrong.length ? `You are the scheduler. Try to make it end in ${data.wrong.join(", ")}.` : "You are the scheduler. Try to make it go wrong, or ask for the proof that it cannot.";
    const act = { back: () => this.back(), restart: () => this.restart(), hint: () => this.hint(), proof: () => this.proof(), theme: toolrt.nextTheme };
    for (const [id, action] of Object.entries(act)) byId(id).addEventListener("click", action);
    document.addEventListener("keydown", (event) => this.key(event, act));
    this.restart();
  }

  // From which steps the bug can still be reached: children come after their parents, so one pass from the end.
  look() {
    this.leads = new Array(this.nodes.length).fill(false);
    for (let place = this.nodes.length - 1; place >= 0; place -= 1) {
      const end = this.data.ends[place];
      this.leads[place] = end ? end[1] : this.nodes[place].after.some((next) => this.leads[next]);
    }
  }

  get at() {
    return this.path[this.path.length - 1];
  }

  get options() {
    return this.nodes[this.at].after;
  }

  choose(place) {
    if (!this.options.includes(place)) return;
    this.turns.push(this.path.length);
    this.path.push(place);
    this.settle();
  }

  // Steps that only one task can take are taken.
  settle() {
    while (this.options.length === 1) this.path.push(this.options[0]);
    const end = this.data.ends[this.at];
    if (end) {
      this.seen.add(end[2]);
      this.endings.set(end[0], (this.endings.get(end[0]) || 0) + 1);
    }
    this.draw();
  }

  back() {
    if (!this.turns.length) return;
    this.path.length = this.turns.pop();
    this.draw();
  }

  restart() {
    this.path = [0];
    this.turns = [];
    this.settle();
  }

  hint() {
    const good = this.options.find((place) => this.leads[place]);
    const over = this.data.ends[this.at];
    let advice = "No way from here goes wrong: go back, or begin again.";
    if (over) advice = "It is over: go back, or begin again.";
    else if (good !== undefined) advice = `Let ${this.nodes[good].task} run.`;
    else if (!this.leads[0]) advice = "No way goes wrong, wherever you stand: ask for the proof.";
    document.getElementById("advice").textContent = `Hint: ${advice}`;
  }

  proof() {
    const { element } = toolrt;
    const counts = new Map();
    for (const [outcome, wrong] of Object.values(this.data.ends)) {
      const known = counts.get(outcome) || { count: 0, wrong };
      counts.set(outcome, { count: known.count + 1, wrong });
    }
    const schedules = Object.keys(this.data.ends).length;
    const bad = [...counts.values()].reduce((sum, each) => sum + (each.wrong ? each.count : 0), 0);
    document.getElementById("advice").textContent = bad
      ? `Of all ${toolrt.count(schedules, "schedule")}, ${bad} go wrong: go and find one.`
      : `All ${toolrt.count(schedules, "schedule")} were run, and none goes wrong: there is nothing to find.`;
    document.getElementById("proved").replaceChildren(...[...counts].map(([outcome, { count, wrong }]) => element("li", {}, `${count} × ${outcome}${wrong ? ": the bug" : ""}`)));
  }

  key(event, act) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = { b: act.back, Backspace: act.back, r: act.restart, h: act.hint, p: act.proof, t: act.theme };
    const number = Number(event.key);
    const action = number >= 1 && number <= this.options.length ? () => this.choose(this.options[number - 1]) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  draw() {
    const { element } = toolrt;
    const byId = (id) => document.getElementById(id);
    const chosen = new Set(this.turns);
    byId("heads").replaceChildren(element("tr", {}, element("th", { scope: "col" }, "step"), this.columns.map((column) => element("th", { scope: "col" }, column))));
    byId("steps").replaceChildren(...this.path.map((place, step) => {
      const node = this.nodes[place];
      const cells = this.columns.map((column) => element("td", {}, column === node.task.split("=")[0] ? element("div", { class: `cell${chosen.has(step) ? " chosen" : ""}` }, `${chosen.has(step) ? "> " : ""}${node.does}`) : null));
      return element("tr", {}, element("th", { scope: "row" }, String(step)), cells);
    }));
    const end = this.data.ends[this.at];
    byId("turn").textContent = end ? "It is over" : "Who runs next?";
    byId("end").textContent = end ? (end[1] ? `✗ It ended in ${end[0]}: the bug. You broke it.` : `✓ It ended in ${end[0]}, as it should.`) : "";
    byId("end").className = end && end[1] ? "broken" : "";
    const focused = byId("options").contains(document.activeElement);
    byId("options").replaceChildren(...(end ? [] : this.options).map((place, number) => element("li", {}, element(
      "button", { type: "button", onclick: () => this.choose(place) }, element("kbd", {}, String(number + 1)), ` ${this.nodes[place].task}: ${this.nodes[place].does}`,
    ))));
    // After a choice by keyboard the focus moves to the next choice.
    if (focused) (byId("options").querySelector("button") || byId("restart")).focus();
    byId("advice").textContent = "";
    byId("proved").replaceChildren();
    byId("back").disabled = !this.turns.length;
    byId("seen").textContent = `${toolrt.count(this.seen.size, "class", "classes")} of schedules, ${this.data.classes - this.seen.size} still unseen`;
    byId("endings").replaceChildren(...[...this.endings].map(([outcome, count]) => element("li", {}, `${outcome}, ${count === 1 ? "once" : `${count} times`}`)));
    const rows = byId("steps").children;
    if (rows.length) rows[rows.length - 1].scrollIntoView({ block: "nearest" });
  }
};

toolrt.play = new toolrt.Play(JSON.parse(document.getElementById("document").textContent));
