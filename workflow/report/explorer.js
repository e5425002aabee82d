// The first screen: another task, model, technique or scale; what a cell says; a link to each state.
const explorer = document.querySelector(".explorer");
if (explorer) {
  const data = JSON.parse(document.getElementById("explorer-data").textContent);
  const form = explorer.querySelector("form");
  const maps = [...explorer.querySelectorAll(".map svg")];
  const told = explorer.querySelector(".told");
  const step = (share) => Math.round(Math.min(1, Math.max(0, share)) * (data.ramp.length - 1));
  const fill = (share) => (share == null ? "none" : data.ramp[step(share)]);
  const percent = (share, digits = 0) => (share == null ? "undefined" : `${(100 * share).toFixed(digits)} %`);
  const value = (name) => form.elements[name]?.value;
  const words = (window) => {
    const [start, end] = window.split("-");
    return start === end ? `Layer ${start}` : `Layers ${start}–${end}`;
  };
  const SVG = "http://www.w3.org/2000/svg";
  const said = (name, words) => { explorer.querySelector(`[data-said=${name}]`).textContent = words; };
  let opened = "";

  const shown = () => data.windows[[value("task"), value("model"), value("technique")].join("|")];
  const svgShown = () => maps.find((map) => !map.hasAttribute("hidden"));
  const cell = (window) => svgShown()?.querySelector(`[data-window="${window}"]`);

  const say = (window) => {
    const table = shown();
    const errors = table?.of[window];
    if (!errors) return;
    const [noisy, clean, seeds] = table.n;
    const [raw, normalised, loss] = errors;
    told.textContent =
      `${words(window)}, ${data.act[value("technique")] ?? "changing"}: ${percent(raw, 1)} of the memorised noisy labels undone` +
      ` (${percent(table.memorised, 1)} of ${noisy} were memorised); normalised noisy error ${percent(normalised, 1)}, error on ${clean} clean examples ${percent(loss, 1)}; ` +
      (seeds === 1 ? "1 seed." : `mean of ${seeds} seeds.`);
  };

  const drawMap = () => {
    const table = shown();
    const layers = data.layers[value("model")];
    const index = value("scale") === "normalised" ? 1 : 0;
    maps.forEach((map) => map.toggleAttribute("hidden", Number(map.dataset.layers) !== layers));
    svgShown()?.querySelectorAll("[data-window]").forEach((group) => {
      const share = table?.of[group.dataset.window]?.[index];
      group.querySelector("rect").setAttribute("fill", fill(share));
      const text = group.querySelector("text");
      if (text) {
        text.textContent = share == null ? "" : (100 * share).toFixed(0);
        text.classList.toggle("light", share != null && step(share) >= data.white);
      }
      group.classList.toggle("best", table?.best === group.dataset.window);
    });
    const best = cell(table?.best);
    best?.parentNode.append(best); // its frame lies on its neighbours
    if (told) told.textContent = table ? "Point at a cell for its numbers; press it for the examples that it reverts." : "Not run for this choice.";
  };

  const drawMethods = () => {
    const weights = data.weights[`${value("task")}|${value("model")}`] ?? {};
    const layers = data.layers[value("model")];
    said("layers", layers);
    explorer.querySelectorAll("[data-technique]").forEach((row) => {
      const own = weights[row.dataset.technique] ?? { w: [], at: null, said: "not run" };
      const strip = row.querySelector("svg");
      strip.setAttribute("viewBox", `0 0 ${20 * layers} 20`);
      strip.replaceChildren(...own.w.map((weight, i) => {
        const rect = document.createElementNS(SVG, "rect");
        const facts = { x: 20 * i, y: 0, width: 20, height: 20, fill: fill(weight) };
        Object.entries(facts).forEach(([key, fact]) => rect.setAttribute(key, fact));
        const title = document.createElementNS(SVG, "title");
        title.textContent = `layer ${i + 1}: ${weight}`;
        rect.append(title);
        return rect;
      }));
      if (own.at != null) {
        ["under", "at"].forEach((name) => {
          const line = document.createElementNS(SVG, "path");
          line.setAttribute("class", name);
          line.setAttribute("d", `M${20 * (own.at - 0.5)},0V20`);
          strip.append(line);
        });
      }
      row.querySelector("[data-said=mcog]").textContent = own.said;
    });
  };

  const listReverted = () => {
    const place = explorer.querySelector(".reverted");
    if (!place) return;
    place.replaceChildren();
    place.removeAttribute("tabindex");
    if (!opened) return;
    const pair = data.reverted.of?.[`${value("task")}|${value("model")}`];
    const known = pair && value("technique") === "swapping";
    const count = pair?.count[opened] ?? 0;
    const held = BigInt(pair?.rows[opened] ?? 0);
    const texts = pair ? data.reverted.texts[value("task")] : [];
    const rows = texts.filter((_, i) => (held >> BigInt(i)) & 1n);
    const line = document.createElement("p");
    line.textContent = !pair ? "The texts of examples aren't on this page."
      : !known ? "Which examples a window reverts is known of swapping alone."
      : `${words(opened)}, swapped: reverts ${count} of ${pair.n} memorised examples` +
        (shown().n[2] > 1 ? ", each in at least one seed" : "") +
        (!count ? "." : count > rows.length ? `; ${rows.length} of them are on this page:` : ":");
    const list = document.createElement("ul");
    (known ? rows : []).forEach(([text, original, trained]) => {
      const item = document.createElement("li");
      item.textContent = `${text} (true label ${original}, trained label ${trained})`;
      list.append(item);
    });
    place.append(line, list);
    place.tabIndex = 0; // it scrolls
  };

  const link = () => {
    const state = ["task", "model", "technique", "scale"].map(value).concat(opened).map((part) => encodeURIComponent(part ?? ""));
    history.replaceState(null, "", `#view/${state.join("/")}`);
  };
  const mark = (window) => {
    svgShown()?.querySelectorAll(".at-hand").forEach((other) => other.classList.remove("at-hand"));
    const group = cell(window);
    group?.classList.add("at-hand");
    group?.parentNode.append(group); // on top of its neighbours
  };
  const open = (window) => {
    opened = window;
    mark(window);
    say(window);
    listReverted();
    link();
  };
  const draw = () => {
    const label = (name) => form.elements[name].selectedOptions[0].textContent;
    if (told) {
      said("chosen", `${label("task")}, ${label("model")}, ${label("technique").toLowerCase()}`);
      said("scale", label("scale"));
      said("framed", shown() ? data.framed[shown().best ? "yes" : "no"] : "");
    }
    drawMap();
    drawMethods();
    if (opened && cell(opened)) { mark(opened); say(opened); } else opened = "";
    listReverted();
  };
  const restore = () => {
    if (!location.hash.startsWith("#view/")) return;
    const parts = location.hash.slice(6).split("/").map(decoded);
    ["task", "model", "technique", "scale"].forEach((name, i) => {
      const field = form.elements[name];
      if (field && [...field.options].some((option) => option.value === parts[i])) field.value = parts[i];
    });
    opened = parts[4] ?? "";
    draw();
  };

  form.hidden = false;
  form.addEventListener("change", () => { draw(); link(); });
  maps.forEach((map) => {
    const from = (event) => event.target.closest("[data-window]")?.dataset.window;
    map.addEventListener("pointerover", (event) => { const window = from(event); if (window) say(window); });
    map.addEventListener("pointerleave", () => { if (opened) say(opened); });
    map.addEventListener("click", (event) => { const window = from(event); if (window) open(window); });
    map.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: [-1, -1], ArrowRight: [1, 1], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      const step = steps[event.key];
      const here = svgShown().querySelector(".at-hand")?.dataset.window ?? "1-1";
      if (event.key === "Enter") open(here);
      if (!step) return;
      event.preventDefault();
      const [start, end] = here.split("-").map(Number);
      const next = `${start + step[0]}-${end + step[1]}`;
      if (cell(next)) { mark(next); say(next); }
    });
  });
  addEventListener("hashchange", restore);
  draw();
  restore();
}
