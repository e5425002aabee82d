"""Figures of the control setup: every kind is drawn, and every pair of layers is told apart."""

import itertools

import numpy as np
import pandas as pd
import pytest

from memloc.control.scores import COLUMNS, accuracy_at
from memloc.figures.control import gradient_variants, place_of
from memloc.figures.draw import draw
from memloc.localise.gradients.variants import VARIANTS
from memloc.store.tables import write_tsv
from memloc.study.control import pair_of
from memloc.study.figures import KINDS

TASKS = {
    "bbc": {"category": "topic", "label": "BBC News"},
    "snippets": {"category": "sentiment", "label": "Movie snippets"},
}
MODELS = {"minilm": {"label": "MiniLM-6"}}
ROLES = {"bbc": "validation", "snippets": "test"}
PAIRS = ("layers1-2", "layers3-4", "layers5-6")


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
            key | dict(k=k, accuracy=accuracy_at(scores, pair_of(pair), k), chance=1 / 3)
            for k in (1, 2)
        ]
    paths = {}
    for name, rows in (("control_accuracy", accuracies), ("control_weights", weights)):
        paths[name] = str(tmp_path / f"{name}.tsv")
        frame = pd.DataFrame(rows).assign(n_layers=6)
        write_tsv(frame, paths[name], COLUMNS[name])
    write_tsv(variants_of(6), tmp_path / "gradients.tsv")
    paths["runs"] = [str(tmp_path / "gradients.tsv")] * 3
    write_tsv(norms_of(6), tmp_path / "gradient_norms.tsv")
    paths["norms"] = [str(tmp_path / "gradient_norms.tsv")] * 3
    return paths


@pytest.mark.parametrize("kind", [name for name in KINDS if KINDS[name].section == "control"])
def test_every_kind_is_drawn(tables, tmp_path, kind):
    outputs = [tmp_path / f"figure.{ending}" for ending in ("pdf", "png")]
    runs = [dict(task="bbc", model="minilm", pair=pair, role="validation") for pair in PAIRS]
    draw(KINDS[kind].drawer, outputs, tables, TASKS, MODELS, {"model": "minilm"}, runs)
    assert all(path.stat().st_size > 2000 for path in outputs)


def test_places_of_pairs():
    assert [place_of(pair, 6) for pair in PAIRS] == ["first", "middle", "last"]


def test_pairs_of_any_place_are_told_apart():
    pairs = ["layers2-3", "layers4-5", "layers6-7", "layers8-9"]
    runs = [dict(task="bbc", model="minilm", pair=pair, role="validation") for pair in pairs]
    figure = gradient_variants(
        [variants_of(12)] * 4, [norms_of(12)] * 4, runs, TASKS, MODELS, "minilm"
    )
    lines = figure.legends[0].get_lines()
    looks = {(line.get_color(), line.get_marker(), str(line.get_linestyle())) for line in lines}
    assert len(lines) == len(looks) == 4
