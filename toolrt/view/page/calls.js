// Calls as rows, time to the right; lanes group them.  Only what is in view exists.
toolrt.GLYPHS = {
  ok: "✓", error: "✗", invalid: "!", denied: "⊘", timed_out: "◷", interrupted: "‖", not_started: "–", skipped: "»",
};

toolrt.CallsView = class CallsView {
  constructor(run, side, app) {
    this.run = run;
    this.side = side;
    this.app = app;
    this.rowHeight = 26;
    this.scaleFactor = 1;
    this.entries = CallsView.entries(run);
    this.direct = new Map();
    this.placeOf = new Map();
    this.entries.forEach((entry, place) => entry.call && this.placeOf.set(entry.call, place));
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
      entries.push({ batch });
      const lanes = new Map(batch.lanes.map((lane) => [lane.index, lane]));
      const calls = run.calls.filter((call) => call.batch === batch);
      for (const lane of lanes.values()) {
        entries.push({ batch, lane });
        for (const call of calls) if (call.lane === lane.index) entries.push({ batch, call });
      }
      const others = calls.filter((call) => !lanes.has(call.lane));
      if (others.length) entries.push({ batch, nowhere: true });
      for (const call of others) entries.push({ batch, call });
    }
    return entries;
  }

  zoom(factor) {
    const view = this.scroll;
    const width = this.bodyWidth;
    const at = (view.scrollLeft + (view.clientWidth - this.left) / 2) / width;
    this.scaleFactor = factor === 0 ? 1 : Math.min(400, Math.max(1, this.scaleFactor * factor));
    this.drawNow();
    view.scrollLeft = at * this.bodyWidth - (view.clientWidth - this.left) / 2;
    this.draw();
  }

  layout() {
    const events = this.run.events;
    this.left = this.app.narrow() ? 118 : this.scroll.clientWidth < 600 ? 170 : 250;
    const room = Math.max(120, this.scroll.clientWidth - this.left - 4);
    this.bodyWidth = room * this.scaleFactor;
    this.last = Math.max(1, events.kind.length - 1);
    this.from = events.time.length ? events.time[0] : 0;
    this.span = (events.time[events.time.length - 1] - this.from) || 1;
    this.byTime = this.app.scale === "time";
    this.sheet.style.width = `${this.left + this.bodyWidth}px`;
    this.sheet.style.height = `${28 + this.entries.length * this.rowHeight}px`;
    this.rows.style.top = "28px";
  }

  // The place of an event, in pixels from the left edge of the bars; 66 are kept for the last outcome.
  x(seq) {
    const share = this.byTime ? (this.run.events.time[seq] - this.from) / this.span : seq / this.last;
    return 2 + share * (this.bodyWidth - 82);
  }

  clicked(event) {
    const row = event.target.closest(".row");
    const entry = row && this.entries[Number(row.dataset.place)];
    if (entry && entry.call && event.target.closest(".label")) {
      this.app.pick(this.side, entry.call);
      return;
    }
    const at = event.clientX - this.sheet.getBoundingClientRect().left - this.left;
    if (at >= 0) this.app.goTo(this.run.momentOf(this.seqNear(at)));
    if (entry && entry.call) this.app.pick(this.side, entry.call, false);
  }

  seqNear(x) {
    const share = Math.min(1, Math.max(0, (x - 2) / (this.bodyWidth - 82)));
    if (!this.byTime) return Math.round(share * this.last);
    const times = this.run.events.time;
    return Math.max(0, toolrt.lastUpTo(times, this.from + share * this.span, (time) => time));
  }

  show(moment) {
    if (!this.scroll.clientHeight) return;
    this.layout();
    const view = this.scroll;
    const seq = this.run.seqAt(moment);
    if (seq >= 0) {
      const x = this.x(seq);
      const room = view.clientWidth - this.left;
      if (x < view.scrollLeft + 10 || x > view.scrollLeft + room - 90) view.scrollLeft = x - room / 2;
    }
    this.draw();
  }

  showCall(call) {
    const top = this.placeOf.get(call) * this.rowHeight;
    const view = this.scroll;
    if (top < view.scrollTop || top + this.rowHeight > view.scrollTop + view.clientHeight - 28) view.scrollTop = top - view.clientHeight / 2;
    this.draw();
  }

  drawNow() {
    if (!this.scroll.isConnected || this.scroll.clientHeight === 0) return;
    this.layout();
    const view = this.scroll;
    const first = Math.max(0, Math.floor((view.scrollTop - 28) / this.rowHeight) - 3);
    const last = Math.min(this.entries.length, Math.ceil((view.scrollTop + view.clientHeight) / this.rowHeight) + 3);
    // The stretch in view, with a margin, in pixels of the bars.
    this.near = Math.floor(view.scrollLeft / 400) * 400 - 40;
    this.far = this.near + view.clientWidth + 480;
    this.drawHeads();
    const size = `${this.left} ${this.bodyWidth} ${this.near} ${this.far} ${this.byTime}`;
    const picked = this.app.picked[this.side];
    this.shown.show(first, last, (place) => `${size} ${picked !== null && this.entries[place].call === picked}`);
    this.drawArrows(first, last);
    const seq = this.run.seqAt(this.app.momentOf(this.side));
    toolrt.placed(this.cursor, { left: this.left + (seq < 0 ? 0 : this.x(seq)), top: 28, height: this.entries.length * this.rowHeight });
    this.app.drawn += 1;
  }

  drawHeads() {
    const { element, placed } = toolrt;
    const heads = [placed(element("div", { class: "corner" }, "call"), { width: this.left })];
    const wanted = Math.max(1, Math.floor((this.bodyWidth - 82) / 110));
    const whole = this.byTime ? this.span : this.last;
    const rough = whole / wanted;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * unit).find((each) => each >= rough);
    const size = Math.max(step, this.byTime ? 0 : 1);
    const pixels = (this.bodyWidth - 82) / whole;
    const from = Math.max(0, Math.floor(this.near / pixels / size));
    for (let tick = from; tick * size <= whole && tick * size * pixels < this.far; tick += 1) {
      const label = this.byTime ? toolrt.seconds(tick * size) : `event ${Math.round(tick * size)}`;
      heads.push(placed(element("div", {}, label), { left: this.left + 2 + tick * size * pixels }));
    }
    this.heads.replaceChildren(...heads);
  }

  row(place) {
    const { element, placed } = toolrt;
    const entry = this.entries[place];
    const call = entry.call;
    const chosen = call && this.app.picked[this.side] === call;
    const made = element("div", {
      class: `row${call ? "" : " group"}${chosen ? " here" : ""}`,
      role: "row",
      "aria-rowindex": place + 1,
      "aria-selected": chosen ? "true" : "false",
      "data-place": place,
    });
    const text = this.label(entry);
    made.append(placed(element("div", { class: "label", role: "rowheader", title: this.sentence(entry) }, text), { width: this.left }));
    const bars = toolrt.svg("svg", { class: "bars", height: this.rowHeight, width: this.bodyWidth, role: "img", "aria-label": this.sentence(entry) });
    bars.append(...(call ? this.callBars(call) : this.groupBars(entry)));
    const cell = element("div", { role: "gridcell" });
    placed(cell, { left: this.left, width: this.bodyWidth });
    cell.style.padding = "0";
    cell.append(bars);
    made.append(cell);
    placed(made, { top: place * this.rowHeight, height: this.rowHeight });
    made.style.lineHeight = `${this.rowHeight}px`;
    return made;
  }

  label(entry) {
    if (entry.call) return `${toolrt.callName(entry.call)}`;
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
    const call = entry.call;
    const parts = call.spans.map(([phase, start, end]) => `${this.app.document.phases[phase]} from event ${start} to ${end}`);
    const waits = call.waits.length ? `; had to wait for calls ${call.waits.join(", ")}` : "";
    return `${name}: ${call.outcome || "no result"}${waits}; ${parts.join(", ")}`;
  }

  groupBars(entry) {
    const { svg } = toolrt;
    const middle = this.rowHeight / 2;
    if (entry.lane) {
      const end = entry.lane.merged === null ? this.last : entry.lane.merged;
      const [x0, x1] = [this.x(entry.lane.started), this.x(end)];
      const drawn = [svg("path", { class: "extent", fill: "none", d: `M${x0} ${middle + 6}V${middle}H${x1}` })];
      if (entry.lane.merged !== null) drawn.push(svg("polygon", { class: "merge", points: `${x1 - 6},${middle} ${x1},${middle - 6} ${x1 + 6},${middle} ${x1},${middle + 6}` }));
      return drawn;
    }
    return [];
  }

  callBars(call) {
    const { svg } = toolrt;
    const drawn = [];
    const middle = this.rowHeight / 2;
    for (const [phase, start, end] of call.spans) {
      const [x0, x1] = [this.x(start), this.x(end)];
      if (x1 < this.near || x0 > this.far) continue;
      const width = Math.max(2, x1 - x0);
      if (phase === "runs" || phase === "ends") drawn.push(svg("rect", { class: phase, x: x0, y: middle - 8, width, height: 16, rx: 2 }));
      else if (phase === "kept") drawn.push(svg("rect", { class: phase, x: x0, y: middle - 4, width, height: 8, rx: 2 }));
      else drawn.push(svg("line", { class: phase, x1: x0, x2: x0 + width, y1: middle, y2: middle }));
    }
    // Marks nearer to each other than a pixel or two are one.
    let before = -Infinity;
    for (const [seq, accepted] of call.progress) {
      const x = this.x(seq);
      if (x < this.near || x > this.far || x - before < 2) continue;
      before = x;
      drawn.push(svg("line", { class: accepted ? "progress" : "progress dropped", x1: x, x2: x, y1: middle - 8, y2: middle + 8 }));
    }
    if (call.outcome !== null) {
      const at = call.delivered ?? call.settled;
      const x = this.x(at) + 5;
      if (x < this.far) {
        drawn.push(svg("text", { x, y: middle + 4, class: call.outcome === "ok" ? "" : "bad" }, `${toolrt.GLYPHS[call.outcome] || "?"} ${call.outcome}`));
      }
    }
    return drawn;
  }

  drawArrows(first, last) {
    const drawn = [];
    const picked = this.app.picked[this.side];
    const of = (call, only = null) => {
      for (const index of this.directWaits(call)) {
        const other = this.run.callOf.get(`${call.batch.id} ${index}`);
        if (!other || other.ended === null || drawn.length > 600 || (only !== null && only !== index)) continue;
        const from = { x: this.left + this.x(other.ended), y: (this.placeOf.get(other) + 0.5) * this.rowHeight };
        const end = call.spans.find(([phase]) => phase === "tickets");
        const to = { x: this.left + this.x(end ? end[2] : call.started ?? call.submitted), y: (this.placeOf.get(call) + 0.5) * this.rowHeight };
        drawn.push(...toolrt.arrow(from, to, "wait"));
      }
    };
    if (this.app.arrows === "here" && picked) {
      of(picked);
      for (const call of this.run.calls) if (call !== picked && call.batch === picked.batch && this.directWaits(call).includes(picked.index)) of(call, picked.index);
    } else if (this.app.arrows === "all") {
      for (let place = first; place < last; place += 1) if (this.entries[place].call) of(this.entries[place].call);
    }
    toolrt.placed(this.overlay, { left: 0, top: 28 });
    this.overlay.setAttribute("width", this.left + this.bodyWidth);
    this.overlay.setAttribute("height", Math.max(1, this.entries.length * this.rowHeight));
    this.overlay.replaceChildren(...drawn);
  }

  // Whom a call waits for, without those that another of them waits for itself.
  directWaits(call) {
    const known = this.direct.get(call);
    if (known) return known;
    const implied = new Set(call.waits.flatMap((index) => (this.run.callOf.get(`${call.batch.id} ${index}`) || { waits: [] }).waits));
    const found = call.waits.filter((index) => !implied.has(index));
    this.direct.set(call, found);
    return found;
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
