// What happens at the moment, and what is so then.
toolrt.Panel = class Panel {
  constructor(host, app) {
    this.host = host;
    this.app = app;
    this.draw = toolrt.oncePerFrame(() => this.drawNow());
    host.addEventListener("click", (event) => {
      const plays = event.target.closest("[data-play]");
      if (plays) {
        const code = plays.parentElement.querySelector("code");
        code.textContent = Panel.lineFrom(app.runs[this.sections.indexOf(plays.closest("section"))], Number(plays.dataset.play));
        toolrt.copier(code, (text) => { document.getElementById("said").textContent = text; }).click();
        return;
      }
      const link = event.target.closest("[data-go]");
      if (!link) return;
      // The button goes as the panel is drawn again, so that the focus has to have another place.
      app.views[0].scroll.focus({ preventScroll: true });
      app.goTo(Number(link.dataset.go));
    });
  }

  drawNow() {
    const { element } = toolrt;
    const before = [...this.host.querySelectorAll(".source")].map((list) => list.scrollTop);
    if (!this.sections) {
      this.sections = this.app.runs.map((run) => element("section", { "aria-label": run.name }));
      this.host.replaceChildren(...this.sections);
    }
    this.app.runs.forEach((run, side) => toolrt.changed(this.sections[side], this.of(run, side)));
    this.host.querySelectorAll(".source").forEach((list, place) => {
      list.scrollTop = before[place] || 0;
      const now = list.querySelector(".now");
      if (now && (now.offsetTop < list.scrollTop || now.offsetTop + now.offsetHeight > list.scrollTop + list.clientHeight)) {
        list.scrollTop = now.offsetTop - list.clientHeight / 2;
      }
    });
  }

  of(run, side) {
    const { element } = toolrt;
    const moment = this.app.momentOf(side);
    if (!run.length) return [element("p", {}, "Nothing was recorded.")];
    const over = this.app.moment > moment ? " (it ended here)" : "";
    const parts = [
      element("h2", {}, `${this.app.runs.length > 1 ? `${run.name}: ` : ""}${run.hasSteps ? "step" : "event"} ${moment}, ${run.nameAt(moment)}${over}`),
    ];
    if (run.hasTime) parts.push(element("p", { class: "soft" }, toolrt.seconds(run.timeAt(moment))));
    const marks = this.app.marksOf(side, moment);
    if (marks.words) parts.push(element("p", { class: "changed" }, marks.words.replace(/; $/, "")));
    this.circle(parts, run, moment);
    this.watch(parts, side, moment);
    this.list(parts, "Happened", run.seqsAt(moment), (seq) => this.event(run.events.told[seq], run.events.fields[seq]));
    this.list(parts, "Touched", run.touchedAt(moment), (each) => this.access(each));
    this.memory(parts, run, moment);
    const place = run.details.steps[moment];
    if (!this.source(parts, run, side, moment) && place) this.list(parts, "Ran from", [place], ([where, line]) => element("li", {}, element("code", {}, `${where}  ${line}`)));
    this.tasks(parts, run, moment);
    this.reasons(parts, run, moment);
    this.choice(parts, run, moment);
    this.playOn(parts, run, moment);
    const seq = run.seqAt(moment);
    this.state(parts, run, moment);
    this.queues(parts, run, seq);
    this.files(parts, run, seq);
    this.picked(parts, run, side, seq);
    return parts;
  }

  circle(parts, run, moment) {
    const way = run.circleAt(moment);
    if (!way.length) return;
    // The step that began to wait has the program's own name of the lock.
    const labels = way.map(({ step, words }) => (/waits for ([^,]+), held by/.exec(run.wordsAt(step)) || [null, words.replace(/ held by .*$/, "")])[1]);
    parts.push(toolrt.element("h3", {}, "They wait in a circle"), toolrt.circle(way.map(({ column }) => run.columns[column]), labels));
  }

  // The watch expression after this step, with the steps that changed it; of many those around this one.
  watch(parts, side, moment) {
    const { watching } = this.app;
    if (!watching) return;
    const values = watching.values[side];
    const now = values.indexOf(this.app.watchedAt(side, moment));
    const some = values.slice(Math.max(0, Math.min(now - 6, values.length - 12))).slice(0, 12);
    this.table(parts, `Watch: ${watching.text}`, ["Value", "From"], some, (each) => ({
      changed: each === values[now], cells: [each.text, each.step === moment ? "this step" : this.link(each.step)],
    }));
  }

  // Another schedule begins like this one up to here; the reader writes the task that is to run next behind it.
  playOn(parts, run, moment) {
    const { element } = toolrt;
    if (!run.hasSteps || !run.names.every((name) => /^[\w.=:-]+$/.test(name))) return;
    const next = moment + 1 < run.length ? run.enabledAt(moment + 1) : [];
    if (!next.length) return;
    parts.push(
      element("h3", {}, "Play on from here"),
      element("p", {}, `Behind this step could run ${next.slice(0, 8).join(", ")}${next.length > 8 ? " and others" : ""}: write one at the end of the schedule. Without it the simplest order follows.`),
      element("p", {}, element("button", { type: "button", "data-play": moment }, "Copy the beginning"), " ", element("code", {})),
    );
  }

  static lineFrom(run, moment) {
    const tokens = [];
    for (let step = 0; step <= moment; step += 1) {
      const name = run.nameAt(step);
      if (tokens.length && tokens.at(-1)[0] === name) tokens.at(-1)[1] += 1;
      else tokens.push([name, 1]);
    }
    const schedule = tokens.map(([name, times]) => (times > 1 ? `${name}*${times}` : name)).join(" ");
    // The line that runs it again has the program and the settings that it ran with.
    const again = document.querySelector("#verdict [data-copied]");
    const [, program, settings] = (again && /^sim\.replay\((.+?), "[^"]*"(.*)\)$/.exec(again.textContent)) || [null, "program", ""];
    return `sim.run(${program}, sim.Follow("${schedule}")${settings}, details=True)`;
  }

  list(parts, title, items, draw = (item) => item) {
    if (!items.length) return;
    const { element } = toolrt;
    const shown = items.slice(0, 25).map(draw);
    if (items.length > 25) shown.push(element("li", { class: "soft" }, `and ${(items.length - 25).toLocaleString("en")} more`));
    parts.push(element("h3", {}, title), element("ul", {}, shown.map((item) => (item instanceof Node ? item : element("li", {}, item)))));
  }

  event(told, fields) {
    const { element } = toolrt;
    const rest = Object.entries(fields).filter(([key, value]) => !["batch", "call", "state", "lane"].includes(key) && value !== null);
    if (!rest.length) return element("li", {}, told);
    const lines = rest.map(([key, value]) => `${key}: ${toolrt.written(value)}`);
    return element("li", {}, element("details", {}, element("summary", {}, told), element("pre", { class: "mono" }, lines.join("\n"))));
  }

  access(each) {
    const { element } = toolrt;
    const before = each.write && each.old !== null && each.value !== null ? `${each.old} -> ` : "";
    const value = each.value === null ? "" : before ? ` ${before}${each.value}` : ` = ${each.value}`;
    const next = each.next === null ? [] : [", touched again in ", this.link(each.next)];
    return element("li", {}, `${each.write ? "writes" : "reads"} ${each.resource}${value}`, ...next, each.line ? element("div", { class: "soft mono" }, `${each.where}  ${each.line}`) : null);
  }

  // The lines that steps ran from or touched something on, with some around each; those of this step and of the race.
  source(parts, run, side, moment) {
    const { element } = toolrt;
    const now = new Set(run.placesAt(moment));
    const file = [...now].map((place) => place.slice(0, place.lastIndexOf(":"))).find((name) => run.details.sources[name]);
    if (file === undefined) return false;
    const race = this.app.raceOf(side) || [];
    const marks = race.map((step) => new Set(run.placesAt(step)));
    const indents = run.details.sources[file].filter(([, text]) => text.trim()).map(([, text]) => text.length - text.trimStart().length);
    const margin = Math.min(...indents);
    let before = null;
    const items = [];
    for (const [line, text] of run.details.sources[file]) {
      if (before !== null && line > before + 1) items.push(element("li", { class: "gap", "aria-hidden": "true" }, element("span", {}, "⋮")));
      before = line;
      const place = `${file}:${line}`;
      const tags = marks.map((places, one) => (places.has(place) ? element("span", { class: "tag race", role: "img", "aria-label": one ? "race: second" : "race: first" }, one ? "R2" : "R1") : null)).filter(Boolean);
      const code = element("div", {}, text.trim() || " ");
      code.style.paddingLeft = `${Math.max(0, text.length - text.trimStart().length - margin) / 2}ch`;
      const classes = [now.has(place) ? "now" : "", tags.length ? "race" : ""].filter(Boolean).join(" ");
      items.push(element("li", { class: classes || null, "aria-current": now.has(place) ? "step" : null }, element("span", {}, String(line)), tags, code));
    }
    parts.push(element("h3", {}, `Source: ${file}`), element("ol", { class: "source mono", tabindex: 0, "aria-label": `Lines of ${file}` }, items));
    return true;
  }

  // Where each task stands after this step; of one that waits the whole stack, with what it waits for.
  tasks(parts, run, moment) {
    const { element } = toolrt;
    this.list(parts, "Tasks after this step", run.tasksAt(moment), (task) => {
      const does = task.unknown ? "not known whether it can run" : task.runs ? "can run" : task.words ? `waits for ${task.words}` : "waits";
      const since = task.runs || task.step === moment ? [] : [", since ", this.link(task.step)];
      const shown = task.runs ? task.frames.slice(-1) : task.frames;
      return element(
        "li", { class: "task" }, element("strong", {}, run.columns[task.column]), ` ${does}`, since,
        element("ol", { class: "stack mono" }, shown.map(([where, called, text]) => element("li", {}, element("span", { class: "soft" }, `${where} ${called} `), text))),
      );
    });
  }

  reasons(parts, run, moment) {
    const about = (edge, other) => `${other}, ${run.nameAt(other)}: ${edge.wakes ? "woke or began it" : ""}${edge.wakes && edge.resources.length ? ", and " : ""}${edge.resources.length ? `touched ${edge.resources.map((each) => run.resources[each]).join(", ")}` : ""}${edge.race ? " (a race: it could have come later)" : ""}`;
    this.list(parts, "Came after step", run.edgesTo.get(moment) || [], (edge) => about(edge, edge.before));
    this.list(parts, "Before step", run.edgesFrom.get(moment) || [], (edge) => `${edge.after}, ${run.nameAt(edge.after)}`);
  }

  choice(parts, run, moment) {
    if (!run.hasSteps) return;
    const ran = run.nameAt(moment);
    this.list(parts, "Could have run", run.enabledAt(moment), (name) => (name === ran ? `${name} (it did)` : name));
  }

  memory(parts, run, moment) {
    const hidden = run.batches.length > 0;
    const all = run.memoryAt(moment).filter((each) => !hidden || each.value !== null);
    const known = all.some((each) => each.value !== null);
    // What has a value comes first; of too many, what has just changed.
    const rank = (each) => (all.length > 25 && each.changed ? 0 : each.value !== null ? 1 : 2);
    all.sort((one, other) => rank(one) - rank(other));
    this.table(parts, "Memory now", ["Name", ...(known ? ["Value"] : []), "Written in"], all, (each) => ({
      changed: each.changed,
      cells: [
        each.resource,
        ...(known ? [this.change(each.changed, each.old, each.value)] : []),
        each.written === null ? "" : [each.written === moment ? "this step" : this.link(each.written), ...this.old(run, each)],
      ],
    }));
  }

  old(run, { written, resource }) {
    const found = run.outdated.get(written);
    return found && found.resource === resource ? [" ", toolrt.element("span", { class: "tag old", title: "from an old read" }, "old")] : [];
  }

  // "100 -> 50" where the step changed it, else what it holds; "?" is unknown.
  change(changed, old, value) {
    const { element } = toolrt;
    const holds = (each) => (each === null ? "?" : each);
    if (!changed) return value === null ? "" : value;
    if (old === null && value === null) return "";
    return [element("span", { class: "soft" }, holds(old)), " -> ", element("strong", {}, holds(value))];
  }

  link(moment) {
    return toolrt.element("button", { type: "button", class: "go", "data-go": moment }, `step ${moment}`);
  }

  table(parts, title, heads, items, make) {
    if (!items.length) return;
    const { element } = toolrt;
    const shown = items.slice(0, 25).map(make).map(({ changed, cells: [name, ...cells] }) => element(
      "tr", { class: changed ? "changed" : null },
      element("th", { scope: "row" }, name), cells.map((cell) => element("td", {}, ...[cell].flat())),
    ));
    parts.push(element("h3", {}, title), element(
      "table", { "aria-label": title },
      element("thead", {}, element("tr", {}, heads.map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, shown),
    ));
    if (items.length > 25) parts.push(element("p", { class: "soft" }, `and ${(items.length - 25).toLocaleString("en")} more`));
  }

  state(parts, run, moment) {
    const written = (value) => (value === undefined || value === null ? "none" : toolrt.written(value));
    for (const { batch, state, before, seq: at } of run.statesAt(moment)) {
      const [values, old] = [Panel.valuesOf(state), before === null ? {} : Panel.valuesOf(before)];
      const title = `State of ${batch}, as of event ${at}`;
      const entries = Object.entries(values);
      this.table(parts, title, ["Key", "Value"], entries, ([key, value]) => {
        const changed = before !== null && written(value) !== written(old[key]);
        return { changed, cells: [key, this.change(changed, written(old[key]), written(value))] };
      });
      this.list(parts, title, entries.length ? [] : ["empty"]);
    }
  }

  static valuesOf(state) {
    if (!state || typeof state !== "object") return { state };
    const fields = Object.fromEntries(Object.entries(state.fields || {}).filter(([, value]) => value !== null && !(Array.isArray(value) && !value.length)));
    return state.values || state.fields ? { ...(state.values || {}), ...fields } : state;
  }

  queues(parts, run, seq) {
    if (!run.calls.length) return;
    const now = run.callsAt(seq);
    this.list(parts, `Waiting: ${now.waiting.length}`, now.waiting, (call) => `${toolrt.callName(call)}: ${run.waits.reasonAt(call, seq)}`);
    this.list(parts, `Running: ${now.running.length}`, now.running, (call) => toolrt.callName(call));
    this.list(parts, `Finished, not read: ${now.kept.length}`, now.kept, (call) => `${toolrt.callName(call)}: ${call.outcome}`);
    this.list(parts, `Read: ${now.read.length}`, now.read, (call) => `${toolrt.callName(call)}: ${call.outcome}`);
  }

  files(parts, run, seq) {
    const { element } = toolrt;
    const doing = { "file.read": "read", "file.mutation_began": "being changed", "file.mutation_ended": "changed" };
    this.list(parts, "Files", run.filesAt(seq), (each) => element(
      "li", { class: each.seq === seq ? "changed" : null },
      `${each.file}: ${doing[each.kind] || each.kind} by call ${each.call}`, each.version ? element("span", { class: "soft mono" }, ` ${each.version}`) : null,
    ));
  }

  picked(parts, run, side) {
    const call = this.app.picked[side];
    if (!call) return;
    const { element } = toolrt;
    parts.push(element("h3", {}, `Call ${call.index}`), element("p", {}, `${call.name}, id ${call.id}: ${call.outcome || "no result"}`));
    const shown = [["input", call.input], ["error", call.error], ["content", call.content]].filter(([, value]) => value !== null && value !== undefined);
    for (const [title, value] of shown) parts.push(element("div", { class: "soft" }, title), element("pre", { class: "mono" }, toolrt.written(value)));
    parts.push(element("p", {}, `It ${run.waits.claims(call)}${call.lane === null ? "" : `, in lane ${call.lane}`}.`));
    if (call.waits.length) parts.push(element("p", {}, `It had to wait for ${run.waits.holders(call, run.waits.directOf(call))}.`));
  }
};
