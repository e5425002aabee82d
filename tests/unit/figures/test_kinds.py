"""Every kind of figure, of large, small and awkward studies, at the widths of papers."""

from importlib import import_module

import matplotlib.pyplot as plt
import pytest

import synthetic
from figure_checks import (
    check_pdf,
    check_png,
    check_texts,
    drawn_sizes,
    is_asked_for,
    text_sizes,
)
from figure_tables import Study
from memloc.figures import style
from memloc.figures.fit import NOTE, fit
from memloc.figures.page import Page, drawn_for, page_of
from memloc.figures.style import save
from memloc.study.figures import KINDS

LONG = {
    "a": {"category": "nlu", "label": "A rather long name of a task of entailment"},
    "b": {"category": "topic", "label": "Donaudampfschifffahrtsgesellschaft"},
    "c": {"category": "own", "label": "Price in $ (under_$50_%)"},
}
STUDIES = {
    "large": Study(synthetic.TASKS, synthetic.MODELS),
    "small": Study({"bbc": synthetic.OWN["bbc"]}, {"mini": {"label": "MiniLM-6"}}, n_layers=6),
    "long": Study(LONG, {"m": {"label": "A model with a long name, too"}, "n": {"label": "N"}}),
}
# The first kind of every module that draws.
FIRST = {KINDS[kind].drawer.partition(":")[0]: kind for kind in reversed(KINDS)}.values()


def drawn(kind, study, page, folder, files=("pdf", "png")):
    """A figure as it is after its files were written into the folder."""
    module, _, function = KINDS[kind].drawer.partition(":")
    with drawn_for(page):
        figure = getattr(import_module(f"memloc.{module}"), function)(study.given(kind, folder))
        save(figure, [folder / f"{kind}.{ending}" for ending in files])
    return figure


@pytest.mark.parametrize(
    "name, width", [("large", "single"), ("small", "full"), ("long", "single")]
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_fits_its_page(kind, name, width, tmp_path, caplog, monkeypatch):
    monkeypatch.setitem(style.SAVED, "savefig.dpi", 100)  # the same, sooner
    page = page_of(width, 8)
    # The same figure goes into both files; fonts go into a PDF, which takes long.
    both = name == "large" and kind in FIRST
    figure = drawn(kind, STUDIES[name], page, tmp_path, ["pdf"] * both + ["png"])
    assert not caplog.records, caplog.records[0].message
    assert figure.get_figwidth() <= page.width + 0.01 and figure.get_figheight() <= page.height
    sizes = drawn_sizes(figure)
    assert sizes and is_asked_for(sizes, page), sizes
    if both:
        check_pdf(tmp_path / f"{kind}.pdf", page)
    check_png(tmp_path / f"{kind}.png", 100)
    check_texts({kind: figure})
    plt.close("all")


@pytest.mark.parametrize("size", [5, 10])
def test_text_is_as_large_as_it_is_asked_for(size, tmp_path):
    for kind in ("layer_weights", "matrix", "mcog"):
        drawn(kind, STUDIES["small"], Page(5.0, size), tmp_path)
        assert size in text_sizes((tmp_path / f"{kind}.pdf").read_bytes())
        check_pdf(tmp_path / f"{kind}.pdf", Page(5.0, size))


def test_what_has_no_room_is_not_cut_and_said(tmp_path, caplog):
    drawn("mcog", STUDIES["long"], Page(2.0, 14), tmp_path)
    (record,) = caplog.records
    assert "mcog has no room at 2 inches" in record.message
    for word in ("14 points", "figures.width", "figures.font_size"):
        assert word in record.message
    check_png(tmp_path / "mcog.png")


@pytest.mark.parametrize("kind", ["mcog_averages", "one_layer"])
def test_the_narrowest_page_stops_no_drawing(kind, tmp_path):
    drawn(kind, STUDIES["small"], Page(2.0, 14), tmp_path)


def test_panels_that_have_vanished_are_no_fit():
    with style.look():
        figure, axes = plt.subplots(figsize=(0.1, 0.1))
        axes.set_axis_off()
        assert not fit(figure)


def test_scales_keep_their_words_whole(tmp_path):
    figure = drawn("matrix", STUDIES["small"], Page(3.4, 10), tmp_path)
    label = figure.axes[-1].yaxis.label.get_text()
    assert set(label.split()) == {"memorisation", "error"}


def test_a_note_in_a_panel_holds_no_other_panel_off(tmp_path):
    with drawn_for(Page(3.4, 10)), style.look():
        figure, (panel, beside) = plt.subplots(1, 2, figsize=(3.4, 2))
        panel.text(0.02, 0.98, "not normalised: a, b and c, and more", gid=NOTE,
                   transform=panel.transAxes, va="top")  # fmt: skip
        save(figure, [tmp_path / "note.png"])
    assert beside.get_position().x0 - panel.get_position().x1 < 0.2
    assert panel.texts[0].get_window_extent().x1 < beside.bbox.x0
