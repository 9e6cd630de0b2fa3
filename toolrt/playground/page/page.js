// The page: an editor, buttons, and what came of them.  All Python runs in a worker, so the page never freezes.
import { editorIn } from "./editor.js";
import { addressOf, stateIn } from "./link.js";
import { save } from "./progress.js";
import { Workers } from "./workers.js";

const at = (id) => document.getElementById(id);
const editor = editorIn(at("editor"), () => {
  at("link").hidden = true;
  mend(null);
});
const asks = ["explore", "play", "batch", "replay", "repair"];

let kind = "program";
let programs = [];
let shared = null; // the schedule of the link that this page was opened with
let schedule = null; // the failing schedule that was found last
let repair = null; // what the program is explored with: constraints, and how to write them
let test = "";
let seconds = {};

// ---- what is asked

function settings() {
  const common = { source: editor.text, kind, schedule: schedule ?? shared };
  if (kind === "batch") return { ...common, lanes: at("lanes").value, limit: Number(at("limit").value), seconds };
  return {
    ...common,
    strategy: at("strategy").value,
    most: Number(at("most").value),
    order: at("order").value,
    track: at("track").checked,
    given: repair?.given ?? [],
    repair: repair?.text ?? "",
  };
}

// Explores as if the program had a repair, until its text is another one; null: as it is.
function mend(found) {
  repair = found;
  at("given").hidden = found === null;
  at("given-text").textContent = found?.text ?? "";
}

function restore(state) {
  editor.text = state.source;
  kind = state.kind === "batch" ? "batch" : "program";
  for (const id of ["strategy", "most", "order", "lanes", "limit"]) if (state[id] !== undefined) at(id).value = state[id];
  at("track").checked = state.track === true;
  seconds = state.seconds ?? {};
  shared = state.schedule ?? null;
  schedule = null;
  mend(state.given?.length ? { given: state.given, text: String(state.repair) } : null);
  at("replay").hidden = shared === null;
  for (const part of document.querySelectorAll(".for-program")) part.hidden = kind === "batch";
  for (const part of document.querySelectorAll(".for-batch")) part.hidden = kind !== "batch";
  showSliders();
}

function begin(name) {
  const one = programs.find((each) => each.name === name) ?? programs[0];
  at("story").textContent = one.story;
  restore({ strategy: "auto", order: one.order, track: one.track, source: one.source, kind: one.kind, seconds: {} });
  clear();
}

// ---- asking

function busy(is) {
  for (const id of asks) at(id).disabled = is || !workers.isReady;
  at("stop").disabled = !is;
}

async function ask(asked, show) {
  clear();
  busy(true);
  say("Running… Stop ends it, wherever it stands.");
  const began = performance.now();
  try {
    const answer = JSON.parse(await workers.ask(JSON.stringify({ ...settings(), ...asked }), say));
    if (answer.error !== undefined) {
      say("It could not be run.");
      text("told", answer.error);
    } else {
      say(`Done in ${((performance.now() - began) / 1000).toFixed(1)} seconds.`);
      show(answer);
    }
  } catch (error) {
    say(error.message);
  }
  busy(false);
}

const workers = new Workers(
  (seconds) => {
    say(`Ready after ${seconds.toFixed(1)} seconds.`);
    busy(false);
  },
  (why) => say(`Python could not be loaded: ${why}`),
);

// ---- showing

function say(words) {
  at("status").textContent = words;
}

function text(id, words) {
  at(id).textContent = words;
  at(id).hidden = false;
}

function clear() {
  for (const id of ["verdict", "outcomes", "told", "next", "repairs", "page"]) at(id).hidden = true;
  at("repairs").replaceChildren();
  at("page").removeAttribute("srcdoc");
}

function table(head, rows) {
  const row = (cells, kind) => {
    const made = document.createElement("tr");
    made.append(...cells.map((cell) => Object.assign(document.createElement(kind), { textContent: cell })));
    return made;
  };
  at("outcomes").tHead.replaceChildren(row(head, "th"));
  at("outcomes").tBodies[0].replaceChildren(...rows.map((cells) => row(cells, "td")));
  at("outcomes").hidden = false;
}

function page(html) {
  at("page").srcdoc = html;
  at("page").hidden = false;
}

function verdict(answer) {
  at("verdict").className = answer.verdict;
  text("verdict", answer.text.split("\n")[0]);
  at("verdict").focus();
}

function showReport(answer) {
  schedule = answer.schedule ?? null;
  shared = null;
  test = answer.test ?? "";
  verdict(answer);
  table(["outcome", "executions"], answer.outcomes);
  const told = [answer.printed, answer.explanation].filter(Boolean).join("\n");
  if (told) text("told", told);
  at("next").hidden = schedule === null;
  if (answer.page !== undefined) page(answer.page);
}

function showReplay(answer) {
  verdict(answer);
  page(answer.page);
}

function showRepairs(answer) {
  const before = schedule;
  at("next").hidden = false;
  at("repairs").hidden = false;
  at("repairs").append(
    ...answer.repairs.map((found) => {
      const line = document.createElement("li");
      const button = Object.assign(document.createElement("button"), { textContent: `Explore with ${found.repair}` });
      button.addEventListener("click", () => {
        verdict(found);
        table(["outcome", "executions"], found.outcomes);
        const lost = found.lost.length ? `\nNo longer comes: ${found.lost.join(", ")}.` : "";
        text("told", found.text + lost + (found.may_overfit ? "\nIt may fit this failure alone." : ""));
        mend({ given: found.given, text: found.repair });
        schedule = shared = null;
        at("link").hidden = true;
      });
      line.append(button);
      return line;
    }),
  );
  if (!answer.repairs.length) say("None of the repairs that were tried mends it.");
  schedule = before;
}

function showBatch(answer) {
  seconds = answer.seconds;
  showSliders();
  at("verdict").className = "";
  text("verdict", answer.text);
  table(["call", "tool", "outcome", "result"], answer.results);
  const lanes = answer.lanes.map((lane) => `lane ${lane.index}: ${lane.calls.join(", ")}${lane.shared ? "" : " (alone)"}`);
  const state = Object.entries(answer.state).map(([key, value]) => `${key} = ${value}`);
  text("told", [...lanes, ...state].join("\n"));
  page(answer.page);
}

function showSliders() {
  at("seconds").replaceChildren(
    ...Object.entries(seconds).map(([name, value]) => {
      const label = document.createElement("label");
      const slider = Object.assign(document.createElement("input"), { type: "range", min: 0, max: 5, step: 0.25, value });
      const told = document.createElement("output");
      const tell = () => (told.textContent = `${slider.value} s`);
      slider.addEventListener("input", tell);
      slider.addEventListener("change", () => {
        seconds[name] = Number(slider.value);
        if (!at("batch").disabled) ask({ kind: "batch" }, showBatch);
      });
      tell();
      label.append(`${name} takes `, slider, " ", told);
      return label;
    }),
  );
}

// ---- the buttons

at("explore").addEventListener("click", () => ask({ kind: "explore" }, showReport));
at("play").addEventListener("click", () => ask({ kind: "play" }, (answer) => page(answer.page)));
at("batch").addEventListener("click", () => ask({ kind: "batch" }, showBatch));
at("replay").addEventListener("click", () => ask({ kind: "replay", schedule: shared }, showReplay));
at("repair").addEventListener("click", () => ask({ kind: "repairs" }, showRepairs));
at("unmend").addEventListener("click", () => {
  mend(null);
  at("explore").click();
});
at("programs").addEventListener("change", () => begin(at("programs").value));
at("stop").addEventListener("click", () => {
  workers.stop();
  busy(false);
  say("Stopped.");
});
at("share").addEventListener("click", async () => {
  at("address").value = await addressOf(settings());
  at("link").hidden = false;
  at("address").focus();
  at("address").select();
  await navigator.clipboard?.writeText(at("address").value).catch(() => {});
});
at("download").addEventListener("click", () => {
  save(test, "text/x-python", "test_schedule.py");
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  at(kind === "batch" ? "batch" : "explore").click();
}, true);

// ---- the beginning

programs = await (await fetch("programs.json")).json();
for (const group of new Set(programs.map((one) => one.group))) {
  const made = Object.assign(document.createElement("optgroup"), { label: group });
  made.append(...programs.filter((one) => one.group === group).map((one) => new Option(one.name)));
  at("programs").append(made);
}
begin(programs[0].name);
async function open() {
  const linked = await stateIn(location.hash);
  if (!linked) return;
  at("story").textContent = "This program came with the link.";
  restore(linked);
  clear();
}
addEventListener("hashchange", open);
await open();
navigator.serviceWorker?.register("service.js").catch(() => {});
