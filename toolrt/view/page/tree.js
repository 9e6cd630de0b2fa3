// The tree of what can happen: from the left, a fork for each choice; a leaf for each end.  It fills as classes are seen.
toolrt.ClassTree = class ClassTree {
  constructor(play, host, key) {
    this.play = play;
    this.host = host;
    this.row = 18;
    this.indent = 14;
    const ends = Object.keys(play.data.ends).map(Number);
    // Few schedules are all drawn; of many, the first of each class.
    this.all = ends.length <= 40;
    const first = new Map();
    ends.forEach((place) => { if (!first.has(play.data.ends[place][2])) first.set(play.data.ends[place][2], place); });
    this.drawn = new Set(this.all ? ends : first.values());
    key.textContent = this.all
      ? "A fork is a choice, a leaf is an end. It fills when you have seen its class."
      : "A fork is a choice. Each class has one leaf, which fills when you have seen it.";
    this.layOut();
  }

  // Gives each drawn end a row, and each fork a place between those of its children.
  layOut() {
    const { nodes } = this.play;
    const wanted = new Array(nodes.length).fill(false);
    for (let place = nodes.length - 1; place >= 0; place -= 1) {
      wanted[place] = this.drawn.has(place) || nodes[place].after.some((next) => next >= 0 && wanted[next]);
    }
    this.points = new Map();
    this.lines = [];
    this.leaves = [];
    // A chain without a fork is one line, so that depth is the number of choices.
    const stack = [{ place: 0, depth: 0, from: null }];
    while (stack.length) {
      const { place, depth, from } = stack.pop();
      let at = place;
      let next = nodes[at].after.filter((each) => each >= 0 && wanted[each]);
      const chain = [at];
      while (next.length === 1 && !this.drawn.has(at)) {
        [at] = next;
        chain.push(at);
        next = nodes[at].after.filter((each) => each >= 0 && wanted[each]);
      }
      const point = { depth, row: this.leaves.length, from, at };
      for (const each of chain) this.points.set(each, point);
      if (from) this.lines.push(point);
      if (!next.length) this.leaves.push(point);
      for (const each of [...next].reverse()) stack.push({ place: each, depth: depth + 1, from: point });
    }
    this.depth = Math.max(0, ...this.leaves.map(({ depth }) => depth));
  }

  draw() {
    const { svg, element } = toolrt;
    const { data, path, seen } = this.play;
    const here = new Set(path.map((place) => this.points.get(place)).filter(Boolean));
    const x = (depth) => 8 + depth * this.indent;
    const y = (row) => 9 + row * this.row;
    const edge = x(this.depth) + 8;
    // The way so far is drawn over the others.
    const lines = [...this.lines].sort((one, other) => here.has(one) - here.has(other));
    const shapes = lines.map((point) => svg("path", {
      class: here.has(point) ? "way here" : "way",
      d: `M${x(point.from.depth)} ${y(point.from.row)}V${y(point.row)}H${x(point.depth)}`,
    }));
    const texts = [];
    for (const leaf of this.leaves) {
      const [outcome, wrong, number] = data.ends[leaf.at];
      const known = seen.has(number);
      const [cx, cy] = [edge, y(leaf.row)];
      shapes.push(svg("path", { class: "way leads", d: `M${x(leaf.depth)} ${cy}H${cx - 5}` }));
      if (known && wrong) shapes.push(svg("path", { class: "leaf wrong", d: `M${cx - 5} ${cy - 5}l10 10m0 -10l-10 10` }));
      else shapes.push(svg("circle", { class: known ? "leaf right" : "leaf", cx, cy, r: 4.5 }));
      const label = svg("text", { x: cx + 10, y: cy + 4, class: known && wrong ? "broken" : "" });
      const short = outcome.length > 26 ? `${outcome.slice(0, 25)}…` : outcome;
      label.textContent = `class ${number + 1}${known ? ` ends in ${short}` : ""}`;
      texts.push(label);
    }
    const height = y(this.leaves.length - 1) + 10;
    const told = `Tree of ${toolrt.count(data.classes, "class", "classes")}, ${seen.size} of them seen.`;
    const drawing = svg("svg", { width: edge + 230, height, viewBox: `0 0 ${edge + 230} ${height}`, role: "img", "aria-label": told }, ...shapes, ...texts);
    this.host.replaceChildren(element("div", {}, drawing));
    // The leaf of the class in which the game ended is in sight.
    const end = data.ends[this.play.at];
    const leaf = end && this.leaves.find((each) => each.at === this.play.at || data.ends[each.at][2] === end[2]);
    if (leaf) this.host.scrollTop = y(leaf.row) - this.host.clientHeight / 2;
  }
};
