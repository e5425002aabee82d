"""Tables of the control setup: a row per score and design, and the paper's numbers beside ours."""

import numpy as np
import pandas as pd
import pytest

from memloc.localise.gradients.variants import VARIANTS
from memloc.study.published import TABLE_4
from memloc.study.techniques import TECHNIQUES
from memloc.summary.control import control_frames, paper_accuracies, variant_frame
from memloc.windows import all_windows


def windows(reverting, n_layers=4):
    """A window table in which exactly the windows with a layer of `reverting` err."""
    rows = [
        {"start": s, "end": e, "noisy_error": float(any(s <= n <= e for n in reverting))}
        for s, e in all_windows(n_layers)
    ]
    return pd.DataFrame(rows).assign(clean_error=0.0, n_noisy=10, n_clean=10)


def run(task, role, pair="layers3-4"):
    return dict(technique="swapping", task=task, model="m", pair=pair, role=role)


def test_frames_of_control_models():
    runs = [run("a", "test"), run("b", "validation"), run("c", "test")]
    tables = [windows({3, 4}), windows({3, 4}), windows({1, 2})]
    frames = control_frames(tables, runs, TECHNIQUES, 1)
    own = frames["control_accuracy"]
    accuracy = own.set_index(["task", "scores", "k"])["accuracy"]
    for scores in ("weights", "one-layer"):
        assert [accuracy[task, scores, 2] for task in "abc"] == [1, 1, 0]
    assert (own["chance"] == 0.5).all() and set(own["design"]) == {"neighbours"}
    means = frames["control_techniques"].set_index(["role", "scores", "k"])
    assert means.loc[("test", "weights", 1), "accuracy"] == 0.5
    assert means.loc[("test", "weights", 1), "n"] == 2
    assert means.loc[("validation", "one-layer", 1), "accuracy"] == 1
    assert set(frames["control_techniques"]["model"]) == {"m"}
    weights = frames["control_weights"]
    assert len(weights) == 3 * 4
    assert list(weights.loc[weights["task"] == "c", "one_layer"]) == [1, 1, 0, 0]


def test_shuffled_is_what_all_scores_of_a_task_get_by_one_pair():
    """A technique that always points at layer 1 is right by one pair of two, shuffled or not."""
    runs = [run("a", "test", pair) for pair in ("layers1-2", "layers3-4")]
    frames = control_frames([windows({1}), windows({1})], runs, TECHNIQUES, 1)
    own = frames["control_accuracy"].query("k == 1 and scores == 'weights'").set_index("pair")
    assert list(own["accuracy"]) == list(own["shuffled"]) == [1, 0]
    means = frames["control_techniques"].query("k == 1")
    assert (means["accuracy"] == means["shuffled"]).all()


def test_pairs_that_are_apart_are_a_design_of_their_own():
    runs = [run("a", "test", pair) for pair in ("layers1-2", "layers2-4")]
    frames = control_frames([windows({1, 2}), windows({1, 3})], runs, TECHNIQUES, 1)
    means = frames["control_techniques"].query("scores == 'one-layer'").set_index(["design", "k"])
    assert means.loc[("neighbours", 1), "accuracy"] == 1
    assert means.loc[("apart", 1), "accuracy"] == 0
    # exchanged, half of layers 1-2 are found in {1, 3}, and half of layers 2-4 in {1, 2}
    assert means.loc[("neighbours", 1), "shuffled"] == pytest.approx((1 + 0.5) / 2)
    assert means.loc[("apart", 1), "shuffled"] == pytest.approx((0 + 0.5) / 2)


def gradients():
    rows = [
        dict(norm=norm, clean=clean, frozen=frozen, layer=layer, weight_raw=value, n_noisy=4)
        for norm, clean, frozen in VARIANTS.values()
        for layer, value in zip((1, 2, 3, 4), (1, 2, 3, 4) if frozen else (4, 3, 2, 1), strict=True)
    ]
    return pd.DataFrame(rows).assign(weight=lambda f: f["weight_raw"] / 10, n_clean=4)


def test_variants_have_the_papers_numbers_beside_ours_where_these_are_comparable():
    weights = {"mine": "bert-base-cased", "other": "something"}
    runs = [
        dict(task=task, model="mine", pair=pair, role="validation")
        for task in ("mrpc", "trec")
        for pair in ("layers3-4", "layers2-4")
    ]
    paper = paper_accuracies(weights, {"mrpc", "trec"})
    frame = variant_frame([gradients()] * 4, runs, paper).set_index(["design", "variant", "k"])
    assert len(frame) == 2 * 16 and (frame["n"] == 2).all()
    ours = frame.loc["neighbours"]
    assert ours.loc[("L1-clean-frozen", 1), "accuracy"] == 1
    assert ours.loc[("L1-clean", 2), "accuracy"] == 0
    assert ours.loc[("L1-clean-frozen", 2), "paper"] == 0.75
    assert ours.loc[("L2-frozen", 2), "paper"] == 0.5
    assert np.isnan(ours.loc[("L1-clean-frozen", 1), "paper"])
    assert frame.xs("apart")["paper"].isna().all()  # the paper's pairs are neighbours
    assert paper_accuracies(weights, {"mrpc"}) == {}
    assert all(len(values) == 4 for values in TABLE_4.values())
