"""Figures of the control setup: every kind is drawn, and every pair of layers is told apart."""

import itertools

import numpy as np
import pandas as pd
import pytest

from memloc.control.scores import accuracy_at
from memloc.figures.control import control_accuracy, control_weights, place_of
from memloc.figures.draw import draw
from memloc.figures.gradient_variants import gradient_variants
from memloc.localise.gradients.variants import VARIANTS
from memloc.store.tables import read_tsv, write_tsv
from memloc.study.control import design_of, pair_of
from memloc.study.figures import KINDS
from memloc.summary.control import COLUMNS

TASKS = {
    "bbc": {"category": "topic", "label": "BBC News"},
    "snippets": {"category": "sentiment", "label": "Movie snippets"},
}
MODELS = {"minilm": {"label": "MiniLM-6"}}
ROLES = {"bbc": "validation", "snippets": "test"}
PAIRS = ("layers1-2", "layers3-4", "layers5-6", "layers2-5")


def variants_of(n_layers):
    """A gradients.tsv whose norms rise from layer to layer."""
    rows = [
        dict(norm=n, clean=c, frozen=f, layer=layer, weight=0.2, weight_raw=float(layer))
        for n, c, f in VARIANTS.values()
        for layer in range(1, n_layers + 1)
    ]
    return pd.DataFrame(rows)


def norms_of(n_layers):
    """A gradient_norms.tsv of the same."""
    series = itertools.product(("theta_M1", "theta_F"), ("noisy", "clean", "difference"))
    rows = [
        dict(model=model, examples=examples, norm="L1", layer=layer, value=float(layer))
        for model, examples in series
        for layer in range(1, n_layers + 1)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def tables(tmp_path):
    """Tables of a control study of six layers, in which one technique finds every pair."""
    draws = np.random.default_rng(0)
    accuracies, weights = [], []
    cells = itertools.product(("swapping", "gradients", "a new one"), TASKS, PAIRS)
    for technique, task, pair in cells:
        scores = draws.random(6)
        if technique == "swapping":
            scores[[layer - 1 for layer in pair_of(pair)]] += 1
        key = dict(task=task, model="minilm", technique=technique, pair=pair, role=ROLES[task])
        weights += [
            key | dict(layer=layer, weight=score, weight_raw=score)
            for layer, score in enumerate(scores, start=1)
        ]
        accuracies += [
            key | dict(k=k, accuracy=accuracy_at(scores, pair_of(pair), k), scores=kind)
            for k in (1, 2)
            for kind in ("weights", "one-layer")[: 2 if technique == "swapping" else 1]
        ]
    paths = {}
    for name, rows in (("control_accuracy", accuracies), ("control_weights", weights)):
        paths[name] = str(tmp_path / f"{name}.tsv")
        frame = pd.DataFrame(rows).assign(n_layers=6, chance=1 / 3, shuffled=1 / 3, one_layer=0.0)
        frame["design"] = frame["pair"].map(design_of)
        write_tsv(frame, paths[name], COLUMNS[name])
    write_tsv(variants_of(6), tmp_path / "gradients.tsv")
    paths["runs"] = [str(tmp_path / "gradients.tsv")] * len(PAIRS)
    write_tsv(norms_of(6), tmp_path / "gradient_norms.tsv")
    paths["norms"] = [str(tmp_path / "gradient_norms.tsv")] * len(PAIRS)
    return paths


@pytest.mark.parametrize("kind", [name for name in KINDS if KINDS[name].section == "control"])
def test_every_kind_is_drawn(tables, tmp_path, kind):
    outputs = [tmp_path / f"figure.{ending}" for ending in ("pdf", "png")]
    runs = [dict(task="bbc", model="minilm", pair=pair, role="validation") for pair in PAIRS]
    draw(KINDS[kind].drawer, outputs, tables, TASKS, MODELS, {"model": "minilm"}, runs)
    assert all(path.stat().st_size > 2000 for path in outputs)


def test_places_of_pairs():
    assert [place_of(pair, 6) for pair in PAIRS] == ["first", "middle", "last", "apart"]


def test_pairs_of_any_place_are_told_apart():
    pairs = ["layers2-3", "layers4-5", "layers6-7", "layers8-9"]
    runs = [dict(task="bbc", model="minilm", pair=pair, role="validation") for pair in pairs]
    figure = gradient_variants(
        [variants_of(12)] * 4, [norms_of(12)] * 4, runs, TASKS, MODELS, "minilm"
    )
    lines = figure.legends[0].get_lines()
    looks = {(line.get_color(), line.get_marker(), str(line.get_linestyle())) for line in lines}
    assert len(lines) == len(looks) == 4


def test_accuracy_at_1_leads_and_single_layers_have_a_place_of_their_own(tables):
    figure = control_accuracy(read_tsv(tables["control_accuracy"]), TASKS)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["accuracy@1", "accuracy@1 by pair", "accuracy@2", "accuracy@2 by pair"]
    labels = [label.get_text() for label in figure.axes[-1].get_xticklabels()]
    assert labels == ["Swapping", "Gradients", "a new one", "Swapping, one layer"]


def test_layers_between_two_that_are_apart_are_not_shaded(tables):
    figure = control_weights(read_tsv(tables["control_weights"]), TASKS, MODELS, "minilm")
    panel = next(a for a in figure.axes if a.get_title() == "layers 2 and 5")
    shaded = {(round(p.get_x(), 1), round(p.get_x() + p.get_width(), 1)) for p in panel.patches}
    assert shaded == {(1.5, 2.5), (4.5, 5.5)}
