// A lesson: texts, and cells that run in a worker.  A cell that asks for a guess shows nothing, and lets no later cell run,
// until there is one.  Guesses and answers to exercises are kept in this browser.
import { editorIn } from "./editor.js";
import { forget, kept, keep, download } from "./progress.js";
import { Workers } from "./workers.js";

const at = (id) => document.getElementById(id);
const lesson = at("lesson").dataset.lesson;

function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function say(words) {
  at("status").textContent = words;
}

// ---- what a cell shows

function table({ columns, rows }) {
  const row = (cells, kind) => made("tr", {}, ...cells.map((textContent) => made(kind, { textContent })));
  const head = made("thead", {}, row(columns, "th"));
  return made("table", {}, head, made("tbody", {}, ...rows.map((cells) => row(cells, "td"))));
}

function picture({ picture: drawn, label }) {
  return made("img", { alt: label, src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawn)}` });
}

function shown(answer) {
  const parts = [];
  for (const textContent of [answer.error, answer.printed, answer.text].filter(Boolean)) {
    parts.push(made("pre", { textContent, tabIndex: 0 }));
  }
  if (answer.rows) parts.push(made("div", { className: "wide", tabIndex: 0 }, table(answer)));
  if (answer.picture) parts.push(made("div", { className: "wide", tabIndex: 0 }, picture(answer)));
  if (answer.page) {
    const frame = made("iframe", { title: "What this cell shows", srcdoc: answer.page });
    frame.setAttribute("sandbox", "allow-scripts");
    parts.push(frame);
  }
  return parts;
}

// ---- cells

let cells = [];

class Cell {
  constructor(source, number) {
    this.number = number;
    this.original = source.textContent;
    this.ran = false;
    this.question = null;
    this.exercise = /\["(\w+)"\]\.grade\(/.exec(this.original)?.[1];
    this.run = made("button", { textContent: "Run", disabled: true });
    this.restore = made("button", { textContent: "As it was", hidden: true });
    this.came = made("div", { className: "came" });
    const place = made("div", { className: "editor" });
    const buttons = made("div", { className: "buttons" }, this.run, this.restore);
    this.element = made("section", { className: "cell" }, place, buttons, this.came);
    this.element.setAttribute("aria-label", `Cell ${number + 1}`);
    source.replaceWith(this.element);
    this.editor = editorIn(place, () => changed(this), `Cell ${number + 1}`);
    this.editor.text = kept(lesson).exercises[this.exercise]?.answer ?? this.original;
    this.run.addEventListener("click", () => runTo(number));
    this.restore.addEventListener("click", () => (this.editor.text = this.original));
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      if (!this.run.disabled) runTo(number);
    }, true);
  }

  // Gives whether the next cell may run.
  async execute() {
    const { first = null, last = null } = kept(lesson).guesses[this.question] ?? {};
    const question = { kind: "cell", source: this.editor.text, begins: this.number === 0, guess: last, first };
    const answer = JSON.parse(await workers.ask(JSON.stringify(question), say));
    if (answer.question !== undefined && answer.question !== this.question) {
      this.question = answer.question;
      if (kept(lesson).guesses[this.question]) return this.execute();
    }
    this.show(answer);
    if (answer.status !== undefined) keepGrade(answer, this.editor.text);
    if (answer.right !== undefined) keepJudged(answer);
    this.ran = answer.error === undefined && (answer.question === undefined || answer.text !== undefined);
    this.element.classList.toggle("ran", this.ran);
    return this.ran;
  }

  show(answer) {
    this.came.replaceChildren(...(answer.question === undefined ? [] : [this.asks(answer)]), ...shown(answer));
    if (answer.question !== undefined && answer.text === undefined) this.came.querySelector("input").focus();
  }

  asks({ question, right }) {
    const value = kept(lesson).guesses[question]?.last ?? "";
    const guess = made("input", { type: "text", required: true, autocomplete: "off", value });
    const label = made("label", {}, question, guess);
    const form = made("form", {}, label, made("button", { textContent: "Keep my guess" }));
    if (right !== undefined) form.className = right ? "right" : "wrong";
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      keepGuess(question, guess.value.trim());
      this.ran = false;
      runTo(this.number);
    });
    return form;
  }
}

// A cell that is edited runs again, and so do those below it.
function changed(cell) {
  cell.restore.hidden = cell.editor.text === cell.original;
  for (const later of cells.slice(cell.number)) {
    later.ran = false;
    later.element.classList.remove("ran");
  }
}

async function runTo(number) {
  busy(true);
  try {
    for (const cell of cells.slice(0, number + 1)) {
      if (cell.ran) continue;
      say(`Cell ${cell.number + 1} runs…`);
      if (await cell.execute()) continue;
      const asks = cell.came.querySelector("form");
      say(asks ? `Cell ${cell.number + 1} asks for your guess first.` : `Cell ${cell.number + 1} went wrong.`);
      if (cell.number !== number) cell.element.scrollIntoView();
      return;
    }
    say(`Cell ${number + 1} ran.`);
  } catch (error) {
    say(error.message);
  } finally {
    busy(false);
  }
}

function busy(is) {
  for (const { run } of cells) run.disabled = is || !workers.isReady;
  at("stop").disabled = !is;
}

cells = [...document.querySelectorAll("pre.cell")].map((source, number) => new Cell(source, number));
const workers = new Workers(
  (seconds) => {
    say(`Ready after ${seconds.toFixed(1)} seconds.`);
    busy(false);
  },
  (why) => say(`Python could not be loaded: ${why}`),
);

// ---- what is kept

function keepGuess(question, said) {
  const { guesses } = kept(lesson);
  keep(lesson, { guesses: { ...guesses, [question]: { first: guesses[question]?.first ?? said, last: said } } });
}

function keepJudged({ question, right }) {
  const { guesses } = kept(lesson);
  const { first, last, firstRight } = guesses[question];
  keep(lesson, { guesses: { ...guesses, [question]: { first, last, right, firstRight: first === last ? right : firstRight } } });
}

function keepGrade({ exercise, status }, answer) {
  if (status === "UNANSWERED") return;
  const { exercises } = kept(lesson);
  const tries = (exercises[exercise]?.tries ?? 0) + 1;
  keep(lesson, { exercises: { ...exercises, [exercise]: { status, tries, answer } } });
}

at("stop").addEventListener("click", () => {
  // What cells have defined went with the worker.
  changed(cells[0]);
  workers.stop();
  say("Stopped.");
});
at("export").addEventListener("click", () => download(at("name").value.trim()));
at("forget").addEventListener("click", () => {
  forget(lesson);
  location.reload();
});
