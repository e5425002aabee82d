"""Figures of the page: captions, and figures that no part of a section places."""

import sys
import types
from html import unescape

import matplotlib.pyplot as plt
import pytest

import synthetic
from memloc.figures.draw import draw
from memloc.report.page import write_report
from memloc.report.pictures import caption
from memloc.study.figures import KINDS
from memloc.study.kinds.kind import FigureKind, by_model, tables


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_has_a_caption_that_names_its_wildcards(kind):
    words = {"task": "RTE", "model": "OPT", "technique": "layer swapping", "measure": "mcog"}
    words |= {"component": "mlp"}
    html = caption(kind, words)
    assert html.startswith("<") and "<strong>" in html and "{{" not in html
    assert "system-message" not in html and "problematic" not in html


def test_a_caption_for_both_blocks_names_both():
    html = caption("component_matrix", {"component": "each component", "model": "OPT"})
    assert "only attention or only feed-forward blocks" in " ".join(html.split())


@pytest.mark.parametrize(
    "label",
    ["My *task*", "`a` b", "|x|", "name_", r"\a\b", "[1]_", "1. x", "- x", "a::", "$x$ {y}"],
)
def test_labels_are_no_markup(label):
    """As a file's caption in Snakemake's report, too, where the names of task files stand."""
    html = unescape(str(caption("task_centroids", {"task": label, "model": label})))
    assert html.count(label) == 2 and "problematic" not in html


@pytest.fixture
def made_up(monkeypatch):
    """A kind of figure that the page's sections know nothing of: its entry and its drawer."""
    module = types.ModuleType("memloc.figures.made_up")
    module.bars_figure = lambda given: plt.subplots()[0]
    monkeypatch.setitem(sys.modules, "memloc.figures.made_up", module)
    entry = FigureKind(
        name="bars_{model}", drawer="figures.made_up:bars_figure", section="training",
        title="Bars of loss", alt="Bars: loss by epoch, for {names}.",
        caption="**Bars** of {{ model }}.", inputs=tables("training"), drawn_for=by_model,
    )  # fmt: skip
    monkeypatch.setitem(KINDS, "bars", entry)
    return entry


@pytest.mark.parametrize("models", [("bert",), ("bert", "opt")])
def test_a_new_figure_stands_at_the_end_of_its_section(made_up, tmp_path, models):
    chosen = {name: synthetic.MODELS[name] for name in models}
    found = []
    for model in models:
        pdf, png = (str(tmp_path / f"bars_{model}.{end}") for end in ("pdf", "png"))
        draw(made_up.drawer, [pdf, png], {}, {}, chosen, {"model": model})
        found.append({"kind": "bars", "png": png, "pdf": pdf, "wildcards": {"model": model}})
    page = tmp_path / "report.html"
    write_report(
        page, title="T", tables={}, pictures=found, models=chosen, tasks={}, settings={},
        templates=str(synthetic.TEMPLATES),
    )  # fmt: skip
    text = page.read_text(encoding="utf-8")
    section = text[text.index('<section id="training"') : text.index('<section id="setup"')]
    assert section.count(">Bars of loss</h3>") == 1
    assert section.rindex("<figure") > section.rindex("<h3") > section.rindex("not run: ask")
    assert section.count("<strong>Bars</strong>") == 1
    for model in chosen.values():
        assert f"loss by epoch, for {model['label']}." in section
    assert ("<strong>Bars</strong> of BERT." in section) == (len(models) == 1)
