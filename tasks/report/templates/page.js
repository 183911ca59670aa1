"use strict";
// Conveniences; without this script everything can still be read.

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort(table.tBodies[0], column, up ? 1 : -1);
    });
  });
}

function sort(body, column, sign) {
  const key = (row) => {
    const cell = row.cells[column];
    if ("sort" in cell.dataset) return Number(cell.dataset.sort);
    return cell.classList.contains("n") ? null : cell.textContent.trim();
  };
  const keyed = [...body.rows].map((row) => [key(row), row]);
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  });
  body.append(...keyed.map(([, row]) => row));
}

document.querySelectorAll(".boardbox").forEach((box, number) => {
  const table = box.querySelector("table");
  const style = document.head.appendChild(document.createElement("style"));
  const columns = [...box.querySelectorAll("input[data-column]")];
  box.id = `board-${number}`;

  function pick() {
    const off = columns.filter((column) => !column.checked).map((column) => column.dataset.column);
    style.textContent = off.map((column) => `#${box.id} tr > :nth-child(${column}) { display: none }`).join("\n");
  }

  for (const column of columns) column.addEventListener("change", pick);
  box.querySelector("[data-shows]").addEventListener("change", (event) => {
    for (const small of table.querySelectorAll(".numbers")) small.remove();
    if (!event.target.checked) return;
    for (const cell of table.querySelectorAll("td[title]")) {
      const small = cell.appendChild(document.createElement("small"));
      small.className = "numbers";
      small.textContent = cell.title;
    }
  });
  box.querySelector("[type=search]").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  box.querySelector(".filters").hidden = false;
  pick();
});

const PAGE = 10;

for (const shelf of document.querySelectorAll(".shelf")) {
  const bar = shelf.querySelector(".filters");
  if (bar) browse(shelf, bar);
}

function browse(shelf, bar) {
  const items = [...shelf.querySelectorAll(":scope > .transcript")].map((element) => {
    const tags = [...element.querySelectorAll(":scope > summary .tag")];
    return { element, facets: new Map(tags.map((tag) => [tag.dataset.name, tag.dataset.value])), text: null };
  });
  const search = bar.querySelector("input");
  const selects = [...bar.querySelectorAll("select")];
  const [back, next] = bar.querySelectorAll("button");
  const said = bar.querySelector("output");
  let page = 0;

  function fits(item, wanted) {
    if (!selects.every((select) => !select.value || item.facets.get(select.dataset.name) === select.value)) return false;
    if (!wanted) return true;
    item.text ??= item.element.textContent.toLowerCase();
    return item.text.includes(wanted);
  }

  function show() {
    const wanted = search.value.trim().toLowerCase();
    const found = items.filter((item) => fits(item, wanted));
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    const shown = new Set(found.slice(page * PAGE, (page + 1) * PAGE));
    for (const item of items) item.element.hidden = !shown.has(item);
    const first = found.length ? page * PAGE + 1 : 0;
    said.textContent = `${first}–${Math.min((page + 1) * PAGE, found.length)} of ${found.length}`;
    back.disabled = page === 0;
    next.disabled = page === pages - 1;
  }

  search.addEventListener("input", () => { page = 0; show(); });
  for (const select of selects) select.addEventListener("change", () => { page = 0; show(); });
  for (const button of [back, next]) {
    button.addEventListener("click", () => { page += Number(button.dataset.step); show(); });
  }
  bar.hidden = false;
  show();
}
