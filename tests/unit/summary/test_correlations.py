"""The table of correlations: what is compared with what, and what isn't."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import depth_tables
import synthetic
from memloc.summary.agreement import min_max
from memloc.summary.correlations import COLUMNS, correlations
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
    assert row["n"] == 5 and row["n_pairs"] == 15 and row["claim"] in ("none", "positive")
    one, two = wide[row["a"]], wide[row["b"]]
    assert math.isclose(row["rho_pooled"], stats.spearmanr(one, two).statistic)
    within = [
        stats.spearmanr(one.xs(m, level=1), two.xs(m, level=1)).statistic
        for m in ("bert", "opt", "pythia")
    ]
    assert math.isclose(row["rho"], np.mean(within))
    layers = table[(table["measure"] == "layer_weights")]
    assert (
        layers["p"].isna().all() and (layers["n"] == 5).all() and set(layers["claim"]) == {"none"}
    )
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
    assert math.isclose(mean["rho"], pairs["rho"].mean()) and mean["n_pairs"] == 3


def test_models_are_compared_within_the_papers_techniques():
    summary = frames()
    other = summary["mcog"][summary["mcog"]["technique"] == "gradients"]
    other = other.assign(technique="weight-change", mcog=other["mcog"] + 50)
    more = {
        "mcog": pd.concat([summary["mcog"], other]),
        "weights": pd.concat([
            summary["layer_weights"],
            summary["layer_weights"].query("technique == 'gradients'").assign(
                technique="weight-change"
            ),
        ]),
    }  # fmt: skip
    theirs, all_ = (
        correlations(w, m, 0) for w, m in (
            (summary["layer_weights"], summary["mcog"]), (more["weights"], more["mcog"])
        )
    )  # fmt: skip
    names = ["a", "b", "rho", "rho_pooled", "n_pairs"]
    for measure in ("mcog", "layer_weights"):
        kept = [
            t.loc[(t["measure"] == measure) & (t["level"] == "model"), names].reset_index(drop=True)
            for t in (theirs, all_)
        ]
        pd.testing.assert_frame_equal(*kept)
    within = theirs[theirs["level"].str.startswith("model:") & theirs["a"].eq("bert")]
    within = within[(within["b"] == "opt")]["rho"]
    lead = theirs[(theirs["level"] == "model") & (theirs["measure"] == "mcog")].iloc[0]
    assert len(within) == 2 and math.isclose(lead["rho"], within.mean())


def test_levels_alone_make_no_agreement_within_techniques():
    """Two models that share nothing but how far up a technique points."""
    rng = np.random.default_rng(0)
    keys = pd.MultiIndex.from_product(
        [[f"t{i}" for i in range(9)], ["a", "b"], ["swapping", "retraining", "gradients"]],
        names=["task", "model", "technique"],
    )
    mcog = keys.to_frame(index=False).assign(found="yes")
    level = mcog["technique"].map({"swapping": 2.0, "retraining": 5.0, "gradients": 9.0})
    mcog["mcog"] = level + rng.random(len(mcog))
    weights = mcog.assign(layer=1, weight=1.0)
    table = correlations(weights, mcog, 0)
    row = table[(table["measure"] == "mcog") & (table["level"] == "model")].iloc[0]
    assert row["rho_pooled"] > 0.85 and abs(row["rho"]) < 0.5 and row["claim"] == "none"


def test_what_found_nothing_is_left_out_and_the_papers_way_stands_beside():
    summary = frames(n_tasks=6)
    mcog = summary["mcog"]
    vain = (mcog["task"] == "rte") & (mcog["technique"] == "gradients")
    mcog.loc[vain, "found"] = "no"
    table = correlations(summary["layer_weights"], mcog, 0)
    key = (table["measure"] == "mcog") & (table["level"] == "technique")
    found, inclusive = (
        table[key & (table["included"] == name)].iloc[0] for name in ("found", "all")
    )
    assert found["n"] == 5 and inclusive["n"] == 6 and inclusive["n_pairs"] == 18
    assert math.isnan(inclusive["p"]) and not math.isnan(found["p"])
    same = table[(table["level"] == "model:swapping")]
    assert set(same["included"]) == {"found"}  # nothing changed there: no second row


def test_a_study_that_found_nothing_has_the_papers_inclusive_rows_alone():
    weights, mcog, events, scores = depth_tables.tables()
    table = correlations(weights, mcog.assign(found="no"), 0, events, scores)
    assert list(table) == COLUMNS and (table["included"] == "all").any()
    assert table["claim"].isin(["", "none", "too few tasks"]).all()
