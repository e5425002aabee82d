"""Correlations over tasks: by hand, against scipy, at small n; what is said for no number."""

import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from memloc.summary.spearman import (
    FEW,
    NONE,
    POSITIVE,
    TOO_SMALL,
    average,
    correlate,
    holm,
    interval,
)


def pairs(x, y, tasks=None, stratum=""):
    tasks = tasks or [f"t{i}" for i in range(len(x))]
    return pd.DataFrame({"x": x, "y": y, "task": tasks, "stratum": stratum})


def test_by_hand():
    # ranks 1 2 3 4 against 1 2 4 3: rho = 1 - 6 * 2 / (4 * 15) = 0.8. Of the 24 orders, rho is
    # 1 for one, 0.8 for three (neighbours exchanged), and as often -1 and -0.8: p = 8 / 24
    found = correlate(pairs([1, 2, 3, 4], [10, 20, 40, 30]), seed=1)
    assert math.isclose(found["rho"], 0.8) and found["n"] == 4
    assert math.isclose(found["p"], 8 / 24) and found["decided"] == "all 24 orders of 4 tasks"


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7])
def test_few_tasks_in_perfect_order(n):
    """p is 2 / n!; no interval below 6 tasks, no claim below 5."""
    found = correlate(pairs(range(n), range(n)), seed=1)
    assert found["rho"] == pytest.approx(1) and found["p"] == pytest.approx(2 / math.factorial(n))
    assert math.isnan(found["ci_low"]) == (n < 6)
    assert found["claim"] == (FEW if n < 5 else POSITIVE)
    if n >= 6:
        assert 0 < found["ci_low"] < 0.9 and found["ci_high"] == pytest.approx(1)


def slow(x, y):
    """Mean rho over rows (models) of every order of the tasks."""
    return [
        np.mean([stats.spearmanr(a, b[list(order)]).statistic for a, b in zip(x, y, strict=True)])
        for order in permutations(range(x.shape[1]))
    ]


def test_models_of_a_task_stay_together():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, (2, 3, 5)).astype(float)
    frame = pd.concat(
        [pairs(a, b, stratum=str(i)) for i, (a, b) in enumerate(zip(x, y, strict=True))]
    )
    found, every = correlate(frame, 1), np.array(slow(x, y))
    assert found["rho"] == pytest.approx(every[0])
    assert found["p"] == pytest.approx((abs(every) >= abs(every[0]) - 1e-9).mean())
    assert found["n"] == 5 and found["n_pairs"] == 15
    assert found["rho_pooled"] == pytest.approx(stats.spearmanr(x.ravel(), y.ravel()).statistic)


def test_models_that_repeat_each_other_prove_no_more_than_one():
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 7))
    one = correlate(pairs(x, y), 1)
    four = correlate(pd.concat([pairs(x, y, stratum=str(i)) for i in range(4)]), 1)
    for name in ("rho", "p", "n", "ci_low", "ci_high"):
        assert four[name] == pytest.approx(one[name], abs=1e-3)


def test_many_tasks_are_permuted_at_random_as_the_seed_says():
    rng = np.random.default_rng(2)
    x = rng.random(12)
    frame = pairs(x, x + 0.5 * rng.random(12))
    found = correlate(frame, seed=5)
    assert found == correlate(frame, seed=5)
    exact = stats.spearmanr(frame["x"], frame["y"])
    assert found["rho"] == pytest.approx(exact.statistic)
    assert found["p"] == pytest.approx(exact.pvalue, abs=0.01)


def test_what_is_held_fixed_explains_all_or_nothing():
    """Partial rho after the textbook's formula for one quantity held, from the three rhos."""
    rng = np.random.default_rng(3)
    z = rng.permutation(9)
    x, y = z + 3 * rng.random(9), z + 3 * rng.random(9)
    frame = pairs(x, y).assign(z=z)
    a, b, c = (stats.spearmanr(*both).statistic for both in ((x, y), (x, z), (y, z)))
    wanted = (a - b * c) / math.sqrt((1 - b**2) * (1 - c**2))
    assert correlate(frame, 1, ("z",))["rho"] == pytest.approx(wanted)
    plain = correlate(frame.assign(z=4), 1, ("z",))  # a constant is nothing to hold
    assert plain["rho"] == pytest.approx(a)
    follows = correlate(pairs(z, y).assign(z=2 * z), 1, ("z",))
    assert "held fixed" in follows["note"] and math.isnan(follows["rho"])


def test_each_quantity_held_asks_for_a_task_more():
    frame = pairs(range(6), range(6)).assign(z=[1, 0, 0, 1, 0, 1], v=[0, 0, 1, 1, 1, 0])
    assert correlate(frame, 1, ("z", "v"))["claim"] == FEW
    assert math.isnan(correlate(frame, 1, ("z",))["ci_low"])


def test_two_tasks_are_too_few():
    found = correlate(pairs([1, 2], [1, 2]), seed=1)
    assert found["note"] == TOO_SMALL and math.isnan(found["rho"]) and found["n"] == 2
    two = correlate(pairs([1, 2, 3, 4], [1, 2, 3, 4], list("aabb"), list("mnmn")), seed=1)
    assert two["n"] == 2 and math.isnan(two["p"])


def test_missing_values_leave_their_pair_out():
    found = correlate(pairs([1, 2, math.nan, 3], [1, 2, 3, 4]), seed=1)
    assert found["n"] == 3 and found["rho"] == pytest.approx(1)


def test_constant_values_are_said():
    found = correlate(pairs([1, 1, 1], [1, 2, 3]), seed=1)
    assert "constant" in found["note"] and found["claim"] == NONE


def test_interval_by_hand():
    # z = atanh(.5) = .5493, se = sqrt((1 + .125) / 9) = .35355: tanh(.5493 -+ 1.95996 * .35355)
    assert interval(0.5, 12) == pytest.approx((math.tanh(-0.14364), math.tanh(1.24225)), abs=1e-4)
    assert all(math.isnan(end) for end in interval(0.5, 5))


def test_layers_are_averaged_over_tasks_and_not_tested():
    frame = pd.concat(
        pairs([1, 2, 3], [1, 2, 3] if task != "t0" else [3, 2, 1], [task] * 3, model)
        for task in (f"t{i}" for i in range(6))
        for model in "mn"
    )
    found = average(frame)
    assert found["rho"] == pytest.approx(4 / 6) and math.isnan(found["p"]) and found["n"] == 6
    half = stats.t.ppf(0.975, 5) * np.std([-1, 1, 1, 1, 1, 1], ddof=1) / math.sqrt(6)
    assert found["ci_low"] == pytest.approx(4 / 6 - half) and found["ci_high"] == 1


def test_holm_by_hand():
    # .01 x 4, .02 x 3, then .03 x 2 = .06 and .04 x 1, which may not be below .06
    found = holm([0.04, 0.01, math.nan, 0.03, 0.02])
    assert np.allclose(found, [0.06, 0.04, math.nan, 0.06, 0.06], equal_nan=True)
    assert list(holm([0.9, 0.8])) == [1, 1] and np.isnan(holm([math.nan])).all()
