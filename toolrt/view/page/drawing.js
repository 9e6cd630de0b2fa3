// What the views of a schedule share: arrows, texts that fit, rows that are kept.
toolrt.placed = function placed(element, box) {
  for (const [side, value] of Object.entries(box)) element.style[side] = `${value}px`;
  return element;
};

// An arrow from one point to another, drawn as a curve that leaves and arrives sideways.
// `leaves` and `arrives` are 1 to the right, -1 to the left.
toolrt.arrow = function arrow(from, to, kind, leaves = 1, arrives = leaves) {
  const bend = Math.min(60, Math.max(14, Math.abs(to.x - from.x) / 2));
  const path = `M${from.x} ${from.y}C${from.x + leaves * bend} ${from.y} ${to.x - arrives * bend} ${to.y} ${to.x - arrives * 6} ${to.y}`;
  const tip = `${to.x},${to.y} ${to.x - arrives * 8},${to.y - 4} ${to.x - arrives * 8},${to.y + 4}`;
  return [toolrt.svg("path", { class: `arrow ${kind}`, d: path }), toolrt.svg("polygon", { class: `head ${kind}`, points: tip })];
};

// Texts that fit: whole words in lines of a width.  Of one that is too long as many words are kept as fit.
toolrt.Fold = class Fold {
  constructor() {
    this.pen = document.createElement("canvas").getContext("2d");
    this.widths = new Map();
  }

  width(word, font) {
    const key = `${font} ${word}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > 20_000) this.widths.clear();
      this.pen.font = font;
      width = this.pen.measureText(word).width;
      this.widths.set(key, width);
    }
    return width;
  }

  // Says whether `words` fit in `lines` lines of `width` pixels; in the first one `taken` are taken.
  fits(words, font, width, lines, taken) {
    const space = this.width(" ", font);
    let [line, x] = [1, taken];
    for (const word of words) {
      const long = this.width(word, font);
      const before = x > 0 ? space : 0;
      if (x + before + long <= width) {
        x += before + long;
        continue;
      }
      if (x > 0) line += 1;
      line += Math.max(0, Math.ceil(long / width) - 1);
      x = long % width;
      if (line > lines) return false;
    }
    return line <= lines;
  }

  // The first of `texts` that fits, else the beginning of the last one.
  first(texts, font, width, lines, taken = 0) {
    for (const text of texts) if (this.fits(text.split(" "), font, width, lines, taken)) return text;
    const words = texts[texts.length - 1].split(" ");
    for (let count = words.length - 1; count > 0; count -= 1) {
      const some = [...words.slice(0, count), "…"];
      if (this.fits(some, font, width, lines, taken)) return some.join(" ");
    }
    return "…";
  }
};

// The rows of a view.  One that looks as it did stays as it is: to make an element costs much more than to keep it.
toolrt.Rows = class Rows {
  constructor(host, make) {
    this.host = host;
    this.make = make;
    this.kept = new Map();
  }

  // Has the rows from `first` to `last` there, and no others; `looks` tells what a row's looks depend on.  What changes
  // without a new row is for `mark`, which is called when `state` of the row is no longer what it was.
  show(first, last, looks, state = () => null, mark = null) {
    for (const [place, row] of this.kept) {
      if (place < first || place >= last || row.looks !== looks(place)) {
        row.element.remove();
        this.kept.delete(place);
      }
    }
    let after = null;
    for (let place = last - 1; place >= first; place -= 1) {
      let row = this.kept.get(place);
      if (!row) {
        row = { element: this.make(place), looks: looks(place), state: null };
        this.kept.set(place, row);
        this.host.insertBefore(row.element, after);
      }
      after = row.element;
      const now = state(place);
      if (row.state !== now) {
        row.state = now;
        mark(row.element, now);
      }
    }
  }
};

// Gives `host` those children, and keeps those of its own that equal one, in order: what stays is not laid out again.
toolrt.changed = function changed(host, children) {
  const old = [...host.childNodes];
  let next = 0;
  for (const child of children) {
    let found = next;
    while (found < old.length && !old[found].isEqualNode(child)) found += 1;
    if (found < old.length) {
      for (; next < found; next += 1) old[next].remove();
      next += 1;
    } else if (next < old.length && child.nodeName === "UL" && old[next].nodeName === "UL") {
      toolrt.changed(old[next], [...child.childNodes]);
      next += 1;
    } else host.insertBefore(child, old[next] || null);
  }
  for (; next < old.length; next += 1) old[next].remove();
};

// Gives a button that copies the text of `source`, and says that it did.  The style sheet draws its label, so a reader who
// selects the line by hand does not get the label too.
toolrt.copier = function copier(source, says) {
  const button = toolrt.element("button", { type: "button", class: "copy", "data-label": "Copy", "aria-label": "Copy the line that runs it again" });
  const done = (copied) => {
    button.dataset.label = copied ? "Copied" : "Press Ctrl+C";
    says(copied ? "Copied" : "The line is selected: press Ctrl+C to copy it");
    setTimeout(() => { button.dataset.label = "Copy"; }, 2000);
  };
  // Where a frame may not use the clipboard, the selection is copied as a key would.
  const select = () => {
    getSelection().selectAllChildren(source);
    return document.execCommand("copy");
  };
  button.addEventListener("click", () => {
    if (!navigator.clipboard) done(select());
    else navigator.clipboard.writeText(source.textContent).then(() => done(true), () => done(select()));
  });
  return button;
};

// Names round a circle, each with an arrow to the next one and what stands at the arrow.
toolrt.circle = function circle(names, labels) {
  const { svg } = toolrt;
  const [width, height, side] = [300, 80 + 34 * names.length, 92];
  const at = toolrt.range(names.length).map((place) => {
    const turn = (2 * Math.PI * place) / names.length - Math.PI / 2;
    return { x: width / 2 + (width / 2 - side / 2 - 4) * Math.cos(turn), y: height / 2 + (height / 2 - 18) * Math.sin(turn) };
  });
  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const drawn = at.flatMap((from, place) => {
    const to = at[(place + 1) % at.length];
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const [x, y] = [(to.x - from.x) / length, (to.y - from.y) / length];
    // Two arrows between the same two stand beside each other; what stands at an arrow is outside of the circle.
    const aside = at.length > 2 ? 0 : 14;
    const away = Math.min(side / 2 / Math.abs(x), 13 / Math.abs(y)) + 4;
    const gone = (point, by) => ({ x: point.x - y * aside + x * by, y: point.y + x * aside + y * by });
    const [begin, end] = [gone(from, away), gone(to, -away)];
    const middle = { x: (begin.x + end.x) / 2, y: (begin.y + end.y) / 2 };
    const out = { x: Math.sign(Math.round(middle.x - width / 2)), y: Math.sign(Math.round(middle.y - height / 2)) };
    const tip = [0.45, -0.45].map((bend) => `${end.x - 9 * (x * Math.cos(bend) - y * Math.sin(bend))},${end.y - 9 * (y * Math.cos(bend) + x * Math.sin(bend))}`);
    const anchor = out.x > 0 ? "start" : out.x < 0 ? "end" : "middle";
    return [
      svg("line", { class: "arrow wakes", x1: begin.x, y1: begin.y, x2: end.x, y2: end.y }),
      svg("polygon", { class: "head wakes", points: `${end.x},${end.y} ${tip.join(" ")}` }),
      svg("text", { class: "soft", x: middle.x + 7 * out.x, y: middle.y + (out.x ? 4 : 14 * out.y + 4), "text-anchor": anchor }, cut(labels[place], 18)),
    ];
  });
  const boxes = at.flatMap(({ x, y }, place) => [
    svg("rect", { x: x - side / 2, y: y - 13, width: side, height: 26, rx: 5 }),
    svg("text", { x, y: y + 4, "text-anchor": "middle" }, cut(names[place], 15)),
  ]);
  const told = names.map((name, place) => `${name} waits for ${labels[place]}, held by ${names[(place + 1) % names.length]}`);
  return svg("svg", { class: "circle", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `A circle: ${told.join("; ")}` }, ...drawn, ...boxes);
};
