"""The first screen by mouse, by keyboard and by link: what it shows is what the tables say."""

import math

import pandas as pd
import pytest

from chromium import needed
from looked_at import LAYERS, MODELS, TASKS
from memloc.store.tables import read_tsv

pytestmark = needed

MAP = "document.querySelector('.map svg:not([hidden])')"
TOLD = "document.querySelector('.told').textContent"
REVERTED = "document.querySelector('.reverted')"
LEAD = {"task": "rte", "model": "bert", "technique": "swapping"}  # of the first screen


def cell(window):
    return f"{MAP}.querySelector('[data-window=\"{window}\"]')"


def choose(tab, **values):
    for name, value in values.items():
        tab.run(
            f"(s => {{ s.value = '{value}'; s.dispatchEvent(new Event('change', {{bubbles: true}}))"
            f"; }})(document.querySelector('select[name={name}]'))"
        )


def rows(path, table, **wanted):
    """Rows of a summary table that have these values."""
    frame = read_tsv(path.parent / "summary" / f"{table}.tsv")
    for name, value in wanted.items():
        frame = frame[frame[name] == value]
    return frame


def window_row(path, window, **wanted):
    start, end = map(int, window.split("-"))
    (row,) = rows(path, "windows", start=start, end=end, **LEAD | wanted).to_dict("records")
    return row


def per_cent(share, digits=0):
    """A share as the page's script rounds it: to three digits, then half of a unit upwards."""
    shown = 100 * round(share, 3) * 10**digits
    return f"{math.floor(shown + 0.5) / 10**digits:.{digits}f}"


def assert_told(said, row):
    """Window, noisy and clean error, n and seeds of a row of windows.tsv."""
    assert said.startswith(f"Layers {row['start']}–{row['end']}, {row['technique']}: ")
    assert f": {per_cent(row['undone'], 1)} % of the memorised noisy labels undone" in said
    assert f"of {row['n_noisy']} were memorised" in said
    assert f"normalised noisy error {per_cent(row['error'], 1)} %" in said
    assert f"error on {row['n_clean']} clean examples {per_cent(row['clean_error'], 1)} %" in said
    assert said.endswith(f"mean of {row['n_seeds']} seeds.")


@pytest.mark.parametrize("width", (1280, 400))
def test_the_mouse_on_a_cell_tells_its_numbers(tab, path, width):
    tab.open(path, width)
    for window in ("1-2", "3-7"):
        tab.point(cell(window))
        assert_told(tab.run(TOLD), window_row(path, window))
    assert tab.run("location.hash") == ""


def test_every_choice_shows_its_tables_numbers(tab, path):
    tab.open(path, 1280)
    for model in MODELS:
        for task in TASKS:
            for technique in ("swapping", "retraining"):
                for scale, column in (("raw", "undone"), ("normalised", "error")):
                    key = {"task": task, "model": model, "technique": technique}
                    choose(tab, **key, scale=scale)
                    assert shown(tab) == expected(path, column, **key)
                    assert by_layer(tab) == weights(path, task, model)


def shown(tab):
    """Of the map: its numbers by window, and the framed window."""
    return tab.run(
        f"({{of: Object.fromEntries([...{MAP}.querySelectorAll('[data-window]')].map("
        "g => [g.dataset.window, g.textContent.trim()])), best: "
        f"{MAP}.querySelector('.best')?.dataset.window ?? ''}})"
    )


def expected(path, column, **key):
    table = rows(path, "windows", **key)
    names = table["start"].astype(str) + "-" + table["end"].astype(str)
    chosen = names[table["smallest"] == "yes"]
    of = dict(zip(names, map(per_cent, table[column]), strict=True))
    return {"of": of, "best": "".join(chosen)}


def by_layer(tab):
    """M-CoG of each technique in words, and of how many layers its weights are."""
    return tab.run(
        "Object.fromEntries([...document.querySelectorAll('table.methods [data-technique]')].map("
        "r => [r.dataset.technique, [r.querySelector('[data-said=mcog]').textContent, "
        "r.querySelectorAll('rect').length]]))"
    )


def weights(path, task, model):
    found = rows(path, "mcog", task=task, model=model).to_dict("records")
    said = {}
    for row in found:
        ends = "" if math.isnan(row["ci_low"]) else f" [{row['ci_low']:.1f}, {row['ci_high']:.1f}]"
        said[row["technique"]] = [f"{row['mcog']:.1f}{ends}", LAYERS[model]]
    return said


@pytest.mark.parametrize("model", MODELS)
def test_a_click_lists_what_the_window_reverts(tab, path, model):
    tab.open(path, 1280)
    choose(tab, model=model)
    windows = [(s, s + n) for n in range(LAYERS[model]) for s in range(1, LAYERS[model] - n + 1)]
    for window in ((1, 1), (2, 4), (1, LAYERS[model])):
        place = windows.index(window)
        found, known = [], rows(path, "examples", task="rte", model=model, memorised=True)
        for index, part in known.groupby("index"):
            if any(int(bits, 16) >> place & 1 for bits in part["windows"]):
                found.append(index)
        tab.point(cell(f"{window[0]}-{window[1]}"), click=True)
        said = tab.run(f"{REVERTED}.querySelector('p').textContent")
        of = f"reverts {len(found)} of {known['index'].nunique()} memorised examples"
        assert of in said and "each in at least one seed" in said
        listed = tab.run(f"[...{REVERTED}.querySelectorAll('li')].map(i => i.textContent)")
        assert sorted(listed) == sorted(texts(path, "rte", found))


def texts(path, task, index):
    """Text and labels of examples, as the list has them."""
    data = pd.read_parquet(path.parent / f"{task}.parquet").set_index("index").loc[index]
    return [
        f"{row.text} (true label {row.original_label}, trained label {row.label})"
        for row in data.itertuples()
    ]


def test_of_other_techniques_no_examples_are_known(tab, path):
    tab.open(path, 1280)
    choose(tab, technique="retraining")
    tab.point(cell("1-2"), click=True)
    assert "is known of swapping alone" in tab.run(f"{REVERTED}.textContent")
    assert tab.run(f"{REVERTED}.querySelectorAll('li').length") == 0


def test_arrows_and_enter_do_what_the_mouse_does(tab, path):
    tab.open(path, 1280)
    tab.point(cell("2-4"), click=True)
    by_mouse = [tab.run(what) for what in (TOLD, f"{REVERTED}.innerHTML", "location.hash")]
    tab.open(path, 1280)
    for _ in range(60):
        tab.press("Tab")
        if tab.run(f"document.activeElement === {MAP}"):
            break
    ways = {"ArrowUp": "1-2", "ArrowRight": "2-3"}  # from 1-1
    for key, window in ways.items():
        tab.press(key)
        assert tab.run(f"{cell(window)}.classList.contains('at-hand')")
        assert_told(tab.run(TOLD), window_row(path, window))
    tab.press("ArrowLeft", "ArrowLeft")  # stays within the map
    assert tab.run(f"{cell('1-2')}.classList.contains('at-hand')")
    tab.press("ArrowRight", "ArrowUp", "Enter")
    by_keys = [tab.run(what) for what in (TOLD, f"{REVERTED}.innerHTML", "location.hash")]
    assert by_keys == by_mouse


def test_a_link_leads_back_to_what_was_seen(tab, path):
    tab.open(path, 1280)
    choose(tab, task="trec", model="mini", technique="retraining", scale="normalised")
    tab.point(cell("2-3"), click=True)
    state = "#view/trec/mini/retraining/normalised/2-3"
    assert tab.run("location.hash") == state
    seen = [shown(tab), by_layer(tab), tab.run(TOLD), tab.run(f"{REVERTED}.innerHTML")]
    tab.open(path, 400, place=state)
    assert [shown(tab), by_layer(tab), tab.run(TOLD), tab.run(f"{REVERTED}.innerHTML")] == seen
    assert tab.run(f"{cell('2-3')}.classList.contains('at-hand')")
    for name, value in zip(("task", "model", "technique", "scale"), state.split("/")[1:5],
                           strict=True):  # fmt: skip
        assert tab.run(f"document.querySelector('select[name={name}]').value") == value


def test_a_link_to_what_is_not_there_shows_the_first_screen(tab, path):
    tab.open(path, 1280)
    before = shown(tab)
    tab.open(path, 1280, place="#view/none/none/none/none/9-99")
    assert shown(tab) == before
