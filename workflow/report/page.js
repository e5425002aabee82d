"use strict";
// What a press does is offered by this script: without it, there is no button that does nothing.
const button = (words, action) => {
  const made = document.createElement("button");
  made.type = "button";
  made.append(words);
  made.addEventListener("click", action);
  return made;
};

// Tables: a press on a heading sorts upwards, a second one downwards, a third one as it was.
document.querySelectorAll("table[data-table]").forEach((table) => {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const turn = { none: "ascending", ascending: "descending", descending: "none" };
  const number = (text) => (text === "" ? NaN : Number(text));
  const sorted = (column, down) => {
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = (a, b) => {
      const [x, y] = [number(key(a)), number(key(b))];
      const [lostX, lostY] = [Number.isNaN(x), Number.isNaN(y)];
      if (lostX !== lostY) return lostX ? 1 : -1; // what isn't a number comes last either way
      const order = lostX ? key(a).localeCompare(key(b)) : x - y;
      return down ? -order : order;
    };
    return [...original].sort(compare);
  };
  heads.forEach((head, column) => {
    head.setAttribute("aria-sort", "none");
    head.replaceChildren(button(head.textContent, () => {
      const next = turn[head.getAttribute("aria-sort")];
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", next);
      body.append(...(next === "none" ? original : sorted(column, next === "descending")));
    }));
  });
});

// Long tables: a field above each shows only the rows that hold what is typed.
document.querySelectorAll("table[data-table]").forEach((table) => {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 12) return;
  const label = document.createElement("label");
  const field = document.createElement("input");
  const count = document.createElement("span");
  field.type = "search";
  label.className = "filter";
  label.append("Rows with ", field, " ", count);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row) => {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    });
    const left = rows.filter((row) => !row.hidden).length;
    count.textContent = words.length ? `${left} of ${rows.length}` : "";
  });
  table.closest(".scroll").before(label);
});

// Figures: enlarged from the page's own copy.
const dialog = document.querySelector("dialog");
document.querySelectorAll("figure").forEach((figure) => {
  const image = figure.querySelector("img");
  figure.querySelector(".download").prepend(button("Enlarge", () => {
    const large = new Image();
    large.src = image.src;
    large.alt = image.alt;
    dialog.querySelector(".view").replaceChildren(large);
    dialog.showModal();
  }));
});

// Contents: folded where they would push the page down, and marking the section in view.
const contents = document.querySelector("nav details");
const beside = matchMedia("(min-width: 64rem)");
const fold = () => { contents.open = beside.matches; };
beside.addEventListener("change", fold);
fold();
contents.addEventListener("click", (event) => {
  if (event.target.closest("a") && !beside.matches) contents.open = false;
});
const sections = [...document.querySelectorAll("main > section")];
const showPlace = () => {
  const left = document.documentElement.scrollHeight - innerHeight - scrollY;
  const top = innerHeight * (left < innerHeight ? 1 - (2 / 3) * (left / innerHeight) : 1 / 3);
  const here = sections.filter((s) => s.getBoundingClientRect().top <= top).pop() ?? sections[0];
  contents.querySelectorAll("details > ol > li").forEach((item) => {
    const link = item.querySelector("a");
    const current = link.hash === `#${here?.id}`;
    item.classList.toggle("current", current);
    if (current) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
};
addEventListener("scroll", showPlace, { passive: true });
showPlace();

// A part of an address, in words; one that is no address stays as it is.
const decoded = (part) => {
  try { return decodeURIComponent(part); } catch { return part; }
};

// A link to what is folded opens it.
const unfold = () => {
  if (location.hash.length < 2) return;
  const place = document.getElementById(decoded(location.hash.slice(1)));
  for (let part = place?.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  place?.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
