"""Scores of the control setup: accuracy@k, its tables, and which models there are."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloc.control.scores import accuracy_at, aggregate, control_frames, scores_of, variant_frame
from memloc.control.tables import paper_accuracies
from memloc.errors import MemlocError
from memloc.localise.gradients.variants import VARIANTS
from memloc.localise.weights import window_weights
from memloc.study.control import (
    automatic_pairs,
    check_pair,
    higher_rates,
    model_pairs,
    pair_name,
    pair_of,
    possible,
    tasks_under_test,
)
from memloc.study.published import TABLE_4
from memloc.study.techniques import TECHNIQUES

CONTROL = {
    "auxiliary": "rte", "pairs": "auto", "tasks": "auto", "validation_tasks": ["mrpc"],
    "learning_rates": [1e-4, 2e-5, 1e-5],
}  # fmt: skip


@pytest.mark.parametrize(
    ("layers", "pairs"),
    [
        (12, [(1, 2), (6, 7), (11, 12)]),
        (24, [(1, 2), (12, 13), (23, 24)]),
        (6, [(1, 2), (3, 4), (5, 6)]),
        (5, [(1, 2), (2, 3), (4, 5)]),
        (4, [(1, 2), (2, 3), (3, 4)]),
        (3, [(1, 2), (2, 3)]),
        (2, [(1, 2)]),
    ],
)
def test_pairs_by_depth(layers, pairs):
    assert automatic_pairs(layers) == pairs
    assert [pair_of(pair_name(pair)) for pair in pairs] == pairs


def test_pairs_that_cannot_be():
    with pytest.raises(MemlocError, match="no pair"):
        automatic_pairs(1)
    for pair in ([6, 7], [0, 1], [1, 3], [2, 1], [3, 3]):
        with pytest.raises(MemlocError, match=r"control\.pairs"):
            check_pair(pair, 6)
    assert model_pairs({"pairs": [[5, 6]]}, 6) == [(5, 6)]


def test_tasks_under_test():
    roles = tasks_under_test(CONTROL, ["wic", "rte", "mrpc"])
    assert roles == {"wic": "test", "mrpc": "validation"}
    with pytest.raises(MemlocError, match=r"control\.auxiliary: 'rte' can't be under test"):
        tasks_under_test({**CONTROL, "tasks": ["rte", "mrpc"]}, ["rte"])
    for auxiliary, task in (("r8-binary", "r8"), ("r8", "r8-binary")):
        with pytest.raises(MemlocError, match=f"'{auxiliary}' has the texts of '{task}'"):
            tasks_under_test({**CONTROL, "auxiliary": auxiliary}, [task, "mrpc"])
    with pytest.raises(MemlocError, match="validation_tasks: 'mrpc' is not under test"):
        tasks_under_test(CONTROL, ["wic", "rte"])
    with pytest.raises(MemlocError, match="leaves no task under test"):
        tasks_under_test({**CONTROL, "validation_tasks": []}, ["rte"])
    automatic = {**CONTROL, "validation_tasks": "auto"}
    papers = tasks_under_test(automatic, ["wic", "rte", "mrpc", "trec"])
    assert papers == {"wic": "test", "mrpc": "validation", "trec": "validation"}
    assert tasks_under_test(automatic, ["rte", "trec"]) == {"trec": "test"}
    assert not possible(automatic, ["rte"]) and possible(automatic, ["rte", "trec"])
    assert higher_rates(CONTROL, 1e-5) == [2e-5, 1e-4]


@given(
    st.lists(st.integers(0, 3), min_size=3, max_size=6),
    st.integers(1, 2),
    st.integers(0, 1),
)
def test_ties_score_the_mean_over_all_orders(scores, k, first):
    right = {first + 1, first + 2}
    orders = [
        order
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    expected = np.mean([np.mean([i + 1 in right for i in order[:k]]) for order in orders])
    assert accuracy_at(scores, right, k) == pytest.approx(expected)


def test_what_says_nothing_scores_chance_and_what_is_undefined_scores_nothing():
    assert accuracy_at([0.0] * 6, (3, 4), 1) == pytest.approx(1 / 3)
    assert accuracy_at([1, 2, 9, 8, 0, 0], (3, 4), 2) == 1
    assert accuracy_at([1, 2, 9, 8, 0, 0], (4, 5), 1) == 0
    assert np.isnan(accuracy_at([1, np.nan, 2], (1, 2), 1))


def windows(reverting, n_layers=4):
    """A window table in which exactly the windows with a layer of `reverting` err."""
    rows = [
        {"start": s, "end": e, "noisy_error": float(any(s <= n <= e for n in reverting))}
        for s in range(1, n_layers + 1)
        for e in range(s, n_layers + 1)
    ]
    return pd.DataFrame(rows).assign(clean_error=0.0, n_noisy=10, n_clean=10)


def test_frames_of_control_models():
    runs = [
        dict(technique="swapping", task=task, model="m", pair="layers3-4", role=role)
        for task, role in (("a", "test"), ("b", "validation"), ("c", "test"))
    ]
    tables = [windows({3, 4}), windows({3, 4}), windows({1, 2})]
    frames = control_frames(tables, runs, TECHNIQUES)
    accuracy = frames["control_accuracy"].set_index(["task", "k"])["accuracy"]
    assert accuracy["a", 2] == accuracy["b", 2] == 1 and accuracy["c", 2] == 0
    assert (frames["control_accuracy"]["chance"] == 0.5).all()
    means = frames["control_techniques"].set_index(["role", "k"])
    assert means.loc[("test", 2), "accuracy"] == 0.5 and means.loc[("test", 2), "n"] == 2
    assert means.loc[("validation", 1), "accuracy"] == 1
    assert set(frames["control_techniques"]["model"]) == {"m"}
    assert len(frames["control_weights"]) == 3 * 4


def test_several_models_have_rows_of_their_own_and_of_all():
    frame = pd.DataFrame(
        [
            dict(role="test", model=model, technique="t", k=1, accuracy=value, chance=0.5)
            for model, value in (("a", 1.0), ("b", 0.0), ("b", np.nan))
        ]
    )
    means = aggregate(frame, ["technique"]).set_index("model")
    assert means.loc["all", "accuracy"] == 0.5 and means.loc["all", "n"] == 2
    assert means.loc["b", "n_none"] == 1 and means.loc["a", "accuracy"] == 1


def test_scores_survive_a_normalisation_that_is_undefined():
    table = windows(set())
    table.loc[0, "noisy_error"] = 0.5  # window 1-1 reverts more than the window of all layers
    scores = scores_of(window_weights(table))
    assert not np.isnan(scores).any() and scores[0] == scores.max()


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
        dict(task=task, model="mine", pair="layers3-4", role="validation")
        for task in ("mrpc", "trec")
    ]
    paper = paper_accuracies(weights, {"mrpc", "trec"})
    frame = variant_frame([gradients()] * 2, runs, paper).set_index(["variant", "k"])
    assert len(frame) == 16
    assert frame.loc[("L1-clean-frozen", 2), "accuracy"] == 1
    assert frame.loc[("L1-clean", 2), "accuracy"] == 0
    assert frame.loc[("L1-clean-frozen", 2), "paper"] == 0.75
    assert frame.loc[("L2-frozen", 2), "paper"] == 0.5
    assert np.isnan(frame.loc[("L1-clean-frozen", 1), "paper"])
    assert paper_accuracies(weights, {"mrpc"}) == {}
    assert all(len(values) == 4 for values in TABLE_4.values())
