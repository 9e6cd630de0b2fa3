// What happens at the moment, and what is so then.
toolrt.Panel = class Panel {
  constructor(host, app) {
    this.host = host;
    this.app = app;
    this.draw = toolrt.oncePerFrame(() => this.drawNow());
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
      element("p", { class: "soft" }, toolrt.seconds(run.timeAt(moment))),
    ];
    const marks = this.app.marksOf(side, moment);
    if (marks.words) parts.push(element("p", { class: "changed" }, marks.words.replace(/; $/, "")));
    this.list(parts, "Happened", run.seqsAt(moment), (seq) => this.event(run.events.told[seq], run.events.fields[seq]));
    this.list(parts, "Touched", run.touchedAt(moment), (each) => this.access(each));
    const place = run.details.steps[moment];
    if (place) this.list(parts, "Ran from", [element("li", {}, element("code", {}, `${place[0]}  ${place[1]}`))]);
    this.source(parts, run, side, moment);
    this.reasons(parts, run, moment);
    this.choice(parts, run, moment);
    this.memory(parts, run, moment);
    const seq = run.seqAt(moment);
    this.state(parts, run, moment);
    this.queues(parts, run, seq);
    this.files(parts, run, seq);
    this.picked(parts, run, side, seq);
    return parts;
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
    const text = `${each.write ? "writes" : "reads"} ${each.resource}${each.value === null ? "" : ` = ${each.value}`}`;
    return element("li", {}, text, each.line ? element("div", { class: "soft mono" }, `${each.where}  ${each.line}`) : null);
  }

  // The lines that steps ran from or touched something on, with some around each; those of this step and of the race.
  source(parts, run, side, moment) {
    const { element } = toolrt;
    const now = new Set(run.placesAt(moment));
    const file = [...now].map((place) => place.slice(0, place.lastIndexOf(":"))).find((name) => run.details.sources[name]);
    if (file === undefined) return;
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
    this.list(parts, "Memory now", all, (each) => {
      const value = each.value !== null ? ` = ${each.value}` : "";
      const writer = each.written !== null ? `, written in step ${each.written}` : value ? "" : ", not written yet";
      return toolrt.element("li", { class: each.touched === moment ? "changed" : null }, `${each.resource}${value}${writer}`);
    });
  }

  state(parts, run, moment) {
    const { element } = toolrt;
    for (const { batch, state, before, seq: at } of run.statesAt(moment)) {
      const values = Panel.valuesOf(state);
      const old = before === null ? {} : Panel.valuesOf(before);
      const items = Object.entries(values).map(([key, value]) => {
        const changed = before !== null && toolrt.written(value) !== toolrt.written(old[key]);
        return element("li", { class: changed ? "changed" : null }, `${key} = ${toolrt.written(value)}${changed ? ` (was ${toolrt.written(old[key] ?? null)})` : ""}`);
      });
      this.list(parts, `State of ${batch}, as of event ${at}`, items.length ? items : [element("li", { class: "soft" }, "empty")]);
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
