// All programs of the gallery by theme: what each teaches, how hard it is, and how far the player has come.
toolrt.Gallery = class Gallery {
  constructor(data) {
    this.data = data;
    this.progress = new toolrt.Progress();
    const { element } = toolrt;
    const byId = (id) => document.getElementById(id);
    document.title = data.title;
    byId("title").textContent = data.title;
    byId("only").replaceChildren(element("option", { value: "" }, "all"), ...data.themes.map(({ name }) => element("option", {}, name)));
    byId("theme").addEventListener("click", toolrt.nextTheme);
    byId("filters").addEventListener("input", () => this.draw());
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    byId("filters").addEventListener("reset", () => setTimeout(() => this.draw()));
    byId("forget").addEventListener("click", () => {
      this.progress.forget();
      this.draw();
    });
    // Another page of the gallery may have changed what is kept.
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) window.location.reload();
    });
    window.addEventListener("storage", () => this.draw());
    window.addEventListener("hashchange", () => {
      this.progress.takeFromAddress();
      this.draw();
    });
    this.draw();
  }

  // How far a player has come with a program: "solved", "begun" or "open", and how many of the classes were seen.
  state(program) {
    const { solved, of, seen } = this.progress.of(program.name);
    const count = of === program.classes ? seen.length : 0;
    return { state: solved ? "solved" : count ? "begun" : "open", count };
  }

  isShown(program, theme) {
    const value = (id) => document.getElementById(id).value;
    const { state } = this.state(program);
    const words = value("words").toLowerCase().split(/\s+/u).filter(Boolean);
    const text = `${program.name} ${program.teaches} ${program.story}`.toLowerCase();
    return (!value("only") || value("only") === theme)
      && (!value("level") || value("level") === program.difficulty)
      && (!value("state") || value("state") === state || (value("state") === "open" && state === "begun"))
      && words.every((word) => text.includes(word));
  }

  card(program) {
    const { element } = toolrt;
    const { state, count } = this.state(program);
    const sign = { solved: "✓ solved", begun: "◐ begun", open: "○ not solved" }[state];
    const share = program.classes ? count / program.classes : 0;
    const meter = element("meter", { min: 0, max: 1, value: share, "aria-label": `Classes seen of ${program.name}` });
    const schedules = program.stated === null && !program.whole ? "more than its page has" : (program.stated ?? program.schedules).toLocaleString("en");
    return element(
      "li", { class: `card ${state}` },
      element("h3", {}, element("a", { href: program.file + this.progress.address([program.name]) }, program.name)),
      element("p", { class: "tags" }, element("span", { class: `level ${program.difficulty}` }, program.difficulty), element("span", {}, program.goes_wrong ? "can go wrong" : "always right"), element("span", { class: "state" }, sign)),
      program.teaches ? element("p", { class: "teaches" }, program.teaches) : null,
      element("p", {}, program.story),
      element("p", { class: "soft seen" }, meter, ` ${count} of ${toolrt.count(program.classes, "class", "classes")} seen${program.every_class ? "" : " (a part)"}; schedules: ${schedules}`),
    );
  }

  draw() {
    const { element } = toolrt;
    const byId = (id) => document.getElementById(id);
    let [shown, solved, every] = [0, 0, 0];
    const sections = [];
    this.data.themes.forEach(({ name, lesson, programs }, place) => {
      every += programs.length;
      const done = programs.filter((program) => this.state(program).state === "solved").length;
      solved += done;
      const cards = programs.filter((program) => this.isShown(program, name)).map((program) => this.card(program));
      shown += cards.length;
      if (!cards.length) return;
      sections.push(element(
        "section", { "aria-labelledby": `theme${place}` },
        element("h2", { id: `theme${place}` }, name, element("small", {}, ` ${done} of ${programs.length} solved`)),
        element("p", { class: "lesson" }, lesson), element("ul", {}, cards),
      ));
    });
    byId("themes").replaceChildren(...sections);
    byId("count").textContent = `${toolrt.count(shown, "program")} shown of ${every}; ${solved} solved.`;
    byId("kept").textContent = this.progress.isKept
      ? "Your progress is kept in this browser, and sent nowhere."
      : "This browser keeps no progress: it lasts while you stay on these pages and follow their links.";
  }
};

toolrt.gallery = new toolrt.Gallery(JSON.parse(document.getElementById("document").textContent));
