"""The table of correlations: what is compared with what, and what isn't."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import synthetic
from memloc.summary.correlations import COLUMNS, correlations, min_max
from memloc.summary.spearman import TOO_SMALL, holm
from memloc.summary.weights import Run, summarise_runs


def frames(n_tasks=5, models=("bert", "opt", "pythia")):
    runs = []
    for i, task in enumerate(list(synthetic.TASKS)[:n_tasks]):
        for j, model in enumerate(models):
            runs.append(Run("swapping", task, model, 1, synthetic.windows(i, 10 * j, 6)))
            runs.append(Run("gradients", task, model, 1, synthetic.gradients(i, 10 * j, 6)))
    return summarise_runs(runs)


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


def test_holm_is_within_families_and_leaves_means_out():
    summary = frames()
    table = correlations(summary["layer_weights"], summary["mcog"], seed=0)
    for family, part in table.groupby("family"):
        wanted = holm(part["p"]) if family else np.full(len(part), np.nan)
        assert np.allclose(part["p_holm"], wanted, equal_nan=True), family
    mean = table[(table["a"] == "mean") & (table["level"] == "model:swapping")].iloc[0]
    pairs = table[(table["level"] == "model:swapping") & (table["a"] != "mean")]
    assert math.isclose(mean["rho"], pairs["rho"].mean()) and mean["n"] == 3
