"""Spearman correlations against scipy, their intervals, and what is said instead of a number."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import synthetic
from memloc.summary.correlations import COLUMNS, correlations, min_max
from memloc.summary.spearman import TOO_SMALL, correlate, holm, row_wise_rho, task_interval
from memloc.summary.weights import Run, summarise_runs


def pairs(x, y, tasks=None):
    return pd.DataFrame({"x": x, "y": y, "task": tasks or [f"t{i}" for i in range(len(x))]})


def frames(n_tasks=5, models=("bert", "opt", "pythia")):
    runs = []
    for i, task in enumerate(list(synthetic.TASKS)[:n_tasks]):
        for j, model in enumerate(models):
            runs.append(Run("swapping", task, model, 1, synthetic.windows(i, 10 * j, 6)))
            runs.append(Run("gradients", task, model, 1, synthetic.gradients(i, 10 * j, 6)))
    return summarise_runs(runs)


def test_by_hand():
    # ranks 1 2 3 4 against 1 2 4 3: rho = 1 - 6 * 2 / (4 * 15) = 0.8
    found = correlate(pairs([1, 2, 3, 4], [10, 20, 40, 30]), seed=1)
    assert math.isclose(found["rho"], 0.8) and found["n"] == 4
    assert math.isclose(found["p"], stats.spearmanr([1, 2, 3, 4], [10, 20, 40, 30]).pvalue)


def test_rows_equal_scipy_with_ties():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, (20, 9)), rng.integers(0, 5, (20, 9))
    expected = [stats.spearmanr(a, b).statistic for a, b in zip(x, y, strict=True)]
    assert np.allclose(row_wise_rho(x, y), expected)


def test_two_pairs_are_too_few():
    found = correlate(pairs([1, 2], [1, 2]), seed=1)
    assert found["note"] == TOO_SMALL and math.isnan(found["rho"]) and found["n"] == 2


def test_missing_values_leave_their_pair_out():
    found = correlate(pairs([1, 2, math.nan, 3], [1, 2, 3, 4]), seed=1)
    assert found["n"] == 3 and found["rho"] == 1


def test_constant_values_are_said():
    assert "constant" in correlate(pairs([1, 1, 1], [1, 2, 3]), seed=1)["note"]


def test_interval_is_seeded_and_contains_strong_rho():
    rng = np.random.default_rng(3)
    x = rng.random(12)
    y = x + 0.2 * rng.random(12)
    tasks = [f"t{i}" for i in range(12)]
    low, high, _ = task_interval(x, y, tasks, seed=5)
    assert (low, high) == task_interval(x, y, tasks, seed=5)[:2]
    assert low <= stats.spearmanr(x, y).statistic <= high <= 1
    assert task_interval(x, y, tasks, seed=6)[:2] != (low, high)


def test_uneven_tasks_are_resampled_whole():
    x, y = np.arange(7.0), np.arange(7.0)[::-1].copy()
    low, high, _ = task_interval(x, y, list("aabbbcd"), seed=1, resamples=50)
    assert math.isclose(low, -1) and math.isclose(high, -1)


def test_two_tasks_give_rho_but_no_interval():
    found = correlate(pairs([1, 2, 3, 4], [1, 2, 3, 4], list("aabb")), seed=1)
    assert found["rho"] == 1 and math.isnan(found["ci_low"]) and "2 tasks" in found["note"]


def test_table_of_a_study():
    summary = frames()
    table = correlations(summary["layer_weights"], summary["mcog"], seed=0)
    assert list(table) == COLUMNS
    counts = table.groupby(["measure", "level"]).size()
    assert counts["mcog", "technique"] == counts["layer_weights", "technique"] == 1
    assert counts["mcog", "model"] == 3 and counts["mcog", "model:swapping"] == 3 + 1
    row = table[(table["measure"] == "mcog") & (table["level"] == "technique")].iloc[0]
    wide = summary["mcog"].pivot(index=["task", "model"], columns="technique", values="mcog")
    assert row["n"] == 15
    assert math.isclose(row["rho"], stats.spearmanr(wide[row["a"]], wide[row["b"]]).statistic)
    again = correlations(summary["layer_weights"], summary["mcog"], seed=0)
    pd.testing.assert_frame_equal(table, again)


def test_demo_size_says_too_small():
    summary = frames(n_tasks=2)
    table = correlations(summary["layer_weights"], summary["mcog"], seed=0)
    within = table[table["level"] == "model:swapping"]
    assert set(within["note"]) == {TOO_SMALL} and within["rho"].isna().all()


def test_models_of_different_depth_are_not_paired_by_layer():
    shallow = Run("swapping", "rte", "mini", 1, synthetic.windows(0, 1, 3))
    runs = [Run("swapping", t, "bert", 1, synthetic.windows(i, 1, 6)) for i, t in enumerate("abc")]
    summary = summarise_runs([*runs, shallow])
    table = correlations(summary["layer_weights"], summary["mcog"], seed=0)
    assert not ((table["measure"] == "layer_weights") & (table["level"] == "model")).any()


@pytest.mark.parametrize("values,expected", [([1, 3, 2], [0, 1, 0.5]), ([2, 2], [0, 0])])
def test_min_max(values, expected):
    assert list(min_max(pd.Series(values, dtype=float))) == expected


def test_holm_by_hand():
    # .01 x 4, .02 x 3, then .03 x 2 = .06 and .04 x 1, which may not be below .06
    found = holm([0.04, 0.01, math.nan, 0.03, 0.02])
    assert np.allclose(found, [0.06, 0.04, math.nan, 0.06, 0.06], equal_nan=True)
    assert list(holm([0.9, 0.8])) == [1, 1] and np.isnan(holm([math.nan])).all()


def test_holm_is_within_families_and_leaves_means_out():
    summary = frames()
    table = correlations(summary["layer_weights"], summary["mcog"], seed=0)
    for family, part in table.groupby("family"):
        wanted = holm(part["p"]) if family else np.full(len(part), np.nan)
        assert np.allclose(part["p_holm"], wanted, equal_nan=True), family
    mean = table[(table["a"] == "mean") & (table["level"] == "model:swapping")].iloc[0]
    pairs = table[(table["level"] == "model:swapping") & (table["a"] != "mean")]
    assert math.isclose(mean["rho"], pairs["rho"].mean()) and mean["n"] == 3
