"""Depth against generalisation, events, larger models and binarised tasks, on frames by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from depth_tables import LAYERS, TASKS, tables
from memloc.study import published
from memloc.summary.correlations import correlations
from memloc.summary.depth import PARTIAL, commonest, depths, levelled_mean, main_tasks
from memloc.summary.spearman import holm


def table(*frames, **changed):
    weights, mcog, events, scores = frames or tables(**changed)
    return correlations(weights, mcog, 0, events, scores)


def only(found, **facts):
    for name, value in facts.items():
        found = found[found[name] == value]
    assert len(found) == 1, facts
    return found.iloc[0]


def test_table_2_of_a_model_and_pooled():
    weights, mcog, events, scores = tables()
    found = table(weights, mcog, events, scores)
    mean = mcog.groupby(["task", "model"])["mcog"].mean()
    target = scores.set_index(["task", "model"])["validation_scaled"]
    row = only(found, measure="generalisation", level="bert", a="mcog", b="validation_scaled")
    wanted = stats.spearmanr(
        mean.xs("bert", level=1), target.xs("bert", level=1).loc[sorted(TASKS)]
    )
    assert math.isclose(row["rho"], wanted.statistic, abs_tol=1e-9)
    assert row["n"] == 5 and row["paper_rho"] == 0.80
    pooled = only(found, measure="generalisation", level="all", a="crossing", b="score")
    assert pooled["n"] == 5 and pooled["paper_rho"] == 0.75
    assert pooled["n_pairs"] == 10  # models of 4 layers alone
    each = [only(found, measure="generalisation", level=m, a="crossing", b="score")["rho"]
            for m in ("bert", "opt")]  # fmt: skip
    assert math.isclose(pooled["rho"], np.mean(each), abs_tol=1e-9)
    assert {"generalisation-technique", "generalisation-baselines"} <= set(found["family"])
    partial = only(found, measure=PARTIAL, level="bert", a="mcog", b="score")
    assert partial["n"] == 5 and partial["claim"] == "too few tasks"


@pytest.mark.parametrize("layer, n", [(5.0, 5), (float("nan"), 4)])
def test_an_event_that_never_happens_ranks_last_and_one_that_cannot_be_told_is_left_out(layer, n):
    weights, mcog, events, scores = tables()
    chosen = events["event"].eq("crossing") & events["model"].eq("opt")
    events.loc[chosen & events["task"].eq("rte"), "layer"] = layer
    row = only(table(weights, mcog, events, scores),
               measure="generalisation", level="opt", a="crossing", b="score")  # fmt: skip
    assert row["n"] == n and ("1 left out" in row["note"]) == (n == 4)
    layers = events[chosen & events["source"].eq("trained")].set_index("task")["layer"]
    target = scores[scores["model"] == "opt"].set_index("task")["score"]
    wanted = stats.spearmanr(layers, target.loc[layers.index], nan_policy="omit")
    assert math.isclose(row["rho"], wanted.statistic, abs_tol=1e-9)


def test_events_of_centroids_and_probes():
    found = table()
    part = found[found["measure"] == "events"]
    assert set(part["level"]) == {"all", *LAYERS} and len(part) == 8
    assert only(part, level="all", a="crossing")["paper_rho"] == 0.84
    assert part.loc[part["level"] != "all", "paper_rho"].isna().all()


def test_a_deeper_model_against_each_and_their_mean():
    found = table()
    part = found[found["measure"] == "larger"]
    assert set(part["a"]) == {"opt-1.3b"} and set(part["b"]) == {"bert", "opt", "mean of others"}
    assert only(part, level="mcog:swapping", b="opt")["paper_rho"] == 0.87
    assert only(part, level="initiation", b="mean of others")["paper_rho"] == 0.15
    assert only(part, level="mcog:retraining", b="bert")["n"] == 5
    assert table(models=("bert", "opt"))["measure"].ne("larger").all()


def test_binarised_tasks_enter_their_own_comparison_alone():
    three = ("sst5", "emotion", "trec")
    frames = tables(tasks=(*TASKS, *(f"{t}-binary" for t in three)))
    found, mcog = table(*frames), frames[1]
    assert only(found, measure="generalisation", level="bert", a="mcog", b="score")["n"] == 5
    row = only(found, measure="binarised", level="mcog:swapping")
    wide = mcog[mcog["technique"] == "swapping"].set_index(["task", "model"])["mcog"]
    change = [wide[f"{t}-binary", m] - wide[t, m] for t in three for m in LAYERS]
    assert (
        row["n"] == 3
        and row["n_pairs"] == 9
        and math.isclose(row["mean_difference"], np.mean(change))
    )
    assert math.isclose(row["mean_absolute_difference"], np.abs(change).mean())
    assert row["paper_mean_difference"] == -0.05
    assert only(found, measure="binarised", level="crossing")["n"] == 3  # means over models


def test_holm_is_within_each_family():
    found = table()
    part = found[found["family"] == "generalisation"]
    assert len(part) == 3 * 2 * 4
    assert (
        np.allclose(part["p_holm"], holm(part["p"]), equal_nan=True)
        and (part["p_holm"] >= part["p"]).all()
    )


def test_what_was_not_run_gives_no_rows():
    weights, mcog, events, scores = tables()
    alone = correlations(weights, mcog, 0)
    assert set(alone["measure"]) == {"mcog", "layer_weights", "larger"}
    half = correlations(weights, mcog, 0, None, scores)
    assert set(half.loc[half["family"] == "generalisation", "a"]) == {"mcog"}
    assert "generalisation" not in set(correlations(weights, mcog, 0, events)["measure"])


@pytest.mark.parametrize("key,values", published.TABLE_2.items())
def test_the_papers_table_is_whole(key, values):
    assert len(values) == len(published.MODELS) and all(0 < value < 1 for value in values)
    assert published.table_2(*key, "pythia") == values[-1]
    assert math.isnan(published.table_2(*key, "minilm"))


def test_helpers():
    assert main_tasks(["trec", "trec-binary", "own-binary"]) == ["trec", "own-binary"]
    assert commonest(pd.Series(LAYERS)) == ["bert", "opt"]
    _, mcog, events, _ = tables(models=("bert",))
    found = depths(mcog, events)
    assert next(iter(found)) == "mcog" and "crossing" in found and len(found) == len(TASKS)


def test_a_task_does_not_move_for_lack_of_a_technique():
    """Techniques at levels 2 and 6: without the second, b keeps its distance from the first."""
    keys = pd.MultiIndex.from_product([["a", "b", "c"], ["m"]], names=["task", "model"])
    wide = pd.DataFrame({"one": [1.0, 2.0, 3.0], "two": [5.0, np.nan, 7.0]}, index=keys)
    assert levelled_mean(wide).tolist() == [3.0, 4.0, 5.0]
    whole = wide.fillna(9.0)
    assert levelled_mean(whole).tolist() == [3.0, 5.5, 5.0]
