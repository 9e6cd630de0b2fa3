"use strict";
// What the parts of the page share.  Every text of the trace reaches the page as text, never as markup.
const toolrt = {};

toolrt.element = function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) made.append(child);
  }
  return made;
};

toolrt.svg = function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
};

toolrt.seconds = function seconds(value) {
  if (typeof value !== "number") return String(value);
  if (value !== 0 && Math.abs(value) < 1) return `${+(value * 1000).toPrecision(4)} ms`;
  return `${+value.toPrecision(6)} s`;
};

toolrt.count = function count(number, word, more = `${word}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? word : more}`;
};

toolrt.range = function range(length) {
  return Array.from({ length }, (_, place) => place);
};

toolrt.written = function written(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 1);
};

// The place of the last member of a sorted list that is not above `value`, or -1.
toolrt.lastUpTo = function lastUpTo(sorted, value, key) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(sorted[middle]) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
};

toolrt.nextTheme = function nextTheme() {
  const root = document.documentElement;
  const order = ["auto", "dark", "light"];
  const next = order[(order.indexOf(root.dataset.theme || "auto") + 1) % 3];
  if (next === "auto") delete root.dataset.theme;
  else root.dataset.theme = next;
  document.getElementById("theme").textContent = `Theme: ${next}`;
};

// Calls `draw` once before the next frame, however often it is asked.
toolrt.oncePerFrame = function oncePerFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
};
