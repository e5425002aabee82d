"""Half/half splits: sizes, pairs, classes, and what decides them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloc.errors import MemlocError
from memloc.generalise.halves import trained_rows, write_half
from memloc.seeds import derive

LABELS = st.lists(st.sampled_from("abc"), min_size=2, max_size=60).map(np.array)
NUMBERS = st.integers(1, 40)
SEEDS = st.integers(0, 9)


@given(LABELS, NUMBERS, SEEDS, st.sampled_from(["random", "pairs"]), st.booleans())
def test_half_of_the_examples_are_trained_on(labels, half, seed, splits, stratify):
    trained = trained_rows(labels, half, seed, splits, stratify)
    assert trained.dtype == bool and trained.shape == labels.shape
    assert abs(int(trained.sum()) - int((~trained).sum())) <= 1
    again = trained_rows(labels, half, seed, splits, stratify)
    assert (trained == again).all()


@given(LABELS, NUMBERS, SEEDS, st.sampled_from(["random", "pairs"]))
def test_stratified_halves_halve_every_class(labels, half, seed, splits):
    trained = trained_rows(labels, half, seed, splits, stratify=True)
    for name in set(labels):
        among = labels == name
        assert abs(int((among & trained).sum()) - int((among & ~trained).sum())) <= 1


@given(LABELS, st.integers(1, 20), SEEDS, st.booleans())
def test_the_second_of_a_pair_trains_on_what_the_first_held_out(labels, pair, seed, stratify):
    first = trained_rows(labels, 2 * pair - 1, seed, "pairs", stratify)
    second = trained_rows(labels, 2 * pair, seed, "pairs", stratify)
    assert (first != second).all()


def test_random_halves_are_unlike_each_other_and_balanced():
    """Each example is trained on about half the time, and any two of them together a quarter."""
    labels = np.array(["a"] * 40)
    drawn = np.array([trained_rows(labels, half, 0) for half in range(1, 2001)])
    share = drawn.mean(0)
    assert (np.abs(share - 0.5) < 5 * 0.5 / np.sqrt(len(drawn))).all()
    both = (drawn[:, 0] & drawn[:, 1]).mean()
    assert both == pytest.approx(20 * 19 / (40 * 39), abs=0.05)
    assert len({row.tobytes() for row in drawn}) == len(drawn)


def test_a_random_half_is_every_second_example_of_a_shuffle():
    order = np.random.default_rng(derive(3, "half", 7)).permutation(11)
    expected = np.isin(np.arange(11), order[[1, 3, 5, 7, 9]])
    assert (trained_rows(np.array(["a"] * 11), 7, 3) == expected).all()


def table(tmp_path, labels, originals=None):
    n = len(labels)
    frame = pd.DataFrame(
        {
            "split": ["train"] * n + ["validation"],
            "index": [*range(100, 100 + n), 7],
            "text": "x",
            "original_label": [*(originals or labels), "a"],
            "label": [*labels, "a"],
            "noisy": False,
        }
    )
    frame.to_parquet(tmp_path / "perturbed.parquet")
    return tmp_path / "perturbed.parquet"


def write(data, **changes):
    settings = dict(task="toy", class_names=["a", "b"], half=1, data_seed=0)
    settings |= dict(splits="random", stratify=False, labels="perturbed") | changes
    output = data.parent / "half.parquet"
    write_half(data, output, **settings)
    return pd.read_parquet(output)


def test_a_half_names_every_training_example_and_no_other(tmp_path):
    data = table(tmp_path, ["a", "b"] * 8)
    frame = write(data)
    assert list(frame) == ["index", "trained"] and list(frame["index"]) == list(range(100, 116))
    assert frame["trained"].sum() == 8
    before = (tmp_path / "half.parquet").read_bytes()
    write(data)
    assert (tmp_path / "half.parquet").read_bytes() == before


def test_examples_without_the_label_trained_on_are_left_out(tmp_path):
    data = table(tmp_path, ["a", "b"] * 8, [None, *"bababababababab"])
    assert len(write(data, labels="perturbed")) == 16
    assert list(write(data, labels="original")["index"]) == list(range(101, 116))


def test_a_half_without_a_class_is_refused_with_a_remedy(tmp_path):
    labels = np.array(["a"] * 30 + ["b"])
    half = next(h for h in range(1, 50) if not trained_rows(labels, h, 0)[-1])
    with pytest.raises(
        MemlocError, match=r"toy, half \d+.*1 training examples of class 'b'.*strat"
    ):
        write(table(tmp_path, list(labels)), half=half)
    rare = table(tmp_path, ["a"] * 30 + ["b"] * 2)
    for half in range(1, 20):
        assert write(rare, half=half, stratify=True)["trained"].iloc[-2:].sum() == 1


def test_one_example_cannot_be_halved(tmp_path):
    with pytest.raises(MemlocError, match=r"1 training examples.*max_train"):
        write(table(tmp_path, ["a"]))
