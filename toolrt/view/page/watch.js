// A watch expression: Python's comparisons, arithmetic, and, or, not, over what the steps recorded.
//
// It is read by the few rules below and never run as a program.  What is not recorded is unknown, and so is what follows
// from it: undefined, shown as "?".
toolrt.Watch = class Watch {
  constructor(text) {
    this.text = text;
    this.names = new Set();
    this.left = Watch.words(text);
    this.value = this.any();
    if (this.left.length) throw new Error(`${this.left[0]} is not expected here`);
  }

  static words(text) {
    const found = [];
    const word = /\s*(?:(\d+(?:\.\d+)?|[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}_][\p{L}\p{N}_]*)*|\{[^{}]+\}|'[^']*'|"[^"]*"|[=!<>]=|\/\/|[-+*/%()<>])|$)/uy;
    while (word.lastIndex < text.length) {
      const at = word.lastIndex;
      const match = word.exec(text);
      if (!match) throw new Error(`${text.slice(at).trim()[0]} is not known`);
      if (match[1] === undefined) break;
      found.push(match[1]);
    }
    return found;
  }

  takes(...words) {
    return words.includes(this.left[0]) ? this.left.shift() : null;
  }

  // ---- the rules, what binds least first; each gives a function of the recorded values

  any() {
    let value = this.all();
    while (this.takes("or")) value = Watch.both(value, this.all(), true);
    return value;
  }

  all() {
    let value = this.not();
    while (this.takes("and")) value = Watch.both(value, this.not(), false);
    return value;
  }

  // Of "and" a false side decides, of "or" a true one, whatever is not known of the other.
  static both(one, other, decides) {
    return (at) => {
      const [left, right] = [Watch.truth(one(at)), Watch.truth(other(at))];
      if (left === decides || right === decides) return decides;
      return left === undefined || right === undefined ? undefined : !decides;
    };
  }

  not() {
    if (!this.takes("not")) return this.compared();
    const value = this.not();
    return (at) => {
      const truth = Watch.truth(value(at));
      return truth === undefined ? undefined : !truth;
    };
  }

  // As in Python, a < b < c is a < b and b < c.
  compared() {
    let left = this.sum();
    let value = null;
    for (let sign = this.comparison(); sign; sign = this.comparison()) {
      const [one, other] = [left, this.sum()];
      const compare = Watch.COMPARE[sign];
      const pair = (at) => compare(one(at), other(at));
      value = value ? Watch.both(value, pair, false) : pair;
      left = other;
    }
    return value || left;
  }

  comparison() {
    return this.takes(...Object.keys(Watch.COMPARE));
  }

  sum() {
    return this.chain(() => this.product(), "+", "-");
  }

  product() {
    return this.chain(() => this.signed(), "*", "/", "//", "%");
  }

  chain(part, ...signs) {
    let value = part();
    for (let sign = this.takes(...signs); sign; sign = this.takes(...signs)) {
      const [one, other, count] = [value, part(), Watch.COUNT[sign]];
      value = (at) => {
        const [left, right] = [Watch.number(one(at)), Watch.number(other(at))];
        return left === undefined || right === undefined ? undefined : Watch.sure(count(left, right));
      };
    }
    return value;
  }

  signed() {
    if (!this.takes("-")) return this.atom();
    const value = this.signed();
    return (at) => {
      const number = Watch.number(value(at));
      return number === undefined ? undefined : -number;
    };
  }

  atom() {
    const word = this.left.shift();
    if (word === undefined) throw new Error("something is missing at the end");
    if (word === "(") {
      const value = this.any();
      if (!this.takes(")")) throw new Error(") is missing");
      return value;
    }
    if (/^[\d'"]/.test(word) || ["True", "False", "None"].includes(word)) {
      const value = Watch.read(word);
      return () => value;
    }
    if (!/^[\p{L}_{]/u.test(word) || ["and", "or", "not"].includes(word)) throw new Error(`${word} is not expected here`);
    const name = word.replace(/^\{|\}$/g, "");
    this.names.add(name);
    return (at) => at(name);
  }

  // ---- values: numbers, texts, true, false, null; { text } of anything else

  // Reads what was recorded, as Python writes it.
  static read(text) {
    if (text === null || /(?:\.\.\.|…|characters\))$/.test(text)) return undefined;
    if (/^-?\d+(?:\.\d+)?(?:e[-+]?\d+)?$/.test(text)) {
      const number = Number(text);
      return Number.isSafeInteger(number) || /[.e]/.test(text) ? number : { text };
    }
    const constant = { True: true, False: false, None: null };
    if (Object.hasOwn(constant, text)) return constant[text];
    const quoted = /^(?:'([^'\\]*)'|"([^"\\]*)")$/.exec(text);
    return quoted ? quoted[1] ?? quoted[2] : { text };
  }

  static number(value) {
    return typeof value === "boolean" ? Number(value) : typeof value === "number" ? value : undefined;
  }

  // Beyond this a whole number is no longer exact.
  static sure(number) {
    return Number.isFinite(number) && Math.abs(number) <= Number.MAX_SAFE_INTEGER ? number : undefined;
  }

  static truth(value) {
    return value === undefined || (value !== null && typeof value === "object") ? undefined : Boolean(value);
  }

  static equal(one, other) {
    if (one === undefined || other === undefined) return undefined;
    const odd = (value) => value !== null && typeof value === "object";
    // What is written alike is equal; what is not may be equal all the same.
    if (odd(one) || odd(other)) return odd(one) && odd(other) && one.text === other.text ? true : undefined;
    const [left, right] = [Watch.number(one), Watch.number(other)];
    return left !== undefined && right !== undefined ? left === right : one === other;
  }

  static order(compare) {
    return (one, other) => {
      const [left, right] = [Watch.number(one), Watch.number(other)];
      return left === undefined || right === undefined ? undefined : compare(left, right);
    };
  }

  static written(value) {
    if (value === undefined) return "?";
    if (value === null) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    return typeof value === "object" ? value.text : typeof value === "string" ? `'${value}'` : String(value);
  }

  // ---- over an execution

  // The value after each step at which it changes: {step, text}, from step 0 on.
  static over(run, text) {
    const watch = new Watch(text);
    const lists = new Map();
    for (const name of watch.names) {
      const resource = [...run.resourceTouches.keys()].find((each) => [name, name.replaceAll(".", " ")].includes(run.resources[each]));
      if (resource === undefined) throw new Error(`${name} is not recorded`);
      lists.set(name, { resource, values: run.values.get(resource) || [] });
    }
    const steps = new Set([0]);
    for (const { values } of lists.values()) for (const { step } of values) steps.add(step);
    const found = [];
    for (const step of [...steps].sort((one, other) => one - other)) {
      const now = Watch.written(watch.value((name) => Watch.read(run.valueAt(lists.get(name).resource, step))));
      if (!found.length || found.at(-1).text !== now) found.push({ step, text: now });
    }
    return found;
  }
};

toolrt.Watch.COMPARE = {
  "==": (one, other) => toolrt.Watch.equal(one, other),
  "!=": (one, other) => {
    const equal = toolrt.Watch.equal(one, other);
    return equal === undefined ? undefined : !equal;
  },
  "<": toolrt.Watch.order((one, other) => one < other),
  "<=": toolrt.Watch.order((one, other) => one <= other),
  ">": toolrt.Watch.order((one, other) => one > other),
  ">=": toolrt.Watch.order((one, other) => one >= other),
};

// Division and its rest are Python's: they round down.
toolrt.Watch.COUNT = {
  "+": (one, other) => one + other,
  "-": (one, other) => one - other,
  "*": (one, other) => one * other,
  "/": (one, other) => one / other,
  "//": (one, other) => Math.floor(one / other),
  "%": (one, other) => one - other * Math.floor(one / other),
};
