// What a player has reached, kept in the browser.  Where the browser keeps nothing, it lasts as long as the page, and links
// between the pages carry it.
toolrt.Progress = class Progress {
  constructor() {
    this.prefix = "toolrt.litmus.";
    this.memory = new Map();
    this.storage = null;
    try {
      const storage = window.localStorage;
      storage.setItem(`${this.prefix}?`, "1");
      storage.removeItem(`${this.prefix}?`);
      this.storage = storage;
    } catch {
      // Refused: a private window, a sandboxed frame, a setting.
    }
    this.takeFromAddress();
  }

  get isKept() {
    return this.storage !== null;
  }

  // Gives { solved, of, seen }: whether it is solved, how many classes its page had, and the numbers of those seen.
  of(name) {
    let found = this.memory.get(name);
    if (found === undefined && this.storage) found = this.read(this.storage.getItem(this.prefix + name));
    return found || { solved: false, of: 0, seen: [] };
  }

  read(text) {
    try {
      const { solved, of, seen } = JSON.parse(text);
      if (!Number.isInteger(of) || !Array.isArray(seen)) return null;
      return { solved: solved === true, of, seen: seen.filter((each) => Number.isInteger(each) && each >= 0 && each < of) };
    } catch {
      return null;
    }
  }

  note(name, entry) {
    this.memory.set(name, entry);
    if (!this.storage) return;
    try {
      this.storage.setItem(this.prefix + name, JSON.stringify(entry));
    } catch {
      this.storage = null;
    }
  }

  forget() {
    this.memory.clear();
    if (!this.storage) return;
    for (const key of Object.keys(this.storage)) if (key.startsWith(this.prefix)) this.storage.removeItem(key);
  }

  // The end of an address that tells another page what is known of `names`.
  address(names) {
    const known = names.map((name) => [name, this.of(name)]).filter(([, entry]) => entry.solved || entry.seen.length);
    return known.length ? `#progress=${encodeURIComponent(JSON.stringify(Object.fromEntries(known)))}` : "";
  }

  takeFromAddress() {
    const found = /^#progress=(.*)$/.exec(window.location.hash);
    if (!found) return;
    try {
      for (const [name, entry] of Object.entries(JSON.parse(decodeURIComponent(found[1])))) {
        const given = this.read(JSON.stringify(entry));
        const known = this.of(name);
        if (!given) continue;
        const seen = given.of === known.of ? [...new Set([...known.seen, ...given.seen])] : given.seen;
        this.note(name, { solved: given.solved || known.solved, of: given.of, seen });
      }
      history.replaceState(null, "", window.location.pathname + window.location.search);
    } catch {
      // An address that was written by hand.
    }
  }
};
