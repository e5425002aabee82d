"""Figures of the main part: layers 1..L on their axes, labels as they are, a drawer per kind."""

from importlib import import_module

import matplotlib.pyplot as plt
import pandas as pd
import pytest

import synthetic
from figure_checks import check_texts, fitted, in_view, visible_axes
from memloc.figures.correlations import correlation_maps
from memloc.figures.draw import draw
from memloc.figures.fonts import texts_of
from memloc.figures.layers import layer_curves, technique_curves
from memloc.figures.matrices import matrices
from memloc.figures.mcog import mcog, mcog_averages
from memloc.figures.one_layer import one_layer
from memloc.figures.training import training
from memloc.store.fingerprint import reached
from memloc.study.figures import KINDS
from memloc.summary.correlations import correlations
from memloc.summary.training import summarise_training
from memloc.summary.weights import summarise_runs

AWKWARD = {  # names of files are plain, and labels are the user's own
    "dollar": {"category": "topic", "label": "Price in $ (under_$50_%)"},
    "braces": {"category": "topic", "label": r"_{a} \frac$x$ & <b>"},
    "rtl": {"category": "topic", "label": "שלום עולם"},
}
STUDIES = {
    "awkward": (
        AWKWARD,
        {"m": {"label": "m$_0$"}, "n": {"label": "مرحبا"}},
        (1,),
        ("swapping", "probing"),
        6,
    ),
    "large": (synthetic.TASKS, synthetic.MODELS, (1, 2), ("swapping", "gradients"), 12),
    "small": (synthetic.OWN, {"mini": {"label": "MiniLM-6"}}, (1,), ("swapping",), 6),
    "deep": (synthetic.OWN, {"opt-1.3b": {"label": "OPT-1.3B"}}, (1,), ("swapping", "probing"), 24),
}


def draw_all(tasks, models, seeds, techniques, n_layers):
    """All figures that a study of one model's detail has."""
    frames = summarise_runs(synthetic.runs(tasks, models, seeds, techniques, n_layers))
    weights, model = frames["layer_weights"], next(iter(models))
    keys, histories, records = synthetic.training_runs(tasks, models, seeds)
    outcomes = summarise_training(histories, records, keys)
    history = [h.assign(**key) for h, key in zip(histories, keys, strict=True)]
    table = correlations(weights, frames["mcog"], seed=0) if len(models) > 1 else None
    windows = [synthetic.windows(0, seed, n_layers) for seed in seeds]
    found = {
        "matrices": matrices(dict.fromkeys(tasks, windows), tasks, "OPT · Layer swapping"),
        "curves": layer_curves(weights, frames["probe_f1"], frames["mcog"], tasks, models, model),
        "techniques": technique_curves(weights, frames["mcog"], tasks, models, model),
        "one_layer": one_layer(frames["one_layer"], frames["mcog"], tasks, models),
        "mcog": mcog(frames["mcog"], weights, tasks, models),
        "averages": mcog_averages(frames["mcog"], weights, tasks, models),
        "training": training(pd.concat(history), outcomes, tasks, models, model),
    }
    if table is not None:
        found["correlations"] = correlation_maps(table, "mcog", models)
    for figure in found.values():
        fitted(figure)
    return found


@pytest.fixture(scope="module", params=STUDIES)
def study(request):
    yield request.param, draw_all(*STUDIES[request.param])
    plt.close("all")


def test_axes_carry_layers(study):
    size, found = study
    n_layers = STUDIES[size][-1]
    wanted = [str(n) for n in range(1, n_layers + 1)]
    for name in ("matrices", "curves", "techniques"):
        axes = next(axes for axes in visible_axes(found[name]) if axes.get_xlabel())
        shown = [t.get_text() for t in axes.get_xticklabels() if t.get_visible()]
        assert shown in [wanted[::step] for step in (1, 2, 3, 4)], name
    for name in ("mcog", "averages"):
        for axes in visible_axes(found[name]):
            labels = [t.get_text() for t in in_view(axes.xaxis)]
            assert len(labels) >= 2 and set(labels) <= set(wanted)


def test_labels_are_written_as_they_are(study):
    size, found = study
    tasks, models, *_ = STUDIES[size]
    labels = {entry["label"] for entry in (*tasks.values(), *models.values())}
    texts = [text.get_text() for figure in found.values() for text in texts_of(figure)]
    written = {" ".join(text.split()) for text in texts}  # whatever the lines they are broken into
    assert {label for label in labels if not any(label in text for text in written)} == set()
    for figure in found.values():
        for text in texts_of(figure):
            assert not text.get_parse_math(), text.get_text()
            own = not any(label in text.get_text() for label in labels)
            assert "$" not in text.get_text() or not own, "nothing else is written in TeX"


def test_no_text_overlaps_and_none_is_cut(study):
    check_texts(study[1])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_drawer_that_does_not_know_the_registry(kind):
    module, _, function = KINDS[kind].drawer.partition(":")
    assert callable(getattr(import_module(f"memloc.{module}"), function))
    names = [name for name, _ in reached(module, "figures.draw")]
    assert "study.figures" not in names, "an edit of one entry would re-draw every figure"


def test_a_figure_is_drawn_by_the_name_of_its_drawer(tmp_path):
    tables = {"runs": [tmp_path / f"swap{seed}.tsv" for seed in (1, 2)]}
    for seed, path in enumerate(tables["runs"]):
        synthetic.write_tsv(synthetic.windows(0, seed, 4), path)
    outputs = [tmp_path / "figure.pdf", tmp_path / "figure.png"]
    words, runs = {"technique": "swapping", "model": "opt"}, [{"task": "rte"}, {"task": "rte"}]
    draw(KINDS["matrix"].drawer, outputs, tables, synthetic.TASKS, synthetic.MODELS, words, runs)
    assert all(path.stat().st_size > 5000 for path in outputs)
    assert b"/Type3" not in outputs[0].read_bytes()
