"""Figures of the centroid analysis: what panels say, and noise of unknown classes."""

import pytest

import centroid_tables
from memloc.figures.centroids import centroid_curves, swapped_halves, task_centroid_curves
from memloc.figures.draw import draw
from memloc.store.tables import read_tsv
from memloc.study.figures import KINDS
from synthetic import MODELS, TASKS


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return centroid_tables.study(tmp_path_factory.mktemp("study"))


@pytest.mark.parametrize("kind", ["centroids", "task_centroids", "swapped_halves", "events"])
def test_every_kind_is_drawn(study, tmp_path, kind):
    tables, paths = study
    outputs = [tmp_path / f"{kind}.{end}" for end in ("pdf", "png")]
    given = tables | {"runs": paths["trec", "opt"]}
    words, runs = {"task": "trec", "model": "opt"}, [{"task": "trec"}] * 2
    draw(KINDS[kind].drawer, outputs, given, TASKS, MODELS, words, runs)
    assert all(path.stat().st_size > 5000 for path in outputs)


def test_panels_say_that_examples_never_cross(study):
    tables, paths = study
    events, curves = (read_tsv(tables[name]) for name in ("events", "centroids"))
    runs = [read_tsv(path) for path in paths["rte", "bert"]]
    figure = task_centroid_curves(curves, runs, events, TASKS, MODELS, "rte", "bert")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[1].split("\n")[1] == "crossing none"
    assert titles[0].startswith("as trained\ncrossing 4")


def test_noise_of_unknown_class_leaves_curves_of_clean_examples(tmp_path):
    table = centroid_tables.unknown_noise()
    _, events, curves = centroid_tables.of_one_run(table, tmp_path)
    assert len(curves) == 36 and (curves["n_noisy"] == 0).all()
    about = TASKS, {"opt": MODELS["opt"]}
    figure = task_centroid_curves(curves, [table], events, *about, "trec", "opt")
    assert "crossing n/a: no noisy example\n" in figure.axes[0].get_title()
    every = centroid_curves(curves, {"trec": [table]}, events, *about, "opt")
    assert "crossing n/a: no noisy example\n" in every.axes[0].get_title()
    swapped_halves(curves, *about, "opt")
