"""What the answer claims, and what it says instead where there is nothing to claim."""

import numpy as np
import pandas as pd
import pytest

import synthetic
from memloc.report.headline import headline
from memloc.report.parts import Content
from memloc.store.tables import write_tsv
from memloc.summary.centres import COLUMNS, leanings
from memloc.summary.correlations import COLUMNS as CORRELATIONS
from memloc.summary.correlations import correlations

NAMES = list(synthetic.TASKS)


def content(folder, **frames):
    for name, frame in frames.items():
        write_tsv(frame, folder / f"{name}.tsv")
    paths = {name: str(folder / f"{name}.tsv") for name in frames}
    return Content("T", paths, [], synthetic.MODELS, synthetic.TASKS, {}, "")


def mcog(*rows):
    """A table mcog of (task, technique, mcog, leans, found) of one model of 12 layers."""
    keys = ["task", "technique", "mcog", "leans", "found"]
    frame = pd.DataFrame(rows, columns=keys).assign(model="bert", resampled="examples")
    frame = frame.assign(attainable_low=4.293, attainable_high=8.707, reason="")
    return frame.reindex(columns=COLUMNS)


WEIGHTS = pd.DataFrame({"task": "rte", "model": "bert", "technique": "swapping", "layer": [12]})


def answer(folder, table):
    found = headline(content(folder, mcog=table, layer_weights=WEIGHTS))
    return found["answer"][0]


def test_sides_are_those_of_the_tables_column(tmp_path):
    """By a fixed margin both tasks would lean; the interval of one leaves that open."""
    said = answer(tmp_path, mcog(("rte", "swapping", 5.2, "lower", "yes"),
                                 ("trec", "swapping", 5.3, "open", "yes")))  # fmt: skip
    assert said.startswith("On RTE memorisation leans to the lower layers; on TREC no side")
    assert "from 5.2 (RTE) to 5.3 (TREC) of layers 1 to 12 (windows can reach 4.3 to 8.7)" in said
    assert "adjusted for 2 tasks" in said and "resampling examples" in said


def test_what_found_nothing_does_not_count(tmp_path):
    said = answer(tmp_path, mcog(("rte", "swapping", 5.2, "lower", "yes"),
                                 ("rte", "probing", 9.0, "upper", "no")))  # fmt: skip
    assert "leans to the lower layers: M-CoG 5.2" in said


@pytest.mark.parametrize("sides, wanted", [
    (("lower", "lower", "open"), "lower"), (("lower", "open", "open"), "open"),
    (("lower", "open"), "open"), (("lower", "lower", "lower", "upper"), "mixed"),
    (("upper",), "upper"),
])  # fmt: skip
def test_more_than_half_must_agree_and_none_object(sides, wanted):
    techniques = ("swapping", "retraining", "gradients", "probing")
    table = mcog(*(("rte", t, 5.0, s, "yes") for t, s in zip(techniques, sides, strict=False)))
    assert leanings(table)["rte"] == wanted


def test_without_intervals_no_side_is_named(tmp_path):
    table = mcog(("rte", "gradients", 2.0, "open", "yes")).assign(resampled="none")
    said = answer(tmp_path, table)
    assert "no side of the middle is shown" in said and "No side can be named for 1 task" in said


def depth(n_tasks, slope=1.0):
    """correlations of a study whose depth follows generalisation from task to task."""
    keys = pd.DataFrame({"task": NAMES[:n_tasks], "model": "bert"})
    order = np.arange(n_tasks)
    table = keys.assign(technique="swapping", found="yes", mcog=order + 1.0)
    weights = table.assign(layer=1, weight=1.0)
    scores = keys.assign(score=slope * order, validation_scaled=order, n_classes=2, balance=1.0)
    scores = scores.assign(score_above_prior=order, validation_above_majority=order)
    return correlations(weights, table, 0, None, scores)


@pytest.mark.parametrize("n_tasks, lead", [
    (3, "can't be told from 3 tasks: it takes 5 or more"),
    (4, "can't be told from 4 tasks: it takes 5 or more"),
    (5, "The better a model generalises to a task, the deeper it memorises"),
    (12, "The better a model generalises to a task, the deeper it memorises"),
])  # fmt: skip
def test_few_tasks_in_perfect_order_prove_nothing(tmp_path, n_tasks, lead):
    (said,) = headline(content(tmp_path, correlations=depth(n_tasks)))["answer"]
    assert lead in said and f"n = {n_tasks} tasks" in said
    assert ("95 % interval" in said) == (n_tasks >= 6)
    assert f"orders of {n_tasks} tasks" in said


def test_the_other_way_round_and_no_order_at_all(tmp_path):
    (said,) = headline(content(tmp_path, correlations=depth(6, -1.0)))["answer"]
    assert "the less deep it memorises" in said
    row = depth(6).assign(claim="none", rho=0.2)[CORRELATIONS]
    (said,) = headline(content(tmp_path, correlations=row))["answer"]
    assert said.startswith("Depth and generalisation are not shown to go together")


def test_a_perfect_order_of_five_tasks_has_the_p_of_five_tasks():
    found = depth(5)
    chosen = (found["measure"] == "generalisation") & (found["level"] == "all")
    assert np.allclose(found.loc[chosen, "p"], 2 / 120) and chosen.any()
