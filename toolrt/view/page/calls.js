// Calls as rows, time to the right; lanes group them, and above them stands the schedule.  Only what is in view exists.
toolrt.GLYPHS = {
  ok: "✓", error: "✗", invalid: "!", denied: "⊘", timed_out: "◷", interrupted: "‖", not_started: "–", skipped: "»",
};

toolrt.CallsView = class CallsView {
  constructor(run, side, app) {
    this.run = run;
    this.side = side;
    this.app = app;
    this.scaleFactor = 1;
    this.waits = run.waits;
    this.font = "12px system-ui, sans-serif";
    this.fold = new toolrt.Fold();
    this.written = new toolrt.Captions(this.fold, this.font);
    this.entries = CallsView.entries(run);
    // Where each row begins, in pixels; the last member is where they end.
    this.tops = [0];
    this.placeOf = new Map();
    this.entries.forEach((entry, place) => {
      if (entry.call) this.placeOf.set(entry.call, place);
      this.tops.push(this.tops[place] + (entry.call ? 42 : 26));
    });
    this.events = CallsView.places(run);
    // So many pixels after the last event are for its outcome.
    const outcomes = new Set(run.calls.map((call) => call.outcome || ""));
    this.tail = 24 + Math.max(0, ...[...outcomes].map((outcome) => this.fold.width(`✗ ${outcome}`, `600 ${this.font}`)));
    const { element } = toolrt;
    this.heads = element("div", { class: "heads", "aria-hidden": "true" });
    this.rows = element("div", { class: "rows", role: "presentation" });
    this.shown = new toolrt.Rows(this.rows, (place) => this.row(place));
    this.overlay = toolrt.svg("svg", { class: "overlay", "aria-hidden": "true" });
    this.cursor = element("div", { class: "cursor" });
    this.sheet = element("div", { class: "sheet", role: "presentation" }, this.heads, this.rows, this.overlay, this.cursor);
    this.scroll = element("div", {
      class: "scroll calls", tabindex: 0, role: "grid", "aria-label": `${run.name}: calls, time to the right`,
      "aria-rowcount": this.entries.length, "aria-readonly": true,
    }, this.sheet);
    this.draw = toolrt.oncePerFrame(() => this.drawNow());
    this.scroll.addEventListener("scroll", this.draw, { passive: true });
    this.scroll.addEventListener("click", (event) => this.clicked(event));
    this.size = new ResizeObserver(this.draw);
    this.size.observe(this.scroll);
  }

  static entries(run) {
    const entries = [];
    for (const batch of run.batches) {
      if (run.batches.length > 1) entries.push({ batch });
      const lanes = new Map(batch.lanes.map((lane) => [lane.index, lane]));
      const inLane = new Map();
      for (const call of run.calls) if (call.batch === batch) toolrt.Run.into(inLane, lanes.has(call.lane) ? call.lane : null, call);
      for (const lane of lanes.values()) {
        entries.push({ batch, lane });
        for (const call of inLane.get(lane.index) || []) entries.push({ batch, call });
      }
      if (inLane.has(null)) entries.push({ batch, nowhere: true });
      for (const call of inLane.get(null) || []) entries.push({ batch, call });
    }
    return entries;
  }

  // Where each event is on the line of order: events of a step stand within it, in their order.
  static places(run) {
    if (!run.hasSteps) return run.events.kind.map((_, seq) => seq);
    const places = [];
    run.eventsOf.forEach((seqs, step) => seqs.forEach((seq, place) => { places[seq] = step + (place + 1) / (seqs.length + 1); }));
    run.events.step.forEach((step, seq) => { if (step < 0) places[seq] = seq ? places[seq - 1] : 0; });
    return places;
  }

  zoom(factor) {
    const view = this.scroll;
    const at = (view.scrollLeft + (view.clientWidth - this.left) / 2) / this.bodyWidth;
    this.scaleFactor = factor === 0 ? 1 : Math.min(400, Math.max(1, this.scaleFactor * factor));
    this.drawNow();
    view.scrollLeft = at * this.bodyWidth - (view.clientWidth - this.left) / 2;
    this.draw();
  }

  layout() {
    const { run } = this;
    const times = run.events.time;
    const wide = this.scroll.clientWidth;
    this.left = this.app.narrow() ? 132 : wide < 600 ? 180 : 250;
    this.bodyWidth = Math.max(120, wide - this.left - 4) * this.scaleFactor;
    this.byTime = this.app.scale === "time";
    this.head = run.hasSteps && !this.byTime ? 54 : 28;
    this.whole = this.byTime ? (times[times.length - 1] - times[0]) || 1 : run.hasSteps ? run.length : Math.max(1, run.length - 1);
    this.pixels = (this.bodyWidth - this.tail) / this.whole;
    const looks = `${this.left} ${this.bodyWidth} ${this.head}`;
    if (looks === this.laidOut) return;
    this.laidOut = looks;
    this.sheet.style.width = `${this.left + this.bodyWidth}px`;
    this.sheet.style.height = `${this.head + this.tops.at(-1)}px`;
    this.rows.style.top = `${this.head}px`;
    this.heads.style.height = `${this.head}px`;
    toolrt.placed(this.cursor, { left: this.left, top: this.head, height: this.tops.at(-1) });
  }

  // The place of an event, in pixels from the left edge of the bars.
  x(seq) {
    return 2 + (this.byTime ? this.run.events.time[seq] - this.run.events.time[0] : this.events[seq]) * this.pixels;
  }

  // The place of a moment: what has happened by then is to its left.
  momentX(moment) {
    if (this.run.hasSteps && !this.byTime) return 2 + (moment + 1) * this.pixels;
    const seq = this.run.seqAt(moment);
    return seq < 0 ? 2 : this.x(seq);
  }

  clicked(event) {
    const row = event.target.closest(".row");
    const entry = row && this.entries[Number(row.dataset.place)];
    if (entry && entry.call && event.target.closest(".label")) {
      this.app.pick(this.side, entry.call);
      return;
    }
    const at = event.clientX - this.sheet.getBoundingClientRect().left - this.left;
    if (at >= 0) this.app.goTo(this.momentNear(at));
    if (entry && entry.call) this.app.pick(this.side, entry.call, false);
  }

  momentNear(x) {
    const share = Math.min(this.whole, Math.max(0, (x - 2) / this.pixels));
    if (!this.byTime) return this.run.hasSteps ? Math.floor(share) : Math.round(share);
    const times = this.run.events.time;
    return this.run.momentOf(Math.max(0, toolrt.lastUpTo(times, times[0] + share, (time) => time)));
  }

  show(moment) {
    if (!this.scroll.clientHeight) return;
    this.layout();
    const view = this.scroll;
    const x = this.momentX(moment);
    const room = view.clientWidth - this.left;
    if (x < view.scrollLeft + 10 || x > view.scrollLeft + room - 90) view.scrollLeft = x - room / 2;
    this.draw();
  }

  showCall(call) {
    const place = this.placeOf.get(call);
    const view = this.scroll;
    if (this.tops[place] < view.scrollTop || this.tops[place + 1] > view.scrollTop + view.clientHeight - this.head) {
      view.scrollTop = this.tops[place] - view.clientHeight / 2;
    }
    this.draw();
  }

  drawNow() {
    if (!this.scroll.isConnected || this.scroll.clientHeight === 0) return;
    const view = this.scroll;
    const [top, height, beside] = [view.scrollTop, view.clientHeight, view.scrollLeft];
    this.layout();
    const first = Math.max(0, toolrt.lastUpTo(this.tops, top - this.head, (each) => each) - 2);
    const last = Math.min(this.entries.length, toolrt.lastUpTo(this.tops, top + height, (each) => each) + 3);
    // The stretch in view, with a margin, in pixels of the bars.
    this.near = Math.floor(beside / 400) * 400 - 40;
    this.far = this.near + view.clientWidth + 480;
    const size = `${this.left} ${this.bodyWidth} ${this.near} ${this.far} ${this.byTime} ${this.app.marked(this.side).join(" ")}`;
    const moment = this.app.momentOf(this.side);
    this.drawHeads(size, moment);
    const seq = this.run.seqAt(moment);
    const picked = this.app.picked[this.side];
    this.shown.show(first, last, (place) => {
      const { call } = this.entries[place];
      return call ? `${size} ${call === picked} ${this.waits.stateAt(call, seq)}` : size;
    });
    this.drawArrows(first, last);
    this.cursor.style.transform = `translateX(${this.momentX(moment) - 1}px)`;
    this.app.drawn += 1;
  }

  // ---- the line, and the schedule below it

  drawHeads(size, moment) {
    if (this.headLooks !== size) {
      this.headLooks = size;
      this.boxes = new Map();
      this.heads.replaceChildren(...this.ticks(), ...(this.head > 28 ? this.schedule() : []));
    }
    if (this.box) this.box.classList.remove("here");
    this.box = this.boxes.get(moment) || null;
    if (this.box) this.box.classList.add("here");
  }

  ticks() {
    const { element, placed } = toolrt;
    const [only, ...others] = this.run.batches;
    const about = only && !others.length ? this.sentence({ batch: only }) : null;
    const heads = [placed(element("div", { class: "corner", title: about }, "call, claims"), { width: this.left })];
    const rough = this.whole / Math.max(1, Math.floor((this.bodyWidth - this.tail) / 110));
    const unit = 10 ** Math.floor(Math.log10(rough));
    const size = Math.max([1, 2, 5, 10].map((each) => each * unit).find((each) => each >= rough), this.byTime ? 0 : 1);
    const from = Math.max(0, Math.floor(this.near / this.pixels / size));
    const word = this.run.hasSteps ? "step" : "event";
    for (let tick = from; tick * size <= this.whole && tick * size * this.pixels < this.far; tick += 1) {
      const label = this.byTime ? toolrt.seconds(tick * size) : `${word} ${Math.round(tick * size)}`;
      heads.push(placed(element("div", {}, label), { left: this.left + 2 + tick * size * this.pixels }));
    }
    return heads;
  }

  // A box for each step, with its call or task where there is room, and the marks that the steps have.
  schedule() {
    const { element, placed } = toolrt;
    const { run } = this;
    const made = [placed(element("div", { class: "corner second" }, "schedule"), { width: this.left, top: 28 })];
    const marked = new Set(this.app.marked(this.side));
    const wide = this.pixels - 2;
    const from = Math.max(0, Math.floor(this.near / this.pixels));
    const to = Math.min(run.length, Math.ceil(this.far / this.pixels));
    for (let step = from; step < to; step += 1) {
      const marks = this.app.marksOf(this.side, step);
      if (wide < 3 && !marked.has(step)) continue;
      const name = run.nameAt(step);
      const call = this.waits.callAt(step);
      const mark = marks.race ? (marks.race === "race: first" ? "R1" : "R2") : marks.parts ? "≠" : "";
      const who = call ? `[${call.index}]` : name;
      const text = this.fold.first([`${mark ? `${mark} ` : ""}${who}`, mark || who, ""], this.font, wide - 6, 1);
      const classes = ["box", marks.parts ? "parts" : "", marks.race ? "race" : "", run.preempting.has(step) ? "preempts" : ""].filter(Boolean).join(" ");
      const box = placed(element("div", { class: classes, title: `step ${step}, ${name}: ${marks.words}${run.wordsAt(step)}` }, text === "…" ? "" : text), { left: this.left + 2 + step * this.pixels, width: Math.max(3, wide) });
      this.boxes.set(step, box);
      made.push(box);
    }
    return made;
  }

  // ---- rows

  row(place) {
    const { element, placed } = toolrt;
    const entry = this.entries[place];
    const { call } = entry;
    const chosen = call && this.app.picked[this.side] === call;
    const height = this.tops[place + 1] - this.tops[place];
    const sentence = this.sentence(entry);
    const label = placed(element("div", { class: "label", role: "rowheader", title: sentence }), { width: this.left });
    if (call) label.append(...this.callLabel(call));
    else label.textContent = this.label(entry);
    const bars = toolrt.svg("svg", { class: "bars", height, width: this.bodyWidth, role: "img", "aria-label": sentence });
    bars.append(...(call ? this.callBars(call) : this.groupBars(entry)));
    const cell = placed(element("div", { class: "line", role: "gridcell" }, bars), { left: this.left, width: this.bodyWidth });
    return placed(element("div", {
      class: `row${call ? "" : " group"}${chosen ? " here" : ""}`,
      role: "row",
      "aria-rowindex": place + 1,
      "aria-selected": chosen ? "true" : "false",
      "data-place": place,
    }, label, cell), { top: this.tops[place], height });
  }

  // The name and, at the right, what it does now; its claims below.
  callLabel(call) {
    const { element } = toolrt;
    const state = this.waits.stateAt(call, this.run.seqAt(this.app.momentOf(this.side)));
    const glyph = toolrt.GLYPHS[state] ? `${toolrt.GLYPHS[state]} ` : "";
    const kind = !state || state === "ok" ? "" : toolrt.GLYPHS[state] ? " bad" : ` ${state}`;
    return [
      element("div", { class: "name" }, element("span", {}, toolrt.callName(call)), element("span", { class: `state${kind}` }, `${glyph}${state}`)),
      element("div", { class: "claims" }, this.waits.claims(call)),
    ];
  }

  label(entry) {
    if (entry.call) return toolrt.callName(entry.call);
    if (entry.lane) return `lane ${entry.lane.index}${entry.lane.shared ? "" : " · alone"}`;
    if (entry.nowhere) return "in no lane";
    return this.app.narrow() ? entry.batch.id : entry.batch.label;
  }

  sentence(entry) {
    const name = this.label(entry);
    if (!entry.call) {
      if (entry.lane) return `${name}, ${entry.lane.shared ? "calls may overlap" : "one call alone"}`;
      return entry.nowhere ? name : `${name}, lanes ${entry.batch.policy}, at most ${entry.batch.limit} at once`;
    }
    const { call } = entry;
    const parts = call.spans.map(([phase, start, end]) => `${this.app.document.phases[phase]} from event ${start} to ${end}`);
    const waits = call.waits.length ? `; had to wait for ${this.waits.holders(call, this.waits.directOf(call))}` : "";
    return `${name}: ${call.outcome || "no result"}; ${this.waits.claims(call)}${waits}; ${parts.join(", ")}`;
  }

  groupBars(entry) {
    const { svg } = toolrt;
    if (!entry.lane) return [];
    const end = entry.lane.merged === null ? this.run.events.kind.length - 1 : entry.lane.merged;
    const [x0, x1] = [this.x(entry.lane.started), this.x(end)];
    const drawn = [svg("path", { class: "extent", fill: "none", d: `M${x0} 19V13H${x1}` })];
    if (entry.lane.merged !== null) drawn.push(svg("polygon", { class: "merge", points: `${x1 - 6},13 ${x1},7 ${x1 + 6},13 ${x1},19` }));
    return drawn;
  }

  callBars(call) {
    const { svg } = toolrt;
    const drawn = [];
    const steps = this.byTime ? [] : this.waits.stepsOfCall(call);
    for (const [phase, start, end] of call.spans) {
      const [x0, x1] = [this.x(start), this.x(end)];
      if (x1 < this.near || x0 > this.far) continue;
      const width = Math.max(2, x1 - x0);
      if (phase === "runs") drawn.push(svg("rect", { class: steps.length ? "runs while" : "runs", x: x0, y: 5, width, height: 16, rx: 2 }));
      else if (phase === "ends") drawn.push(svg("rect", { class: phase, x: x0, y: 5, width, height: 16, rx: 2 }));
      else if (phase === "kept") drawn.push(svg("rect", { class: phase, x: x0, y: 9, width, height: 8, rx: 2 }));
      else drawn.push(svg("line", { class: phase, x1: x0, x2: x0 + width, y1: 13, y2: 13 }));
    }
    drawn.push(...this.ranBars(call, steps));
    // Marks nearer to each other than a pixel or two are one.
    let before = -Infinity;
    for (const [seq, accepted] of call.progress) {
      const x = this.x(seq);
      if (x < this.near || x > this.far || x - before < 2) continue;
      before = x;
      drawn.push(svg("line", { class: accepted ? "progress" : "progress dropped", x1: x, x2: x, y1: 5, y2: 21 }));
    }
    if (call.outcome !== null) {
      const x = this.x(call.spans.at(-1)[2]) + 5;
      if (x < this.far) {
        drawn.push(svg("text", { x, y: 17, class: call.outcome === "ok" ? "" : "bad" }, `${toolrt.GLYPHS[call.outcome] || "?"} ${call.outcome}`));
      }
    }
    return [...drawn, ...this.captions(call, steps)];
  }

  // Those steps of the time it ran in which it was its turn.
  ranBars(call, steps) {
    const [from, to] = [this.x(call.started ?? 0), this.x(call.ended ?? this.run.events.kind.length - 1)];
    const drawn = [];
    let before = -Infinity;
    for (const step of steps) {
      const x0 = Math.max(from, 2 + step * this.pixels);
      const x1 = Math.min(to, 2 + (step + 1) * this.pixels);
      if (x1 < this.near || x0 > this.far || x1 - before < 1) continue;
      before = x1;
      drawn.push(toolrt.svg("rect", { class: "runs", x: x0, y: 5, width: Math.max(1, x1 - x0), height: 16 }));
    }
    return drawn;
  }

  // Below the bars: what it waited for, what it read and wrote, and its error.
  captions(call, steps) {
    const said = [];
    for (const [phase, start, end] of call.spans) {
      // What holds it back is told as of the time just before it goes on.
      if (phase === "tickets" || phase === "slot") said.push({ x: this.x(start), texts: [this.waits.reasonAt(call, phase === "slot" ? end - 1 : start)], kind: "" });
    }
    for (const step of steps) {
      const values = this.waits.valuesAt(step);
      if (values) said.push({ x: Math.max(this.x(call.started), 2 + step * this.pixels), texts: [values, values.replace(/^(?:reads|writes) /, "")], kind: this.app.marksOf(this.side, step).race ? "race" : "" });
    }
    if (call.error !== null) said.push({ x: this.x(call.settled), texts: [call.error], kind: "bad" });
    return this.written.drawn(said.sort((one, other) => one.x - other.x), this.bodyWidth - 4, this.near, this.far);
  }

  drawArrows(first, last) {
    const drawn = [];
    const [top, picked] = [this.tops[first], this.app.picked[this.side]];
    const middle = (call) => this.tops[this.placeOf.get(call)] + 13 - top;
    const of = (call, only = null) => {
      for (const index of this.waits.directOf(call)) {
        const other = this.waits.other(call, index);
        if (!other || other.ended === null || drawn.length > 600 || (only !== null && only !== index)) continue;
        const from = { x: this.left + this.x(other.ended), y: middle(other) };
        const end = call.spans.find(([phase]) => phase === "tickets");
        const to = { x: this.left + this.x(end ? end[2] : call.started ?? call.submitted), y: middle(call) };
        drawn.push(...CallsView.elbow(from, to));
      }
    };
    if (this.app.arrows === "here" && picked) {
      of(picked);
      for (const call of picked.batch.calls) {
        const other = this.waits.other(picked, call.index);
        if (other !== picked && this.waits.directOf(other).includes(picked.index)) of(other, picked.index);
      }
    } else if (this.app.arrows === "all") {
      for (let place = first; place < last; place += 1) if (this.entries[place].call) of(this.entries[place].call);
    }
    if (!drawn.length && !this.overlay.firstChild) return;
    toolrt.placed(this.overlay, { left: 0, top: this.head + top });
    this.overlay.setAttribute("width", this.left + this.bodyWidth);
    this.overlay.setAttribute("height", Math.max(1, this.tops[last] - top));
    this.overlay.replaceChildren(...drawn);
  }

  // Down or up from where one call ended, then to where the other one could go on.
  static elbow(from, to) {
    const [down, far] = [to.y > from.y ? 1 : -1, Math.abs(to.x - from.x) > 12];
    const side = to.x > from.x ? 1 : -1;
    const start = from.y + 9 * down;
    const path = far ? `M${from.x} ${start}V${to.y}H${to.x - 6 * side}` : `M${from.x} ${start}V${to.y - 14 * down}`;
    const tip = far ? `${to.x},${to.y} ${to.x - 8 * side},${to.y - 4} ${to.x - 8 * side},${to.y + 4}` : `${from.x},${to.y - 8 * down} ${from.x - 4},${to.y - 16 * down} ${from.x + 4},${to.y - 16 * down}`;
    return [toolrt.svg("path", { class: "arrow wait", d: path }), toolrt.svg("polygon", { class: "head wait", points: tip })];
  }

  close() {
    this.size.disconnect();
  }
};

toolrt.callName = function callName(call) {
  const input = call.input;
  let subject = "";
  if (input && typeof input === "object") {
    const first = input.path ?? input.file ?? input.command ?? Object.values(input).find((value) => typeof value === "string");
    if (typeof first === "string") subject = ` ${first}`;
  }
  return `[${call.index}] ${call.name}${subject}`;
};
