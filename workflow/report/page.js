"use strict";
// Sort a table by the column whose heading was pressed; a second press turns the order round.
document.querySelectorAll("thead button").forEach((button) => {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const body = head.closest("table").tBodies[0];
    const column = head.cellIndex;
    const down = head.getAttribute("aria-sort") === "ascending";
    head.parentNode.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = (a, b) => {
      const [x, y] = [Number(key(a)), Number(key(b))];
      const [lostX, lostY] = [Number.isNaN(x), Number.isNaN(y)];
      if (!lostX && !lostY) return x - y;
      if (lostX !== lostY) return lostX ? 1 : -1;
      return key(a).localeCompare(key(b));
    };
    const rows = [...body.rows].sort(compare);
    body.append(...(down ? rows.reverse() : rows));
  });
});
// The picture in the page is the file: no second copy is needed to download it.
document.querySelectorAll("a[data-png]").forEach((link) => {
  link.href = link.closest("figure").querySelector("img").src;
});
// Everything is printed, also what is folded on the screen.
addEventListener("beforeprint", () => {
  document.querySelectorAll("details.results").forEach((part) => { part.open = true; });
});
