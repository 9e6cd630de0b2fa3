// Puts the page together: views, keys, stepping.
toolrt.App = class App {
  constructor(data) {
    this.document = data;
    this.runs = data.runs.map((run) => new toolrt.Run(run));
    for (const run of this.runs) run.waits = new toolrt.Waits(run, data.phases);
    this.moment = 0;
    this.arrows = "here";
    this.scale = this.runs.some((run) => run.hasSteps) ? "order" : "time";
    this.picked = this.runs.map(() => null);
    this.race = -1;
    this.drawn = 0;
    this.playing = null;
    this.length = Math.max(1, ...this.runs.map((run) => run.length));
    this.shown = this.runs.map((run, side) => new toolrt.Shown(run, side, this));
    this.panel = new toolrt.Panel(document.getElementById("panel"), this);
    this.start();
  }

  narrow() {
    return window.innerWidth <= 700;
  }

  // ---- what is marked

  momentOf(side) {
    return Math.min(this.moment, Math.max(0, this.runs[side].length - 1));
  }

  raceOf(side) {
    const race = this.document.parting && this.document.parting.race;
    if (race && this.race < 0) return race.steps[side].includes(null) ? null : App.sorted(race.steps[side]);
    const run = this.runs[side];
    const chosen = side === 0 && this.race >= 0 && run.races ? run.races[this.race] : null;
    return chosen ? [chosen[0], chosen[1]] : null;
  }

  static sorted(pair) {
    return [...pair].sort((one, other) => one - other);
  }

  isShownRace(side, edge) {
    const race = this.raceOf(side);
    return race !== null && race[0] === edge.before && race[1] === edge.after;
  }

  marksOf(side, moment) {
    const parting = this.document.parting;
    const parts = Boolean(parting) && moment === parting.before && moment < this.runs[side].length;
    const race = this.raceOf(side);
    const place = race ? race.indexOf(moment) : -1;
    const words = place === 0 ? "race: first" : place === 1 ? "race: second" : null;
    const old = this.runs[side].outdated.get(moment);
    const from = old ? `from what it read in step ${old.read}, before step ${old.write} wrote ${old.resource}; ` : "";
    return { parts, race: words, old: Boolean(old), words: `${parts ? "first difference; " : ""}${words ? `${words}; ` : ""}${from}` };
  }

  // The steps of a side that have a mark.
  marked(side) {
    const { parting } = this.document;
    return [...(parting ? [parting.before] : []), ...(this.raceOf(side) || [])];
  }

  // ---- going somewhere

  goTo(moment) {
    this.moment = Math.min(this.length - 1, Math.max(0, moment));
    for (const view of this.views) view.show(this.momentOf(view.side));
    this.refresh();
    this.say();
    this.address();
  }

  // One step on or back; in the steps to one that is not left out.
  stepBy(by) {
    const shows = (moment) => this.view !== "steps" || this.shown.some((shown) => shown.has(moment));
    let moment = this.moment + by;
    while (moment >= 0 && moment < this.length && !shows(moment)) moment += by;
    if (moment >= 0 && moment < this.length) this.goTo(moment);
  }

  // The address names the step, so that it can be sent.  A browser refuses many changes in a row: it follows at a rest.
  address() {
    clearTimeout(this.addressing);
    if (!this.ready) return;
    this.addressing = setTimeout(() => {
      try {
        history.replaceState(null, "", `#step-${this.moment}`);
      } catch {
        // A notebook's frame has no address of its own.
      }
    }, 250);
  }

  // Goes to the step that the address names, and says whether it names one.
  toAddress() {
    const named = /^#step-(\d{1,9})$/.exec(location.hash);
    if (named) this.goTo(Number(named[1]));
    return Boolean(named);
  }

  // Leaves out what the choice of "Show" does not let through.
  filter(value) {
    const [kind, ...name] = value.split(":");
    for (const shown of this.shown) shown.keep({ kind, name: name.join(":") });
    const to = this.shown.some((shown) => shown.has(this.moment)) ? this.moment : this.nearestShown();
    this.goTo(to);
  }

  nearestShown() {
    const shows = (moment) => this.shown.some((shown) => shown.has(moment));
    for (let by = 1; by < this.length; by += 1) {
      for (const moment of [this.moment + by, this.moment - by]) if (shows(moment)) return moment;
    }
    return this.moment;
  }

  // Reads the watch expression and says on the page what is wrong with it; an empty one ends the watch.
  watchFor(text) {
    const field = document.getElementById("watch");
    this.watching = null;
    let wrong = "";
    if (text.trim()) {
      try {
        this.watching = { text: text.trim(), values: this.runs.map((run) => toolrt.Watch.over(run, text)) };
      } catch (error) {
        wrong = error.message;
      }
    }
    field.setAttribute("aria-invalid", String(Boolean(wrong)));
    document.getElementById("watch-wrong").textContent = wrong;
    for (const shown of this.shown) shown.version += 1;
    this.refresh();
    if (this.watching) document.getElementById("said").textContent = `${this.watching.text}: ${this.runs.map((_, side) => this.watchedAt(side, this.momentOf(side)).text).join(", ")}`;
  }

  // What the watch expression is after a step, and since which one.
  watchedAt(side, moment) {
    const values = this.watching.values[side];
    return values[toolrt.lastUpTo(values, moment, (entry) => entry.step)];
  }

  startWatch() {
    const field = document.getElementById("watch");
    const known = (run) => [...run.values].filter(([, values]) => values.some((entry) => entry.value !== null)).map(([resource]) => run.resources[resource]);
    const names = known(this.runs[0]).filter((name) => /^[\p{L}_][\p{L}\p{N}_ .]*$/u.test(name)).map((name) => name.replaceAll(" ", "."));
    document.getElementById("watch-label").hidden = !this.runs.some((run) => known(run).length);
    if (names.length) field.placeholder = names.length > 1 ? `${names[0]} + ${names[1]} == 100` : `${names[0]} >= 0`;
    field.addEventListener("input", () => this.watchFor(field.value));
  }

  fillFilter() {
    const { element } = toolrt;
    const select = document.getElementById("filter");
    const titles = { task: "Steps of one task", resource: "Steps that touch", file: "Steps in a file" };
    const groups = Object.entries(toolrt.Shown.choices(this.runs)).filter(([, names]) => names.length > 1).map(([kind, names]) => element(
      "optgroup", { label: titles[kind] }, names.map((name) => element("option", { value: `${kind}:${name}` }, name)),
    ));
    const steps = this.runs.some((run) => run.hasSteps);
    select.replaceChildren(element("option", { value: "all" }, "all"), ...(steps ? [element("option", { value: "touching" }, "steps that touch something")] : []), ...groups);
    select.addEventListener("change", () => this.filter(select.value));
  }

  // Goes to the next step, or with -1 to the one before, that tells the text of the field; from the end to the beginning.
  find(by) {
    const text = document.getElementById("find").value.trim().toLowerCase();
    const found = document.getElementById("found");
    const places = text ? toolrt.range(this.length).filter((moment) => this.runs.some((run) => moment < run.length && run.tells(moment).includes(text))) : [];
    const here = toolrt.lastUpTo(places, this.moment, (each) => each);
    const next = by > 0 ? here + 1 : here - (places[here] === this.moment ? 1 : 0);
    const place = (next + places.length) % places.length;
    found.textContent = !text ? "" : places.length ? `${place + 1} of ${places.length.toLocaleString("en")}` : "not found";
    if (!places.length) return;
    for (const shown of this.shown) if (places[place] < shown.run.length && !shown.has(places[place])) shown.open(places[place]);
    this.goTo(places[place]);
  }

  // Goes on to the next step that touches what this one touches first, then to the first one that does.
  nextTouch() {
    const [run] = this.runs;
    const [first] = run.touchedAt(this.momentOf(0));
    if (first) this.goTo(first.next ?? run.resourceTouches.get(first.code >> 1)[0].step);
  }

  toggleTouching() {
    const select = document.getElementById("filter");
    select.value = select.value === "all" ? "touching" : "all";
    if (select.value) this.filter(select.value);
    else select.value = "all";
  }

  foldHere(all) {
    const side = this.views[0].side;
    if (this.view !== "steps") return;
    if (all) this.shown.forEach((shown) => { shown.folded.clear(); shown.version += 1; });
    else this.views[0].foldColumn(this.runs[side].columnAt(this.momentOf(side)));
    this.refresh();
  }

  pick(side, call, go = true) {
    this.picked[side] = call;
    if (go) {
      const seq = call.started ?? call.settled ?? call.submitted;
      this.goTo(this.runs[side].momentOf(seq));
    }
    for (const view of this.views) if (view.showCall && view.side === side) view.showCall(call);
    this.refresh();
  }

  nextCall(by) {
    const run = this.runs[0];
    if (!run.calls.length) return;
    const place = run.calls.indexOf(this.picked[0]);
    this.pick(0, run.calls[Math.min(run.calls.length - 1, Math.max(0, place + by))]);
  }

  toParting() {
    if (this.document.parting) this.goTo(this.document.parting.before);
  }

  toRace() {
    const parting = this.document.parting;
    if (parting) {
      const race = this.raceOf(0);
      if (race) this.goTo(this.moment === race[0] ? race[1] : race[0]);
      return;
    }
    const races = this.runs[0].races || [];
    if (!races.length) return;
    this.race = (this.race + 1) % races.length;
    this.goTo(races[this.race][0]);
  }

  play(on) {
    if (on === (this.playing !== null)) return;
    const button = document.getElementById("play");
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Pause" : "Play";
    if (!on) {
      clearInterval(this.playing);
      this.playing = null;
      return;
    }
    if (this.moment >= this.length - 1) this.goTo(0);
    this.playing = setInterval(() => {
      if (this.moment >= this.length - 1) this.play(false);
      else this.stepBy(1);
    }, 500);
  }

  refresh() {
    for (const view of this.views) view.draw();
    this.panel.draw();
    const slider = document.getElementById("slider");
    slider.value = String(this.moment);
    const unit = this.runs.some((run) => run.hasSteps) ? "step" : "event";
    const text = `${unit} ${this.moment.toLocaleString("en")} of ${(this.length - 1).toLocaleString("en")}`;
    document.getElementById("position").textContent = text;
    slider.setAttribute("aria-valuetext", text);
  }

  say() {
    if (this.playing !== null) return;
    const parts = this.runs.map((run, side) => {
      if (!run.length) return "";
      const at = this.momentOf(side);
      return `${this.runs.length > 1 ? `${run.name}: ` : ""}${run.hasSteps ? "step" : "event"} ${at}, ${run.nameAt(at)}: ${this.marksOf(side, at).words}${run.wordsAt(at)}`;
    });
    document.getElementById("said").textContent = parts.join(". ");
  }

  // ---- views

  open(name) {
    const kinds = { calls: toolrt.CallsView, steps: toolrt.StepsView, table: toolrt.TableView };
    for (const view of this.views || []) view.close();
    this.view = name;
    this.views = this.runs.map((run, side) => new kinds[name](run, side, this));
    const { element } = toolrt;
    document.getElementById("panes").replaceChildren(...this.views.map((view, side) => {
      const run = this.runs[side];
      const head = this.runs.length > 1
        ? element("h2", {}, run.name, element("small", {}, this.ended(run)))
        : null;
      return element("section", { class: "pane", "aria-label": `Schedule: ${run.name}` }, head, view.scroll, view.map ? view.map.host : null, view.pager || null);
    }));
    for (const tab of document.getElementById("tabs").children) tab.setAttribute("aria-selected", String(tab.dataset.view === name));
    document.getElementById("scale-label").hidden = name !== "calls";
    document.getElementById("filter-label").hidden = name !== "steps";
    document.getElementById("zoom").hidden = document.getElementById("arrows-label").hidden = name === "table";
    for (const view of this.views) {
      if (view.drawNow) view.drawNow();
      view.show(this.momentOf(view.side));
    }
    this.refresh();
  }

  ended(run) {
    const counts = run.hasSteps ? `${toolrt.count(run.length, "step")}, ${toolrt.count(run.preempting.size, "preemption")}` : "";
    const ended = run.meta.ended ? `ended: ${run.meta.ended}` : "";
    return [counts, toolrt.count(run.events.kind.length, "event"), ended].filter(Boolean).join(", ");
  }

  start() {
    const { element } = toolrt;
    const byId = (id) => document.getElementById(id);
    document.title = this.document.title;
    byId("title").textContent = this.document.title;
    byId("summary").textContent = this.runs.length > 1
      ? this.runs.map((run) => `${run.name}: ${toolrt.count(run.length, run.hasSteps ? "step" : "event")}`).join(" · ")
      : this.ended(this.runs[0]);
    const hasCalls = this.runs.some((run) => run.calls.length);
    const views = [...(hasCalls ? [["calls", "Calls"]] : []), ["steps", this.runs.some((run) => run.hasSteps) ? "Steps" : "Events"], ["table", "Table"]];
    byId("tabs").replaceChildren(...views.map(([view, title], number) => element("button", { type: "button", role: "tab", "aria-controls": "panes", "data-view": view, title: `Key ${number + 1}`, onclick: () => this.open(view) }, title)));
    const slider = byId("slider");
    slider.max = String(this.length - 1);
    slider.addEventListener("input", () => this.goTo(Number(slider.value)));
    const act = {
      first: () => this.goTo(0), back: () => this.stepBy(-1), forward: () => this.stepBy(1),
      last: () => this.goTo(this.length - 1), play: () => this.play(this.playing === null),
      "zoom-in": () => this.zoom(1.5), "zoom-out": () => this.zoom(1 / 1.5), "zoom-fit": () => this.zoom(0),
      "to-parting": () => this.toParting(), "to-race": () => this.toRace(), theme: () => toolrt.nextTheme(),
      "help-open": () => byId("help").showModal(),
    };
    for (const [id, action] of Object.entries(act)) byId(id).addEventListener("click", action);
    byId("scale").value = this.scale;
    if (this.scale === "order") byId("scale").options[0].textContent = "order of steps";
    byId("scale").addEventListener("change", (event) => { this.scale = event.target.value; this.refresh(); });
    byId("arrows").addEventListener("change", (event) => { this.arrows = event.target.value; this.refresh(); });
    byId("to-parting").hidden = !this.document.parting;
    if (this.document.parting && this.document.parting.before >= this.length) {
      byId("to-parting").disabled = true;
      byId("to-parting").textContent = "No difference";
    }
    // On a short screen the schedule comes first: what is to be said of it is a line that opens.
    const verdict = document.getElementById("verdict");
    if (verdict && window.innerHeight < 560) verdict.open = false;
    for (const line of document.querySelectorAll("#verdict [data-copied]")) {
      line.after(toolrt.copier(line, (text) => { byId("said").textContent = text; }));
    }
    const races = this.document.parting ? (this.document.parting.race ? 1 : 0) : (this.runs[0].races || []).length;
    byId("to-race").hidden = races === 0;
    if (this.document.parting) byId("to-race").textContent = "The race";
    else if (races) byId("to-race").textContent = `Next race (${races})`;
    this.explain(byId("keys"), byId("legend"));
    document.addEventListener("keydown", (event) => this.key(event));
    byId("find").addEventListener("input", () => { byId("found").textContent = ""; });
    this.fillFilter();
    this.startWatch();
    toolrt.prints(this);
    this.open(views[0][0]);
    if (!this.toAddress() && this.document.parting) this.goTo(Math.min(this.document.parting.before, this.length - 1));
    this.ready = true;
    window.addEventListener("hashchange", () => this.toAddress());
  }

  zoom(factor) {
    for (const view of this.views) view.zoom(factor);
  }

  key(event) {
    const target = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
    if (target.id === "watch") {
      if (event.key === "Escape" || event.key === "Enter") this.views[0].scroll.focus({ preventScroll: true });
      return;
    }
    if (target.id === "find") {
      if (event.key === "Enter") this.find(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") this.views[0].scroll.focus({ preventScroll: true });
      return;
    }
    if (target.closest("select, summary") || (target.id === "slider" && event.key.startsWith("Arrow"))) return;
    if (target.closest("button, input") && (event.key === " " || event.key === "Enter")) return;
    const tabs = [...document.getElementById("tabs").children];
    const actions = {
      ArrowRight: () => this.stepBy(1), ArrowLeft: () => this.stepBy(-1),
      ArrowDown: () => (this.view === "calls" ? this.nextCall(1) : this.stepBy(1)),
      ArrowUp: () => (this.view === "calls" ? this.nextCall(-1) : this.stepBy(-1)),
      Home: () => this.goTo(0), End: () => this.goTo(this.length - 1),
      " ": () => this.play(this.playing === null), "+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5),
      0: () => this.zoom(0), d: () => this.toParting(), r: () => this.toRace(), t: () => toolrt.nextTheme(),
      "/": () => document.getElementById("find").focus(), n: () => this.find(1), N: () => this.find(-1), o: () => this.nextTouch(),
      f: () => this.toggleTouching(), w: () => document.getElementById("watch").focus(), c: () => this.foldHere(false), C: () => this.foldHere(true), a: () => this.nextArrows(), "?": () => document.getElementById("help").showModal(),
      1: () => tabs[0] && tabs[0].click(), 2: () => tabs[1] && tabs[1].click(), 3: () => tabs[2] && tabs[2].click(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  nextArrows() {
    const select = document.getElementById("arrows");
    select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
    this.arrows = select.value;
    this.refresh();
  }

  explain(keys, legend) {
    const { element, svg } = toolrt;
    const rows = [
      ["← →", "one step back, one forward"], ["↑ ↓", "the same; the call above or below in the view of calls"], ["Home End", "the first, the last"],
      ["Space", "play, pause"], ["+ − 0", "zoom in, out, fit"], ["1 2 3", "the views"], ["a", "arrows: none, of this step, all"],
      ["f", "only steps that touch something, or all"], ["w", "write a watch expression: names of memory, numbers, texts, + - * / // %, comparisons, and, or, not"],
      ["/ n N", "find steps that tell a text, the next one, the one before"], ["o", "the next step that touches what this one touches first"],
      ["c C", "fold the column of this step, unfold all"],
      ["d", "the first difference between two schedules"], ["r", "the race; without a second schedule the next one that could go the other way"],
      ["t", "theme: auto, dark, light"], ["?", "this"],
    ];
    keys.replaceChildren(...rows.flatMap(([key, text]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, text)]));
    const line = (kind) => svg("svg", { width: 46, height: 16, "aria-hidden": "true" }, svg("line", { class: kind, x1: 2, x2: 44, y1: 8, y2: 8 }));
    const box = (kind) => svg("svg", { width: 46, height: 18, "aria-hidden": "true" }, svg("rect", { class: kind, x: 2, y: 2, width: 42, height: 14, rx: 2 }));
    const phases = this.document.phases;
    const hasCalls = this.runs.some((run) => run.calls.length);
    const ofCalls = [
      [box("runs"), phases.runs], [line("lane"), `${phases.lane}, or is ${phases.soon}`], [line("tickets"), phases.tickets], [line("slot"), phases.slot],
      [line("approval"), phases.approval], [box("kept"), phases.kept], [box("ends"), phases.ends],
    ];
    const ofSteps = [
      [line("arrow"), "an arrow: the later one touches what the earlier one touched"],
      [line("arrow wakes"), "an arrow: the earlier one woke or began the later one"], [line("arrow race"), "a race: nothing else orders the two"],
      ["> ", "a preemption: the task before could have gone on"],
      [element("span", { class: "tag old" }, "old"), "a write from an old read: another task has written in between"],
    ];
    const marks = [...(hasCalls ? ofCalls : []), ...(this.runs.some((run) => run.hasSteps) ? ofSteps : [])];
    const outcomes = Object.entries(toolrt.GLYPHS).map(([outcome, glyph]) => `${glyph} ${outcome}`).join("   ");
    legend.replaceChildren(...[...marks, ...(hasCalls ? [["outcomes", outcomes]] : [])].flatMap(([mark, text]) => [element("dt", {}, mark), element("dd", {}, text)]));
  }
};

toolrt.app = new toolrt.App(JSON.parse(document.getElementById("document").textContent));
