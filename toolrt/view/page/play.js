// Be the scheduler: the schedules of a small program are here, as a tree; a player walks down it.
toolrt.Play = class Play {
  constructor(data) {
    this.data = data;
    this.nodes = data.nodes.map(([task, does, after]) => ({ task: data.texts[task], does: data.texts[does], after }));
    this.seen = new Set();
    this.endings = new Map();
    this.columns = [...new Set(this.nodes.map((node) => this.column(node.task)))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
    // A task keeps its key, whichever others can run.
    const chosen = this.nodes.flatMap(({ after }) => (after.length > 1 ? after.map((place) => this.taskAt(place)) : []));
    this.keys = new Map([...new Set(chosen)].sort((one, other) => one.localeCompare(other, "en", { numeric: true })).map((task, place) => [task, place + 1]));
    this.look();
    this.path = [];
    this.turns = [];
    this.progress = new toolrt.Progress();
    const known = this.progress.of(data.name);
    this.solved = known.solved;
    if (known.of === data.classes) known.seen.forEach((each) => this.seen.add(each));
    const byId = (id) => document.getElementById(id);
    document.title = data.name;
    byId("title").textContent = data.name;
    const words = new toolrt.Words(data.words);
    byId("story").replaceChildren(...words.marked(data.story));
    byId("source").replaceChildren(...words.marked(data.source));
    words.list(byId("words"), byId("glossary"));
    byId("aim").textContent = data.wrong.length ? `You are the scheduler. Try to make it end in ${data.wrong.join(", ")}.` : "You are the scheduler. Try to make it go wrong, or ask for the proof that it cannot.";
    byId("part").textContent = this.extent();
    byId("kept").hidden = this.progress.isKept;
    this.drawing = new toolrt.ClassTree(this, byId("tree"), byId("key"));
    const act = { back: () => this.back(), restart: () => this.restart(), hint: () => this.hint(), proof: () => this.proof(), failing: () => this.show(), theme: toolrt.nextTheme };
    for (const [id, action] of Object.entries(act)) byId(id).addEventListener("click", action);
    document.addEventListener("keydown", (event) => this.key(event, act));
    this.restart();
  }

  column(task) {
    return task.split("=")[0];
  }

  // Whose step it is; below 0 is one that was not explored, -1 less the place of its name.
  taskAt(place) {
    return place < 0 ? this.data.texts[-1 - place] : this.nodes[place].task;
  }

  // What a task is called: its path, and the function that it runs.
  named(task) {
    const column = this.column(task);
    const runs = Object.hasOwn(this.data.functions, column) ? this.data.functions[column] : "";
    return runs ? `${task} ${runs}` : task;
  }

  // The colour of a task; the first one's is that of main.
  colour(task) {
    return `task${this.columns.indexOf(this.column(task)) % 8}`;
  }

  // How much of the program is on this page.
  extent() {
    const here = Object.keys(this.data.ends).length;
    if (this.data.whole) return "";
    const all = this.data.stated === null ? "more" : this.data.stated.toLocaleString("en");
    const classes = this.data.every_class ? ", with every class of them" : "; not every class is among them";
    return `This page has ${here.toLocaleString("en")} of ${all} schedules${classes}. A choice that was not explored is grey.`;
  }

  // From which steps the bug can still be reached: children come after their parents, so one pass from the end.
  look() {
    this.leads = new Array(this.nodes.length).fill(false);
    for (let place = this.nodes.length - 1; place >= 0; place -= 1) {
      const end = this.data.ends[place];
      this.leads[place] = end ? end[1] : this.nodes[place].after.some((next) => next >= 0 && this.leads[next]);
    }
  }

  get at() {
    return this.path[this.path.length - 1];
  }

  // The steps that may come next.
  get options() {
    return this.nodes[this.at].after;
  }

  choose(place) {
    if (place < 0 || !this.options.includes(place)) return;
    this.turns.push(this.path.length);
    this.path.push(place);
    this.settle(true);
  }

  // Steps that only one task can take are taken.
  settle(counts) {
    while (this.options.length === 1) this.path.push(this.options[0]);
    const end = this.data.ends[this.at];
    if (end && counts) {
      this.seen.add(end[2]);
      this.endings.set(end[0], (this.endings.get(end[0]) || 0) + 1);
      if (end[1]) this.solved = true;
      this.keep();
    }
    this.draw();
  }

  keep() {
    this.progress.note(this.data.name, { solved: this.solved, of: this.data.classes, seen: [...this.seen].sort((one, other) => one - other) });
  }

  back() {
    if (!this.turns.length) return;
    this.path.length = this.turns.pop();
    this.draw();
  }

  restart() {
    this.path = [0];
    this.turns = [];
    this.settle(this.nodes[0].after.length > 0);
  }

  hint() {
    const good = this.options.find((place) => place >= 0 && this.leads[place]);
    const over = this.data.ends[this.at];
    const here = this.data.whole ? "" : " on this page";
    let advice = `No way from here${here} goes wrong: go back, or begin again.`;
    if (over) advice = "It is over: go back, or begin again.";
    else if (good !== undefined) advice = `Let ${this.named(this.nodes[good].task)} run.`;
    else if (!this.leads[0]) advice = `No way${here} goes wrong, wherever you stand: ask for the proof.`;
    document.getElementById("advice").textContent = `Hint: ${advice}`;
  }

  proof() {
    const { element } = toolrt;
    const counts = new Map();
    for (const [outcome, wrong, number] of Object.values(this.data.ends)) {
      const known = counts.get(outcome) || { count: 0, wrong, classes: new Set() };
      known.count += 1;
      known.classes.add(number);
      counts.set(outcome, known);
    }
    const schedules = Object.keys(this.data.ends).length;
    const bad = [...counts.values()].reduce((sum, each) => sum + (each.wrong ? each.count : 0), 0);
    const classes = toolrt.count(this.data.classes, "class", "classes");
    const goes = `${toolrt.count(bad, "schedule")} ${bad === 1 ? "goes" : "go"}`;
    let told;
    if (this.data.whole) {
      told = `All ${toolrt.count(schedules, "schedule")} were run: ${classes}. ${bad ? `${goes} wrong.` : "None goes wrong: there is nothing to find."}`;
    } else if (this.data.every_class) {
      told = `Every class was run: ${classes}, in ${toolrt.count(schedules, "schedule")}. ${bad ? `${goes} wrong.` : "None goes wrong: there is nothing to find."}`;
    } else {
      told = `This page has ${toolrt.count(schedules, "schedule")}, ${classes}. There are more, so this is no proof. ${bad ? `${goes} wrong.` : "None of these goes wrong."} For the proof run: toolrt litmus ${this.data.name} --verify`;
    }
    document.getElementById("advice").textContent = told;
    document.getElementById("about").open = true;
    document.getElementById("proved").replaceChildren(...[...counts].map(([outcome, { count, wrong, classes: mine }]) => element("li", { class: wrong ? "broken" : null }, `${toolrt.count(count, "schedule")} ${count === 1 ? "ends" : "end"} in ${outcome}${wrong ? ", the bug" : ""} (${toolrt.count(mine.size, "class", "classes")})`)));
    document.getElementById("failing").hidden = !bad;
    if (!this.data.wrong.length && !this.solved) {
      this.solved = true;
      this.keep();
      this.link();
    }
  }

  // Plays the failing schedule with the fewest choices; it does not count as found.
  show() {
    if (!this.leads[0]) return;
    this.path = [0];
    this.turns = [];
    while (this.options.length) {
      if (this.options.length > 1) this.turns.push(this.path.length);
      this.path.push(this.options.find((place) => place >= 0 && this.leads[place]));
    }
    this.draw();
  }

  key(event, act) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = { b: act.back, Backspace: act.back, r: act.restart, h: act.hint, p: act.proof, t: act.theme };
    if (!document.getElementById("failing").hidden) actions.s = act.failing;
    const option = this.options.find((place) => String(this.keys.get(this.taskAt(place))) === event.key);
    const action = option === undefined ? actions[event.key] : () => this.choose(option);
    if (!action) return;
    event.preventDefault();
    action();
  }

  option(place) {
    const { element } = toolrt;
    const task = this.taskAt(place);
    const count = element("kbd", {}, String(this.keys.get(task)));
    if (place < 0) {
      return element("li", {}, element("button", { type: "button", disabled: true, class: this.colour(task) }, count, ` ${this.named(task)}: not explored`));
    }
    const { does } = this.nodes[place];
    return element("li", {}, element("button", { type: "button", class: this.colour(task), onclick: () => this.choose(place) }, count, ` ${this.named(task)}: ${does}`));
  }

  draw() {
    const { element } = toolrt;
    const byId = (id) => document.getElementById(id);
    const chosen = new Set(this.turns);
    byId("heads").replaceChildren(element("tr", {}, element("th", { scope: "col" }, "step"), this.columns.map((column) => element("th", { scope: "col", class: this.colour(column) }, this.named(column)))));
    byId("steps").replaceChildren(...this.path.map((place, step) => {
      const node = this.nodes[place];
      const mark = chosen.has(step) ? "> " : "";
      const cells = this.columns.map((column) => element("td", {}, column === this.column(node.task) ? element("div", { class: `cell ${this.colour(column)}${mark ? " chosen" : ""}` }, `${mark}${node.does}`) : null));
      return element("tr", {}, element("th", { scope: "row" }, String(step)), cells);
    }));
    const end = this.data.ends[this.at];
    byId("turn").textContent = end ? "It is over" : "Who runs next?";
    byId("end").textContent = end ? (end[1] ? `✗ It ended in ${end[0]}: the bug. You broke it.` : `✓ It ended in ${end[0]}, as it should.`) : "";
    byId("why").replaceChildren(...((end && end[1] && this.data.why) || []).map((text) => element("li", {}, text)));
    if (end && end[1]) byId("about").open = true;
    byId("end").className = end && end[1] ? "broken" : "";
    const focused = byId("options").contains(document.activeElement);
    byId("options").replaceChildren(...(end ? [] : this.options).map((place) => this.option(place)));
    // After a choice by keyboard the focus moves to the next choice.
    if (focused) (byId("options").querySelector("button:enabled") || byId("restart")).focus();
    byId("advice").textContent = "";
    byId("proved").replaceChildren();
    byId("failing").hidden = true;
    byId("back").disabled = !this.turns.length;
    const unseen = this.data.classes - this.seen.size;
    byId("seen").textContent = `${toolrt.count(this.seen.size, "class", "classes")} of schedules, ${unseen} still unseen${this.data.every_class ? "" : " on this page"}`;
    byId("endings").replaceChildren(...[...this.endings].map(([outcome, count]) => element("li", {}, `${outcome}, ${count === 1 ? "once" : `${count} times`}`)));
    this.drawing.draw();
    this.link();
    const rows = byId("steps").children;
    if (rows.length) rows[rows.length - 1].scrollIntoView({ block: "nearest" });
  }

  // The links to the gallery and to the next program, where the page is one of a site.
  link() {
    const byId = (id) => document.getElementById(id);
    if (!this.data.index) return;
    const known = this.progress.address([this.data.name]);
    byId("gallery").hidden = false;
    byId("gallery").href = this.data.index + known;
    if (!this.data.next) return;
    byId("next").hidden = false;
    byId("next").href = this.data.next[1] + known;
    byId("next").textContent = `Next: ${this.data.next[0]}`;
  }
};

toolrt.play = new toolrt.Play(JSON.parse(document.getElementById("document").textContent));
