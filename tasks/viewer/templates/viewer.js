"use strict";
// Comforts; without this script everything can still be read.

// An address names only what was asked for.
for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", () => {
    for (const field of form.elements) if (field.name && !field.value) field.disabled = true;
  });
}
window.addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form [name]:disabled")) field.disabled = false;
});

// What an address points into is opened.
function reveal() {
  const name = decodeURIComponent(location.hash.slice(1));
  const element = name && document.getElementById(name);
  if (!element) return;
  for (let one = element.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
  element.scrollIntoView();
}
window.addEventListener("hashchange", reveal);
reveal();

for (const select of document.querySelectorAll("form.filters select")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

// j and k walk through the turns of a talk.
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key !== "j" && event.key !== "k") return;
  const turns = [...document.querySelectorAll(".talk > li")];
  const here = turns.findIndex((turn) => turn.getBoundingClientRect().top > -8);
  const next = turns[Math.min(turns.length - 1, Math.max(0, (here < 0 ? turns.length : here) + (event.key === "j" ? 1 : -1)))];
  if (next) next.scrollIntoView();
});
