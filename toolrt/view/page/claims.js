// What a call claims, which claim of another call it waits for, and what it does at an event.
toolrt.Waits = class Waits {
  constructor(run, phases) {
    this.run = run;
    this.phases = phases;
    this.direct = new Map();
    this.stepsOf = null;
    this.callOf = new Map();
  }

  other(call, index) {
    return this.run.callOf.get(`${call.batch.id} ${index}`);
  }

  // The calls that a call waits for, without those that another of them waits for itself.
  directOf(call) {
    const known = this.direct.get(call);
    if (known) return known;
    const implied = new Set(call.waits.flatMap((index) => (this.other(call, index) || { waits: [] }).waits));
    const found = call.waits.filter((index) => !implied.has(index));
    this.direct.set(call, found);
    return found;
  }

  claims(call) {
    if (call.ticket === null) return call.settled === null ? "has no ticket yet" : "takes no ticket";
    const more = call.unshown ? ` and ${call.unshown.toLocaleString("en")} more` : "";
    return call.claims.length ? `${call.claims.map(toolrt.claimTold).join(", ")}${more}` : "claims nothing";
  }

  // Which call holds back another one, and by which claim: "[0], which writes counter/x".
  holder(call, index) {
    const [, , theirs] = call.holders.find(([each]) => each === index) || [];
    const other = this.other(call, index);
    if (theirs === undefined || !other) return `[${index}], which may stop the batch`;
    return `[${index}], which ${toolrt.claimTold(other.claims[theirs])}`;
  }

  holders(call, indices) {
    const shown = indices.slice(0, 3).map((index) => this.holder(call, index));
    return `${shown.join("; ")}${indices.length > 3 ? `; and ${toolrt.count(indices.length - 3, "more call")}` : ""}`;
  }

  // "" before it is submitted, then: waits, runs, ends, and its outcome.
  stateAt(call, seq) {
    if (call.submitted > seq) return "";
    if (call.settled !== null && call.settled <= seq) return call.ended !== null && call.ended > seq ? "ends" : call.outcome;
    return call.started !== null && call.started <= seq ? "runs" : "waits";
  }

  // Why a call waits at an event, in words.
  reasonAt(call, seq) {
    const phase = this.run.phaseAt(call, seq);
    const words = this.phases[phase] || "waits";
    if (phase === "tickets") {
      const open = this.directOf(call).filter((index) => {
        const other = this.other(call, index);
        return other && (other.ended === null || other.ended > seq);
      });
      return open.length ? `waits for ${this.holders(call, open)}` : words;
    }
    if (phase === "slot") {
      const running = this.running(call, seq);
      return running.length ? `${words}: ${running.join(", ")} ${running.length > 1 ? "run" : "runs"}` : words;
    }
    if (phase === "lane" && call.lane !== null) return `waits for lane ${call.lane}`;
    return words;
  }

  running(call, seq) {
    return call.batch.calls.filter((each) => each.started !== null && each.started <= seq && (each.ended === null || each.ended > seq)).slice(0, 10).map((each) => `[${each.index}]`);
  }

  // The steps in which a call's tasks ran while it did.
  stepsOfCall(call) {
    if (!this.stepsOf) this.stepsOf = this.collectSteps();
    return this.stepsOf.get(call) || [];
  }

  // The call that a step is part of, if any.
  callAt(step) {
    if (!this.stepsOf) this.stepsOf = this.collectSteps();
    return this.callOf.get(step) || null;
  }

  // What a step read and wrote of which the value is known, or "".
  valuesAt(step) {
    if (!(this.run.details.accesses[step] || []).some(([, , , value]) => value !== null)) return "";
    const parts = this.run.steps.done[step].split(/, (?=(?:reads|writes) )/);
    return parts.filter((part) => / (?:=|->) /.test(part)).join(", ");
  }

  collectSteps() {
    const found = new Map();
    const { run } = this;
    if (!run.hasSteps) return found;
    const byTask = new Map();
    for (const call of run.calls) {
      if (call.started === null) continue;
      const first = run.events.step[call.started];
      if (first < 0) continue;
      const last = call.ended === null ? run.length : run.events.step[call.ended];
      toolrt.Run.into(byTask, run.nameAt(first), { call, first, last });
    }
    for (let step = 0; step < run.length; step += 1) {
      // A task inside a call's belongs to it, unless it is another call's.
      for (let task = run.nameAt(step); task; task = task.slice(0, Math.max(0, task.lastIndexOf(".")))) {
        const ran = (byTask.get(task) || []).find((each) => each.first <= step && step <= each.last);
        if (!ran) continue;
        toolrt.Run.into(found, ran.call, step);
        this.callOf.set(step, ran.call);
        break;
      }
    }
    return found;
  }
};

// Texts in one line, each at its place.  One that has no room before the next is told with it.
toolrt.Captions = class Captions {
  constructor(fold, font) {
    this.fold = fold;
    this.font = font;
  }

  // Of parts `{ x, texts, kind }`, in order: `texts` is what to say, and shorter.
  drawn(parts, end, near, far) {
    const groups = [];
    for (const part of parts) {
      const last = groups.at(-1);
      if (last && last.x + this.long(last.parts) + 12 > part.x) last.parts.push(part);
      else groups.push({ x: part.x, parts: [part] });
    }
    let free = 4;
    return groups.flatMap(({ x, parts: whole }, place) => {
      const room = place + 1 < groups.length ? groups[place + 1].x - 12 : end;
      // At the right edge it begins further to the left.
      const from = Math.max(free, Math.min(x, room - this.long(whole)));
      if (from > far || room < near) return [];
      const shown = this.fitting(whole, room - from);
      free = from + this.long(shown) + 12;
      const texts = shown.flatMap(({ texts: [text], kind }, number) => [number ? "; " : "", toolrt.svg("tspan", { class: kind }, text)]);
      return shown.length ? [toolrt.svg("text", { x: from, y: 36, class: "said" }, ...texts)] : [];
    });
  }

  fontOf(kind) {
    return kind ? `600 ${this.font}` : this.font;
  }

  long(parts) {
    return parts.reduce((sum, { texts, kind }) => sum + this.fold.width(texts[0], this.fontOf(kind)), 8 * Math.max(0, parts.length - 1));
  }

  // The parts as they are, else shorter, else as many words of them as fit.
  fitting(parts, room) {
    if (this.long(parts) <= room) return parts;
    const short = parts.map(({ texts, kind }) => ({ texts: [texts.at(-1)], kind }));
    if (this.long(short) <= room) return short;
    const shown = [];
    for (const { texts, kind } of short) {
      const text = this.fold.first(texts, this.fontOf(kind), room - (shown.length ? this.long(shown) + 8 : 0), 1);
      if (text !== "…") shown.push({ texts: [text], kind });
      if (text !== texts[0]) break;
    }
    return shown;
  }
};

// "write counter/x" is what a claim is called; "writes counter/x" is what its call does.
toolrt.claimTold = function claimTold(claim) {
  return claim.replace(/^(read|write) /, "$1s ");
};
