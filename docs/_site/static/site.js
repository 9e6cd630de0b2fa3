// What the theme leaves out for those who read with a keyboard or a screen reader.
document.addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll("[role=heading]:not([aria-level])")) caption.setAttribute("aria-level", "2");
  for (const [part, label] of [[".sidebar-drawer", "All pages"], [".toc-drawer", "On this page"]]) {
    for (const drawer of document.querySelectorAll(part)) drawer.setAttribute("aria-label", label);
  }
  const scrolls = "pre, .table-wrapper, .cell-output, .sidebar-scroll, .toc-scroll, p:has(> img)";
  for (const part of document.querySelectorAll(scrolls)) part.tabIndex = 0;
  for (const head of document.querySelectorAll("th:empty")) head.replaceWith(document.createElement("td"));
  if (!document.querySelector("h1")) {
    const title = Object.assign(document.createElement("h1"), { textContent: document.title, className: "visually-hidden" });
    const main = document.querySelector("main, [role=main]") || document.querySelector(".content");
    main.setAttribute("role", "main");
    main.prepend(title);
  }
});
