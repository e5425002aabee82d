"""The page in a real browser: nothing on top of another, nothing too wide; it prints, it sorts."""

import pytest

from chromium import needed
from looked_at import LAYERS, MODELS, TASKS

pytestmark = needed

WIDTHS = (1280, 400)
PAPER = 718  # CSS pixels between the margins of a printed A4

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


def test_dark_is_dark(tab, path):
    grounds = []
    for dark in (False, True):
        tab.open(path, 1280, dark=dark)
        grounds.append(tab.run("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] == "rgb(255, 255, 255)" != grounds[1]


def column(table, number):
    cells = f"[...document.querySelectorAll('table[data-table={table}] tbody tr')]"
    return f"{cells}.map(r => r.cells[{number}].dataset.value ?? r.cells[{number}].textContent)"


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
    tab.run("document.querySelector('.download button').click()")
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


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_stands_without_script(tab, path, width):
    """The answer, the map and the techniques are there, parts open, and no button does nothing."""
    tab.open(path, width, script=False)
    assert tab.run("document.querySelector('form.choose').hidden")
    best = "document.querySelector('.map svg:not([hidden]) .best')"
    assert tab.run(f"{best}.textContent.trim()").isdigit()
    strips = tab.run("document.querySelectorAll('table.methods tbody tr svg rect').length")
    assert strips == 3 * LAYERS["bert"]
    part = "document.querySelector('#techniques details.part:has(figure)')"
    tab.point(f"{part}.querySelector('summary')", click=True)
    assert tab.run(f"{part}.open")
    seen = f"[...{part}.querySelectorAll('figure img')].filter(i => i.complete && i.naturalWidth)"
    assert tab.run(f"{seen}.length") > 0
    dead = "[...document.querySelectorAll('button')].filter(b => b.checkVisibility())"
    assert tab.run(f"{dead}.map(b => b.outerHTML)") == []


HIDDEN = """
[...document.querySelectorAll('main :is(h2, h3, p, td, figure img, pre), header :is(p, li)')]
  .filter(e => !e.matches('.download, .told, .reverted *, details:not(.results) pre'))
  .filter(e => !e.getClientRects().length).map(e => e.outerHTML.slice(0, 100))
"""
CUT = """
[...document.querySelectorAll('main *, header *')].filter(e => {
  const [style, box] = [getComputedStyle(e), e.getBoundingClientRect()];
  const hides = !e.closest('svg') && style.overflow !== 'visible';
  return hides && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)
    || box.right > innerWidth + 1;
}).map(e => e.outerHTML.slice(0, 100))
"""


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_all_is_printed_and_nothing_cut(tab, path, script):
    tab.open(path, PAPER, media="print", script=script)
    assert tab.run(HIDDEN) == []
    assert tab.run(CUT) == []
    for width in ("document.documentElement.scrollWidth", "document.body.scrollWidth"):
        assert tab.run(width) <= PAPER
    assert len(tab("Page.printToPDF", printBackground=True)["data"]) > 10_000


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
