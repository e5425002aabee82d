"""Spearman correlations against scipy, their intervals, and what is said instead of a number."""

import math

import numpy as np
import pandas as pd
from scipy import stats

from memloc.summary.spearman import TOO_SMALL, correlate, holm, row_wise_rho, task_interval


def pairs(x, y, tasks=None):
    return pd.DataFrame({"x": x, "y": y, "task": tasks or [f"t{i}" for i in range(len(x))]})


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


def test_holm_by_hand():
    # .01 x 4, .02 x 3, then .03 x 2 = .06 and .04 x 1, which may not be below .06
    found = holm([0.04, 0.01, math.nan, 0.03, 0.02])
    assert np.allclose(found, [0.06, 0.04, math.nan, 0.06, 0.06], equal_nan=True)
    assert list(holm([0.9, 0.8])) == [1, 1] and np.isnan(holm([math.nan])).all()
