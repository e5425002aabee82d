"""The page in a real browser: nothing on top of another, nothing too wide, no errors; it sorts."""

import pytest

import synthetic
from chromium import Page, browser

pytestmark = pytest.mark.skipif(browser() is None, reason="no Chromium is installed here")

TASKS = {name: synthetic.TASKS[name] for name in ("trec", "rte", "sst2", "wic")}
MODELS = {"bert": {"label": "BERT"}, "mini": {"label": "MiniLM <6>", "note": "a small model"}}
WIDTHS = (1280, 400)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    absent = {"events": {"target": "results/summary/events.tsv",
              "command": "snakemake --config 'stages=[centroids]' -- report"}}  # fmt: skip
    return synthetic.study(
        tmp_path_factory.mktemp("study"), TASKS, MODELS, (1, 2), ("swapping", "gradients"),
        n_layers=12, absent=absent,
    )  # fmt: skip


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    page = Page(tmp_path_factory.mktemp("browser"))
    yield page
    page.close()


UNFOLD = "document.querySelectorAll('details').forEach(d => { d.open = true; })"
TOO_WIDE = """
[...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  const inside = e.closest('.scroll, pre, .skip, svg, dialog');
  const counts = box.width && !e.matches('.skip') && (!inside || inside === e);
  return counts && box.right > innerWidth + 1;
}).map(e => e.tagName + '.' + e.className)
"""
OVERLAPPING = """
(() => {
  const found = [];
  const blocks = [...document.querySelectorAll(
    'h1, h2, h3, p, dt, dd, figure img, .scroll, pre, summary, .key, nav, footer'
  )].filter(e => e.checkVisibility() && !e.closest('.scroll p, dialog, svg'));
  const boxes = blocks.map(e => e.getBoundingClientRect());
  for (let i = 0; i < blocks.length; i++) for (let j = i + 1; j < blocks.length; j++) {
    if (blocks[i].contains(blocks[j]) || blocks[j].contains(blocks[i])) continue;
    const [a, b] = [boxes[i], boxes[j]];
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1 && down > 1) found.push(`${blocks[i].outerHTML.slice(0, 80)} on ` +
      blocks[j].outerHTML.slice(0, 80));
  }
  return found;
})()
"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_page_fits_and_nothing_overlaps(tab, path, width, dark):
    tab.open(path, width, dark=dark)
    for unfold in (False, True):
        if unfold:
            tab.run(UNFOLD)
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.run(TOO_WIDE) == []
        assert tab.run(OVERLAPPING) == []
    assert tab.errors == []


def test_figures_shrink_with_the_page(tab, path):
    widest = "Math.max(...[...document.querySelectorAll('figure img')].map(i => i.width))"
    tab.open(path, 400)
    tab.run(UNFOLD)
    assert 200 < tab.run(widest) <= 400
    shape = "Math.abs(i.width / i.height - i.naturalWidth / i.naturalHeight) < .05"
    assert tab.run(f"[...document.querySelectorAll('figure img')].every(i => {shape})")
    tab.open(path, 1280)
    tab.run(UNFOLD)
    assert tab.run(widest) > 500


CONTRAST = """
(() => {
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(
    v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4
  ).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const colour = parts(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const low = new Set();
  document.querySelectorAll('p, li, a, dt, dd, h1, h2, h3, td, th button, code, pre, summary')
    .forEach(e => {
      const [a, b] = [light(parts(getComputedStyle(e).color)), light(ground(e))];
      const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
      if (ratio < 4.5) low.add(`${e.tagName}.${e.className} ${ratio.toFixed(2)}`);
    });
  return [...low];
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_can_be_read(tab, path, dark):
    tab.open(path, 1280, dark=dark)
    assert tab.run(CONTRAST) == []
    paper = tab.run("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is not dark


def column(table, number):
    cells = f"[...document.querySelectorAll('table[data-table={table}] tbody tr')]"
    return f"{cells}.map(r => r.cells[{number}].dataset.value)"


def test_tables_sort_by_click_and_by_keyboard(tab, path):
    tab.open(path, 1280)
    head = "document.querySelectorAll('table[data-table=mcog] th')[2]"
    before = tab.run(column("mcog", 2))
    assert len(before) == len(TASKS) * len(MODELS) and before != sorted(before, key=float)
    tab.run(f"{head}.querySelector('button').click()")
    assert tab.run(column("mcog", 2)) == sorted(before, key=float)
    assert tab.run(f"{head}.getAttribute('aria-sort')") == "ascending"
    tab.run(f"{head}.querySelector('button').focus()")
    tab.press("Enter")
    assert tab.run(column("mcog", 2)) == sorted(before, key=float, reverse=True)
    assert tab.run(f"{head}.getAttribute('aria-sort')") == "descending"
    tab.press("Enter")
    assert tab.run(column("mcog", 2)) == before
    assert tab.run(f"{head}.getAttribute('aria-sort')") == "none"
    assert tab.errors == []


def test_tasks_are_in_one_order_with_their_marks(tab, path):
    tab.open(path, 1280)
    order = list(dict.fromkeys(tab.run(column("mcog", 0))))
    assert order == ["rte", "wic", "sst2", "trec"]
    assert tab.run("[...document.querySelectorAll('.key dd')].map(d => d.textContent.trim())") == [
        TASKS[name]["label"] for name in order
    ]
    known = "document.querySelector(u.getAttribute('href'))"
    assert tab.run(f"[...document.querySelectorAll('use')].every(u => {known})")


def test_contents_fold_on_small_screens_and_show_the_place(tab, path):
    tab.open(path, 400)
    assert tab.run("document.querySelector('nav details').open") is False
    tab.open(path, 1280)
    assert tab.run("document.querySelector('nav details').open") is True
    assert tab.run("getComputedStyle(document.querySelector('nav')).position") == "sticky"
    tab.run("document.documentElement.style.scrollBehavior = 'auto'")
    for place, section in (("#techniques", "#techniques"), ("footer", "#provenance")):
        tab.run(f"document.querySelector('{place}').scrollIntoView()")
        tab.wait(f"document.querySelector('nav a[aria-current]')?.hash === '{section}'")


def test_first_tab_stop_skips_to_the_results(tab, path):
    tab.open(path, 1280)
    tab.press("Tab")
    assert tab.run("document.activeElement.hash") == "#main"
    assert tab.run("document.activeElement.getBoundingClientRect().left") >= 0


def test_figures_enlarge_and_can_be_saved(tab, path):
    tab.open(path, 400)
    tab.run("document.querySelector('[data-enlarge]').click()")
    assert tab.run("document.querySelector('dialog').open")
    natural = "document.querySelector('dialog img')"
    assert tab.run(f"{natural}.width === {natural}.naturalWidth")
    tab.run("document.querySelector('dialog button').click()")
    assert not tab.run("document.querySelector('dialog').open")
    saved = (
        "[...f.querySelectorAll('a[download]')].map(a => a.href.slice(-4)).join() == '.png,.pdf'"
    )
    assert tab.run(f"[...document.querySelectorAll('figure')].every(f => {saved})")


def test_what_was_not_run_says_how(tab, path):
    tab.open(path, 1280)
    text = tab.run("document.querySelector('#explanation').innerText")
    assert "not run: ask for target results/summary/events.tsv" in text
    assert "--config 'stages=[centroids]' -- report" in text


CELL = "document.querySelector('.map svg:not([hidden]) [data-window=\"1-2\"]')"
TOLD = "document.querySelector('.told').textContent"


def choose(tab, name, value):
    tab.run(
        f"(() => {{ const s = document.querySelector('select[name={name}]'); s.value = '{value}'; "
        "s.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def test_a_cell_says_its_numbers_and_a_link_leads_back_to_it(tab, path):
    tab.open(path, 1280)
    tab.run(f"{CELL}.dispatchEvent(new PointerEvent('pointerover', {{bubbles: true}}))")
    told = tab.run(TOLD)
    for word in ("Layers 1–2, swapping", "noisy labels undone", "clean examples", "2 seeds"):
        assert word in told
    choose(tab, "task", "trec")
    choose(tab, "scale", "normalised")
    tab.run(f"{CELL}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert tab.run("location.hash") == "#view/trec/bert/swapping/normalised/1-2"
    shown = tab.run(f"{CELL}.textContent")
    other = path.with_name("again.html")
    other.write_bytes(path.read_bytes())
    tab.open(other, 1280)
    tab.run("location.hash = '#view/trec/bert/swapping/normalised/1-2'")
    tab.wait("document.querySelector('select[name=task]').value === 'trec'")
    assert tab.run(f"{CELL}.textContent") == shown
    assert tab.run(f"{CELL}.classList.contains('at-hand')")
    assert tab.errors == []


def test_arrows_and_enter_do_what_the_mouse_does(tab, path):
    tab.open(path, 1280)
    tab.run(
        "(() => { const m = document.querySelector('.map svg:not([hidden])'); m.focus(); for (const"
        " key of ['ArrowUp', 'Enter']) m.dispatchEvent(new KeyboardEvent('keydown', {key})); })()"
    )
    assert tab.run("location.hash").endswith("/raw/1-2")
    assert "Layers 1–2" in tab.run(TOLD)


@pytest.mark.parametrize("width", (1280, 400))
def test_the_first_screen_stands_without_script(tab, path, width):
    tab("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(path, width)
    finally:
        tab("Emulation.setScriptExecutionDisabled", value=False)
    assert tab.run("document.querySelector('form.choose').hidden")
    assert tab.run(f"{CELL}.textContent.trim()").isdigit()
    assert tab.run("document.querySelectorAll('table.methods tbody tr svg rect').length") == 24


def test_long_tables_show_the_rows_that_hold_what_is_typed(tab, path):
    tab.open(path, 1280)
    table = "document.querySelector('table[data-table=layer_weights]')"
    rows = f"[...{table}.tBodies[0].rows].filter(r => !r.hidden).map(r => r.textContent)"
    every = tab.run(rows)
    tab.run(
        f"(() => {{ const f = {table}.closest('.scroll').previousElementSibling.querySelector("
        "'input'); f.value = 'trec swap'; f.dispatchEvent(new Event('input')); })()"
    )
    left = tab.run(rows)
    assert left == [r for r in every if "trec" in r.lower() and "swap" in r.lower()] and left


def test_a_link_into_a_folded_part_opens_it(tab, path):
    tab.open(path, 1280)
    tab.run("location.hash = '#techniques-2'")
    tab.wait("document.getElementById('techniques-2').closest('details').open")


def test_print_unfolds_the_results(tab, path):
    tab.open(path, 1280)
    assert len(tab("Page.printToPDF", printBackground=True)["data"]) > 10_000
    assert tab.errors == []
