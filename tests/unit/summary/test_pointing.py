"""Accuracies over tasks: what is claimed of few, of many, and of techniques that know nothing."""

import itertools

import numpy as np
import pandas as pd
import pytest

from memloc.control.scores import Scored, hits
from memloc.summary import pointing
from memloc.summary.pointing import ABOVE, ONE_PAIR, claimed, interval, over_tasks, shuffled_p
from memloc.summary.spearman import FEW, NONE

PAIRS = ("layers1-2", "layers6-7", "layers11-12")
LAYERS = 12


def pointing_at(layer):
    scores = np.zeros(LAYERS)
    scores[layer - 1] = 1
    return scores


def scored(tasks, layer_of, pairs=PAIRS, models=("m",)):
    """Scores that point at `layer_of(task, model, pair)`."""
    return hits(
        Scored(
            dict(task=task, model=model, role="test", technique="t", scores="weights"),
            pair,
            pointing_at(layer_of(task, model, pair)),
        )
        for task in range(tasks)
        for model in models
        for pair in pairs
    )


def right(task, model, pair):
    return int(pair.split("-")[1])


def first(frame):
    """The row of accuracy@1 over all models."""
    return frame[frame["k"] == 1].iloc[0]


@pytest.mark.parametrize(("tasks", "claim"), [(1, FEW), (4, FEW), (5, ABOVE), (6, ABOVE)])
def test_no_claim_below_five_tasks_and_no_interval_below_six(tasks, claim):
    row = first(claimed(scored(tasks, right), ["technique", "scores"], 1))
    assert row["accuracy"] == 1 and row["n"] == tasks and row["n_control"] == 3 * tasks
    assert row["claim"] == claim
    assert np.isnan(row["ci_low"]) == (tasks < 6)
    if tasks >= 6:
        assert row["ci_low"] < 0.7 and row["ci_high"] == 1  # all right, and yet not sure


def test_always_pointing_at_one_layer_is_no_finding_though_it_beats_a_random_guess():
    row = first(claimed(scored(9, lambda *_: 1), ["technique", "scores"], 1))
    assert row["accuracy"] == pytest.approx(1 / 3) and row["chance"] == pytest.approx(1 / 6)
    assert row["shuffled"] == row["accuracy"] and row["p"] == 1 and row["claim"] == NONE


def test_one_pair_cant_tell_finding_it_from_always_pointing_there():
    row = first(claimed(scored(9, right, pairs=["layers2-9"]), ["technique", "scores"], 1))
    assert row["accuracy"] == 1 and row["design"] == "apart"
    assert np.isnan(row["p"]) and row["claim"] == ONE_PAIR


def test_better_than_shuffled_and_worse_than_a_guess_is_no_finding():
    def layer_of(task, model, pair):
        return right(task, model, pair) if task == 0 else 4

    row = first(claimed(scored(12, layer_of), ["technique", "scores"], 1))
    assert row["accuracy"] < row["chance"] and row["claim"] == NONE


def test_p_is_that_of_all_shuffles(monkeypatch):
    """Three tasks of two pairs: 8 exchanges, tried one by one."""
    monkeypatch.setattr(pointing, "DRAWS", 40_000)
    layers = {(0, "a"): (1, 4), (1, "a"): (4, 4), (2, "a"): (1, 1), (0, "b"): (1, 4),
              (1, "b"): (5, 4), (2, "b"): (4, 1)}  # fmt: skip
    pairs = ("layers1-2", "layers3-4")

    def layer_of(task, model, pair):
        return layers[task, model][pairs.index(pair)]

    frame = scored(3, layer_of, pairs, ("a", "b"))
    frame = frame[frame["k"] == 1].assign(own_model=lambda f: f["model"])
    counted = []
    for exchanged in itertools.product((False, True), repeat=3):
        accuracy = [
            (layers[task, model][place != exchanged[task]] + 1) // 2 == place + 1
            for (task, model), place in itertools.product(layers, (0, 1))
        ]
        counted.append(np.mean(accuracy))
    expected = np.mean(np.array(counted) >= counted[0] - 1e-9)
    assert shuffled_p(frame, 1) == pytest.approx(expected, abs=0.01)


def test_a_task_counts_once_however_many_of_its_models_are_defined():
    frame = scored(2, right, models=("a", "b"))
    undefined = (frame["task"] == 0) & (frame["model"] == "b")
    frame.loc[undefined, "accuracy"] = np.nan
    frame.loc[frame["task"] == 1, "accuracy"] = 0.0
    means = over_tasks(frame, ["technique", "scores"]).query("k == 1").set_index("model")
    assert means.loc["all", "accuracy"] == 0.5 and means.loc["all", "n"] == 2
    assert means.loc["all", "n_control"] == 9 and means.loc["all", "n_none"] == 3
    assert means.loc["b", "n"] == 1 and means.loc["b", "n_none"] == 3
    assert means.loc["a", "accuracy"] == 0.5


def test_scores_that_are_all_undefined_have_a_row_and_no_claim():
    frame = scored(6, right).assign(accuracy=np.nan)
    row = first(claimed(frame, ["technique", "scores"], 1))
    assert row["n"] == 0 and row["n_none"] == 18 and row["claim"] == FEW
    assert np.isnan([row["accuracy"], row["p"], row["ci_low"]]).all()


def test_nothing_scored_is_an_empty_table():
    assert claimed(pd.DataFrame(), ["technique", "scores"], 1).empty


def test_p_is_adjusted_over_techniques():
    frames = [scored(6, right).assign(technique=name) for name in ("a", "b", "c")]
    table = claimed(pd.concat(frames, ignore_index=True), ["technique", "scores"], 1)
    told = table[table["k"] == 1]
    assert np.allclose(told["p_holm"], 3 * told["p"])
    assert set(told["decided"]) == {"9,999 shuffles of each task's pairs, Holm over 3"}
    rest = table[table["k"] == 2]
    assert rest["p"].isna().all() and set(rest["claim"]) == {""}  # claims rest on accuracy@1


@pytest.mark.parametrize("accuracies", [[1] * 6, [0] * 9, [1 / 3] * 6, [1, 1, 1, 0.9, 1, 1]])
def test_intervals_hold_the_mean_and_are_never_a_point(accuracies):
    low, high = interval(np.array(accuracies, dtype=float))
    assert 0 <= low <= np.mean(accuracies) <= high <= 1 and high - low > 0.1


def test_chance_is_that_of_the_models_that_have_an_accuracy():
    found = scored(8, lambda *_: 1, ["layers1-2", "layers2-3"], ["a", "b"])
    told = found[found["model"] == "a"].copy()
    found.loc[found["model"] == "b", "accuracy"] = np.nan
    found.loc[found["model"] == "b", "chance"] = 0.01
    everything, alone = (
        over_tasks(part, ["technique", "scores"]).set_index("model") for part in (found, told)
    )
    numbers = ["accuracy", "ci_low", "ci_high", "chance", "shuffled", "n"]
    of_all, of_one = everything.loc["all", numbers], alone.loc["a", numbers]
    assert np.allclose(np.array(of_all, dtype=float), np.array(of_one, dtype=float))
