// What a reader has guessed and answered, by lesson, in this browser; and all of it as a file.
const key = (lesson) => `toolrt.lesson.${lesson}`;

export function kept(lesson) {
  return { guesses: {}, exercises: {}, ...JSON.parse(localStorage.getItem(key(lesson))) };
}

export function keep(lesson, more) {
  localStorage.setItem(key(lesson), JSON.stringify({ ...kept(lesson), ...more }));
}

export function forget(lesson) {
  localStorage.removeItem(key(lesson));
}

export function save(text, type, name) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function download(name) {
  const numbers = Object.keys(localStorage).filter((each) => each.startsWith(key(""))).sort();
  const lessons = Object.fromEntries(numbers.map((each) => [each.slice(key("").length), kept(each.slice(key("").length))]));
  const file = `progress-${name.replaceAll(/[^\p{L}\p{N}]+/gu, "-") || "unnamed"}.json`;
  save(JSON.stringify({ format: "toolrt progress 1", name, lessons }, null, 1), "application/json", file);
}
