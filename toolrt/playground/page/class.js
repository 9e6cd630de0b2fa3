// The files of a class: what each student has done, and what was guessed first, question by question.
const at = (id) => document.getElementById(id);

function fill(table, head, rows) {
  const row = (cells, kind) => {
    const made = document.createElement("tr");
    made.append(...cells.map((textContent) => Object.assign(document.createElement(kind), { textContent })));
    return made;
  };
  table.tHead.replaceChildren(row(head, "th"));
  table.tBodies[0].replaceChildren(...rows.map((cells) => row(cells, "td")));
  table.hidden = rows.length === 0;
}

// Gives what a file holds; null: it is none of these.
async function read(file) {
  try {
    const found = JSON.parse(await file.text());
    return found.format === "toolrt progress 1" ? found : null;
  } catch {
    return null;
  }
}

function student({ name, lessons }) {
  return Object.entries(lessons).map(([lesson, { guesses, exercises }]) => {
    const first = Object.values(guesses);
    const graded = Object.entries(exercises);
    const told = graded.map(([exercise, { status, tries }]) => `${exercise}: ${status.toLowerCase()}, tries: ${tries}`);
    return [name, lesson, `${first.filter((each) => each.firstRight).length} of ${first.length}`, told.join("; ")];
  });
}

function questions(files) {
  const found = new Map();
  for (const [lesson, { guesses }] of files.flatMap((file) => Object.entries(file.lessons))) {
    for (const [question, { first, firstRight }] of Object.entries(guesses)) {
      const one = found.get(question) ?? { lesson, right: 0, number: 0, said: new Map() };
      one.number += 1;
      one.right += firstRight ? 1 : 0;
      one.said.set(first, (one.said.get(first) ?? 0) + 1);
      found.set(question, one);
    }
  }
  return [...found].map(([question, { lesson, right, number, said }]) => {
    const told = [...said].sort((one, other) => other[1] - one[1]).map(([guess, count]) => `${guess} (${count})`);
    return [lesson, question, `${right} of ${number}`, told.join(", ")];
  });
}

async function show() {
  const files = await Promise.all([...at("files").files].map(read));
  const good = files.filter((each) => each !== null);
  at("status").textContent = `${good.length} of ${files.length} files are of lessons.`;
  good.sort((one, other) => one.name.localeCompare(other.name));
  fill(at("students"), ["name", "lesson", "right at the first guess", "exercises"], good.flatMap(student));
  fill(at("questions"), ["lesson", "question", "right at the first guess", "guesses"], questions(good));
}

at("files").addEventListener("change", show);
// Somebody may choose them before this script is there, and a browser keeps them where it goes back to a page.
if (at("files").files.length > 0) show();
