// One execution, and what was so at each of its steps.
//
// A moment is a step; in a recording without steps it is an event.  What was so at a moment is found by bisection in
// lists made once, so that going to any moment costs the same.
toolrt.Run = class Run {
  constructor(data) {
    Object.assign(this, data);
    this.hasSteps = data.steps.name.length > 0;
    this.length = this.hasSteps ? data.steps.name.length : data.events.kind.length;
    this.preempting = new Set(data.steps.preempts);
    this.hasTime = (this.hasSteps ? data.steps.time : data.events.time).some((time) => time !== 0);
    this.eventsOf = this.hasSteps ? this.groupEvents() : null;
    this.edgesTo = new Map();
    this.edgesFrom = new Map();
    const races = new Set((data.races || []).map((race) => `${race[0]} ${race[1]}`));
    for (const [before, after, resources, wakes] of data.edges) {
      const edge = { before, after, resources, wakes, race: races.has(`${before} ${after}`) };
      Run.into(this.edgesTo, after, edge);
      Run.into(this.edgesFrom, before, edge);
    }
    this.calls = data.batches.flatMap((batch) => batch.calls.map((call) => ({ ...call, batch })));
    this.callOf = new Map();
    for (const call of this.calls) this.callOf.set(`${call.batch.id} ${call.index}`, call);
    this.collect();
  }

  static into(map, key, value) {
    const list = map.get(key);
    if (list) list.push(value);
    else map.set(key, [value]);
  }

  groupEvents() {
    const found = Array.from({ length: this.length }, () => []);
    this.lastEvent = new Array(this.length).fill(-1);
    this.events.step.forEach((step, seq) => {
      if (step >= 0) found[step].push(seq);
    });
    let last = -1;
    for (let step = 0; step < this.length; step += 1) {
      if (found[step].length) last = found[step][found[step].length - 1];
      this.lastEvent[step] = last;
    }
    return found;
  }

  // Lists by file, batch and resource, each in the order of moments.
  collect() {
    this.files = new Map();
    this.states = new Map();
    this.resourceTouches = new Map();
    this.events.fields.forEach((fields, seq) => {
      const kind = this.kinds[this.events.kind[seq]];
      if (typeof fields.file === "string" && kind.startsWith("file.")) Run.into(this.files, fields.file, { seq, kind, fields });
      if (fields.state !== undefined && fields.batch !== undefined) Run.into(this.states, String(fields.batch), { seq, state: fields.state });
    });
    this.steps.touched.forEach((touched, step) => {
      for (const code of touched) Run.into(this.resourceTouches, code >> 1, { step, write: (code & 1) === 1 });
    });
    this.values = new Map();
    for (const [step, accesses] of Object.entries(this.details.accesses)) {
      for (const [code, , , value] of accesses) {
        const [write, last] = [(code & 1) === 1, (this.values.get(code >> 1) || []).at(-1)];
        // After a write whose value is unknown, nothing is known.
        if (value === null && !write) continue;
        // What a step wrote is there when it is over, whatever it read as well.
        if (write || !last || !last.write || last.step !== Number(step)) Run.into(this.values, code >> 1, { step: Number(step), value, write });
      }
    }
    for (const list of this.values.values()) list.sort((one, other) => one.step - other.step);
    this.collectStops();
    this.collectOutdated();
  }

  // The writes whose task had read the thing before another task wrote it, and not since: by step.
  collectOutdated() {
    this.outdated = new Map();
    const [reads, writes] = [new Map(), new Map()];
    this.steps.touched.forEach((touched, step) => {
      const column = this.steps.column[step];
      for (const code of touched) {
        const [resource, key] = [code >> 1, `${column} ${code >> 1}`];
        if (!this.values.has(resource)) continue;
        if ((code & 1) === 0) {
          reads.set(key, step);
          continue;
        }
        const [read, write] = [reads.get(key), writes.get(resource)];
        if (!touched.includes(code - 1) && read !== undefined && write && write.column !== column && write.step > read) {
          this.outdated.set(step, { resource: this.resources[resource], read, write: write.step });
        }
      }
      for (const code of touched) if ((code & 1) === 1) writes.set(code >> 1, { step, column });
    });
  }

  // Where the task of a column stopped, and what it waited for, in the order of steps.
  collectStops() {
    this.stops = new Map();
    this.taskWaits = new Map();
    const { frames, steps, waits } = this.details.stops;
    const byStep = (one, other) => one.step - other.step;
    for (const [key, places] of Object.entries(steps)) {
      const step = Number(key);
      if (step < this.length) Run.into(this.stops, this.columnAt(step), { step, frames: places.map((place) => frames[place]) });
    }
    for (const [step, task, words] of waits) Run.into(this.taskWaits, task, { step, words });
    for (const list of [...this.stops.values(), ...this.taskWaits.values()]) list.sort(byStep);
  }

  // ---- moments

  seqAt(moment) {
    if (this.length === 0) return -1;
    const at = Math.min(moment, this.length - 1);
    return this.hasSteps ? this.lastEvent[at] : at;
  }

  momentOf(seq) {
    if (!this.hasSteps) return seq;
    const step = this.events.step[seq];
    return step >= 0 ? step : 0;
  }

  columnAt(moment) {
    return (this.hasSteps ? this.steps : this.events).column[moment];
  }

  nameAt(moment) {
    return this.hasSteps ? this.names[this.steps.name[moment]] : this.columns[this.events.column[moment]];
  }

  timeAt(moment) {
    return (this.hasSteps ? this.steps : this.events).time[moment];
  }

  seqsAt(moment) {
    return this.hasSteps ? this.eventsOf[moment] : [moment];
  }

  wordsAt(moment) {
    const told = this.seqsAt(moment).map((seq) => this.events.told[seq]);
    if (!this.hasSteps) return told.join("; ");
    return told.length ? `${told.slice(0, 3).join("; ")}${told.length > 3 ? ` and ${told.length - 3} more` : ""}` : this.steps.done[moment];
  }

  // All that the page tells of a moment, in small letters.
  tells(moment) {
    return [this.columns[this.columnAt(moment)], this.wordsAt(moment), ...this.placesAt(moment), ...this.touchedAt(moment).map((each) => each.resource)].join(" ").toLowerCase();
  }

  // What a cell says at least: its first access without the verb, or the line that it ran from.
  static brief(words) {
    const place = /^runs from (.+:\d+)$/.exec(words);
    if (place) return place[1];
    const [first] = words.split(/, (?=reads |writes )/);
    return first.replace(/ and \d+ more$/, "").replace(/^(?:reads (?=.* = )|(?:reads\+)?writes (?=.* (?:->|=) ))/, "");
  }

  // Of each column the number of characters of the longest cell, in whole and in brief.
  get longest() {
    if (this.mostLetters === undefined) {
      this.mostLetters = this.columns.map(() => ({ whole: 0, brief: 0 }));
      for (let moment = 0; moment < this.length; moment += 1) {
        const [most, words] = [this.mostLetters[this.columnAt(moment)], this.wordsAt(moment)];
        const before = this.preempting.has(moment) ? 2 : 0;
        most.whole = Math.max(most.whole, before + words.length);
        most.brief = Math.max(most.brief, before + Run.brief(words).length);
      }
    }
    return this.mostLetters;
  }

  touchedAt(moment) {
    if (!this.hasSteps) return [];
    const values = new Map((this.details.accesses[moment] || []).map((entry) => [entry[0], entry]));
    return this.steps.touched[moment].map((code) => {
      const entry = values.get(code);
      const touches = this.resourceTouches.get(code >> 1);
      const next = touches[toolrt.lastUpTo(touches, moment, (touch) => touch.step) + 1];
      return {
        code,
        next: next ? next.step : null,
        write: (code & 1) === 1,
        resource: this.resources[code >> 1],
        where: entry ? entry[1] : null,
        line: entry ? entry[2] : null,
        value: entry ? entry[3] : null,
        old: this.valueBefore(code >> 1, moment),
      };
    });
  }

  // Where a step touched something, else where it ran: "file:line".
  placesAt(moment) {
    const touched = (this.details.accesses[moment] || []).map(([, where]) => where);
    const ran = this.details.steps[moment];
    return touched.length ? touched : ran ? [ran[0]] : [];
  }

  enabledAt(moment) {
    return this.hasSteps ? this.steps.enabled[moment].map((name) => this.names[name]) : [];
  }

  // ---- what was so

  callsAt(seq) {
    const found = { waiting: [], running: [], kept: [], read: [] };
    for (const call of this.calls) {
      if (call.submitted > seq) continue;
      if (call.delivered !== null && call.delivered <= seq) found.read.push(call);
      else if (call.settled !== null && call.settled <= seq) found.kept.push(call);
      else if (call.started !== null && call.started <= seq) found.running.push(call);
      else found.waiting.push(call);
    }
    return found;
  }

  phaseAt(call, seq) {
    const span = call.spans.find(([, start, end]) => start <= seq && seq < end);
    return span ? span[0] : null;
  }

  filesAt(seq) {
    const found = [];
    for (const [file, events] of this.files) {
      const last = toolrt.lastUpTo(events, seq, (event) => event.seq);
      if (last < 0) continue;
      const event = events[last];
      let version = null;
      for (let place = last; place >= 0 && version === null; place -= 1) version = events[place].fields.version || null;
      found.push({ file, version, kind: event.kind, seq: event.seq, call: event.fields.call });
    }
    return found;
  }

  // The state of each batch, and what it was at the moment before.
  statesAt(moment) {
    const found = [];
    const earlier = moment > 0 ? this.seqAt(moment - 1) : -1;
    for (const [batch, states] of this.states) {
      const last = toolrt.lastUpTo(states, this.seqAt(moment), (entry) => entry.seq);
      const before = toolrt.lastUpTo(states, earlier, (entry) => entry.seq);
      if (last >= 0) found.push({ batch, state: states[last].state, before: before >= 0 ? states[before].state : null, seq: states[last].seq });
    }
    return found;
  }

  // Each task that has stepped and has not ended: where it stands, and what it waits for unless it can run.
  tasksAt(moment) {
    const found = [];
    const next = moment + 1 < this.length ? new Set(this.enabledAt(moment + 1)) : new Set();
    for (const [column, stops] of this.stops) {
      const last = toolrt.lastUpTo(stops, moment, (stop) => stop.step);
      if (last < 0 || !stops[last].frames.length) continue;
      const task = this.columns[column].split(" ")[0];
      const waits = this.taskWaits.get(task) || [];
      const wait = waits[toolrt.lastUpTo(waits, moment, (entry) => entry.step)];
      const runs = next.has(task);
      // Of very many that can run not all are listed.
      const unknown = !runs && this.steps.more[moment + 1] !== undefined;
      found.push({ column, ...stops[last], runs, unknown, words: wait && wait.step >= stops[last].step ? wait.words : null });
    }
    return found.sort((one, other) => one.column - other.column);
  }

  // Which tasks wait for each other in a circle after a step, each with what it waits for; [] where none do.
  circleAt(moment) {
    const tasks = this.tasksAt(moment).filter((task) => !task.runs && task.words);
    const byName = new Map(tasks.map((task) => [this.columns[task.column].split(" ")[0], task]));
    const holder = (task) => byName.get((/ held by (?:.*\()?([\w.]+)\)?$/.exec(task.words) || [])[1]);
    for (const first of tasks) {
      const way = [];
      let task = first;
      while (task && !way.includes(task)) {
        way.push(task);
        task = holder(task);
      }
      if (task === first) return way;
    }
    return [];
  }

  // What each resource held when the step was over, and what it held before: null where that is unknown.
  memoryAt(moment) {
    const found = [];
    for (const [resource, touches] of this.resourceTouches) {
      const last = toolrt.lastUpTo(touches, moment, (touch) => touch.step);
      if (last < 0) continue;
      let writer = last;
      while (writer >= 0 && !touches[writer].write) writer -= 1;
      const written = writer >= 0 ? touches[writer].step : null;
      found.push({
        resource: this.resources[resource],
        value: this.valueAt(resource, moment),
        changed: written === moment,
        old: written === moment ? this.valueBefore(resource, moment) : null,
        written,
        touched: touches[last].step,
      });
    }
    return found;
  }

  valueAt(resource, moment) {
    const values = this.values.get(resource) || [];
    const last = toolrt.lastUpTo(values, moment, (entry) => entry.step);
    if (last >= 0) return values[last].value;
    // What the first step to touch it read was there before: every change is an access.
    return values.length && !values[0].write && this.resourceTouches.get(resource)[0].step === values[0].step ? values[0].value : null;
  }

  // What it held when the step began; what the step read before it wrote tells that too.
  valueBefore(resource, moment) {
    const values = this.values.get(resource) || [];
    const last = toolrt.lastUpTo(values, moment - 1, (entry) => entry.step);
    const first = values[last + 1];
    if (first && first.step === moment && !first.write) return first.value;
    return last >= 0 ? values[last].value : null;
  }
};
