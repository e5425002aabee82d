"""Scores of the control setup: accuracy@k, what layers are scored by, which models there are."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloc.control.scores import (
    ONE_LAYER,
    WEIGHTS,
    Scored,
    accuracy_at,
    hits,
    own_pairs,
    scores_by_kind,
    scores_of,
)
from memloc.errors import MemlocError
from memloc.localise.weights import one_layer_errors, window_matrix, window_weights
from memloc.study.control import (
    APART,
    NEIGHBOURS,
    automatic_pairs,
    check_pair,
    design_of,
    higher_rates,
    model_pairs,
    pair_label,
    pair_name,
    pair_of,
    possible,
    tasks_under_test,
)
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


@pytest.mark.parametrize(
    ("pair", "n_layers", "words"),
    [
        ([6, 7], 6, "a model of 6 has no layer 7"),
        ([0, 1], 6, "the lower one first"),
        ([2, 1], 6, "the lower one first"),
        ([3, 3], 6, "two different layers"),
        ([9, 2], None, "the lower one first"),
    ],
)
def test_pairs_that_cannot_be(pair, n_layers, words):
    with pytest.raises(MemlocError, match=r"control\.pairs: ") as caught:
        check_pair(pair, n_layers)
    assert words in str(caught.value)


def test_a_model_of_one_layer_has_no_pair():
    with pytest.raises(MemlocError, match="no pair"):
        automatic_pairs(1)


def test_pairs_may_be_neighbours_or_apart():
    pairs = model_pairs({"pairs": [[5, 6], [2, 9]]}, 12)
    assert pairs == [(5, 6), (2, 9)]
    names = [pair_name(pair) for pair in pairs]
    assert [pair_of(name) for name in names] == pairs
    assert [design_of(name) for name in names] == [NEIGHBOURS, APART]
    assert pair_label(names[1]) == "layers 2 and 9"
    assert check_pair([2, 9], None) == (2, 9)  # where the layers aren't known yet


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


def test_scores_survive_a_normalisation_that_is_undefined():
    table = windows(set())
    table.loc[0, "noisy_error"] = 0.5  # window 1-1 reverts more than the window of all layers
    scores = scores_of(window_weights(table))
    assert not np.isnan(scores).any() and scores[0] == scores.max()


@given(st.integers(2, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_one_layer_that_holds_everything_is_right_by_accuracy_at_1_alone(drawn):
    """By layer weights, a neighbour comes second, so that accuracy@2 passes for finding two."""
    n_layers, holding = drawn
    scores = scores_by_kind(TECHNIQUES["swapping"], windows({holding}, n_layers))
    assert set(scores) == {WEIGHTS, ONE_LAYER}
    for other in set(range(1, n_layers + 1)) - {holding}:
        right = {holding, other}
        assert [accuracy_at(found, right, 1) for found in scores.values()] == [1, 1]
        alone = accuracy_at(scores[ONE_LAYER], right, 2)
        assert alone == pytest.approx((1 + 1 / (n_layers - 1)) / 2)  # the second place is a guess
    # Fewer windows cover the neighbour on the side of the nearer end, more of them both layers.
    side = 1 if 2 * holding > n_layers + 1 or holding == 1 else -1
    neighbour = holding + side if holding < n_layers else holding - 1
    share = 0.75 if 2 * holding == n_layers + 1 and n_layers > 1 else 1
    assert accuracy_at(scores[WEIGHTS], {holding, neighbour}, 2) == pytest.approx(share)


def test_the_papers_pairs_give_a_single_layer_that_holds_everything_083_of_accuracy_at_2():
    found = [
        accuracy_at(scores_of(window_weights(windows({holding}, 12))), pair, 2)
        for pair in automatic_pairs(12)
        for holding in pair
    ]
    assert np.mean(found) == pytest.approx(0.83, abs=0.005)


@given(st.integers(1, 6), st.randoms(use_true_random=False))
def test_scores_of_single_layers_are_the_first_row_of_the_matrix(n_layers, random):
    table = windows(set(), n_layers)
    table["noisy_error"] = [random.random() for _ in range(len(table))]
    table = table.sample(frac=1, random_state=1)
    diagonal = table.pivot(index="start", columns="end", values="noisy_error").to_numpy().diagonal()
    assert (one_layer_errors(table) == window_matrix(table)[0]).all()
    assert (scores_by_kind(TECHNIQUES["swapping"], table)[ONE_LAYER] == diagonal).all()


def test_two_layers_apart_that_only_revert_together_are_not_found_by_single_layers():
    table = windows(set(), 12)
    both = (table["start"] <= 2) & (table["end"] >= 9)
    table["noisy_error"] = both.astype(float)
    scores = scores_by_kind(TECHNIQUES["swapping"], table)
    assert accuracy_at(scores[WEIGHTS], (2, 9), 1) == 1
    assert accuracy_at(scores[ONE_LAYER], (2, 9), 1) == pytest.approx(2 / 12)


def test_hits_judge_scores_by_every_pair_of_their_task():
    scored = [
        Scored({"task": "a"}, "layers1-2", np.array([9.0, 1, 0, 0])),
        Scored({"task": "a"}, "layers2-4", np.array([0.0, 1, 0, 9])),
        Scored({"task": "b"}, "layers3-4", np.array([0.0, 1, 0, 9])),
    ]
    found = hits(scored)
    first = found[found["k"] == 1].set_index(["task", "pair", "judged"])["accuracy"]
    assert first["a", "layers1-2", "layers1-2"] == first["a", "layers2-4", "layers2-4"] == 1
    assert first["a", "layers1-2", "layers2-4"] == first["a", "layers2-4", "layers1-2"] == 0
    assert len(found[found["task"] == "b"]) == 2  # no pair of another task judges it
    own = own_pairs(found)
    assert set(own["design"]) == {NEIGHBOURS, APART} and (own["chance"] == 0.5).all()
