"""Perturbation, splits, subsets: properties over random tables, and each bad input."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from memloc.data.perturb import assign_splits, describe, duplicates, perturb, perturb_file
from memloc.errors import MemlocError
from memloc.store.tables import write_task

LABELS = ["a", "b", "c", "d"]


def table(counts, split="train"):
    """Made-up rows with so many of each label, mixed in a fixed way."""
    labels = [label for label, n in counts.items() for _ in range(n)]
    order = np.random.default_rng(0).permutation(len(labels))
    frame = pd.DataFrame({"split": split, "text": [f"text {i}" for i in range(len(labels))]})
    return frame.assign(label=[labels[i] for i in order])


def whole(counts, heldout=9):
    parts = [table(counts), table(dict.fromkeys(counts, heldout), "heldout")]
    parts[1]["text"] += " held out"
    return pd.concat(parts, ignore_index=True).reset_index(names="index")


COUNTS = st.integers(2, 4).flatmap(
    lambda k: st.lists(st.integers(20, 60), min_size=k, max_size=k).map(
        lambda numbers: dict(zip(LABELS, numbers, strict=False))
    )
)


@settings(max_examples=60, deadline=None)
@given(counts=COUNTS, ratio=st.sampled_from([0.05, 0.15, 0.3, 0.9]), seed=st.integers(0, 2**40))
def test_perturbation(counts, ratio, seed):
    labels = list(counts)
    before = assign_splits(whole(counts), None, seed)
    after = perturb(before, labels, ratio, seed, "t")
    train = after["split"] == "train"
    noisy = after[after["noisy"]]
    # Per class exactly int(ratio * n), each with another label; all else as it was.
    assert Counter(noisy["original_label"]) == {name: int(ratio * n) for name, n in counts.items()}
    assert (noisy["label"] != noisy["original_label"]).all()
    assert set(noisy["label"]) <= set(labels)
    clean = after[~after["noisy"]]
    assert (clean["label"] == clean["original_label"]).all()
    assert not after.loc[~train, "noisy"].any()
    pd.testing.assert_frame_equal(
        after[["split", "index", "text"]], before[["split", "index", "text"]]
    )
    assert list(after["original_label"]) == list(before["label"])
    # The same seed gives the same rows.
    pd.testing.assert_frame_equal(after, perturb(before, labels, ratio, seed, "t"))


def test_seeds_differ():
    before = assign_splits(whole({"a": 50, "b": 50}), None, 0)
    chosen = [tuple(perturb(before, ["a", "b"], 0.15, seed, "t")["noisy"]) for seed in range(5)]
    assert len(set(chosen)) == 5


def test_new_labels_are_uniform_over_the_others():
    frame = assign_splits(whole(dict.fromkeys(LABELS, 3000)), None, 0)
    noisy = perturb(frame, LABELS, 0.5, 3, "t").query("noisy")
    for name in LABELS:
        seen = Counter(noisy.loc[noisy["original_label"] == name, "label"])
        assert set(seen) == set(LABELS) - {name}
        assert chisquare(list(seen.values())).pvalue > 1e-3


def test_every_row_is_as_likely_to_be_noisy():
    frame = assign_splits(whole({"a": 20, "b": 20}), None, 0)
    hits = sum(
        perturb(frame, ["a", "b"], 0.25, seed, "t")["noisy"].to_numpy() for seed in range(400)
    )
    train = (frame["split"] == "train").to_numpy()
    assert chisquare(hits[train]).pvalue > 1e-3


def test_a_class_does_not_hang_on_the_others():
    """Adding rows of one class leaves the choice within another as it was."""
    small, large = whole({"a": 40, "b": 20}), whole({"a": 40, "b": 60})

    def chosen(frame):
        frame = assign_splits(frame, None, 0)
        a = frame[(frame["split"] == "train") & (frame["label"] == "a")].index
        return list(perturb(frame, ["a", "b"], 0.15, 0, "t")["noisy"][a])

    assert chosen(small) == chosen(large)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(20, 300), share=st.sampled_from([0.5, 0.8, 0.9]), seed=st.integers(0, 999))
def test_own_split(n, share, seed):
    frame = table({"a": n // 2, "b": n - n // 2}, "all").reset_index(names="index")
    after = assign_splits(frame, share, seed)
    sizes = Counter(after["split"])
    assert sizes["train"] == int(share * n)
    assert 0 <= sizes["test"] - sizes["validation"] <= 1
    assert sorted(after["index"]) == list(range(n))
    pd.testing.assert_frame_equal(after, assign_splits(frame, share, seed))


@settings(max_examples=30, deadline=None)
@given(heldout=st.integers(2, 60), most=st.one_of(st.none(), st.integers(2, 80)))
def test_halves_and_subsets(heldout, most):
    frame = whole({"a": 30, "b": 30}, heldout)
    after = assign_splits(frame, None, 1, max_train=most, max_heldout=most)
    sizes = Counter(after["split"])
    assert sizes["train"] == min(60, most or 60)
    assert sizes["validation"] + sizes["test"] == min(2 * heldout, most or 2 * heldout)
    assert 0 <= sizes["test"] - sizes["validation"] <= 1
    assert after["index"].is_unique
    held = after["split"] != "train"
    assert set(after.loc[held, "index"]) <= set(range(60, 60 + 2 * heldout))
    assert (after.groupby("split")["index"].diff().dropna() > 0).all()


def test_halves_are_shuffled():
    frame = whole({"a": 30, "b": 30}, 50)
    validation = assign_splits(frame, None, 1).query("split == 'validation'")
    assert set(validation["index"]) != set(range(60, 110))
    assert {"a", "b"} == set(validation["label"])


def test_ratio_leaves_the_split_alone():
    frame = table({"a": 50, "b": 50}, "all").reset_index(names="index")
    one, two = (perturb(assign_splits(frame, 0.8, 4), ["a", "b"], r, 4, "t") for r in (0.1, 0.5))
    assert list(one["index"]) == list(two["index"])
    assert list(one["split"]) == list(two["split"])


# --- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0, 1, -0.1, 1.5, float("nan")])
def test_ratio_outside_is_refused(ratio):
    frame = assign_splits(whole({"a": 20, "b": 20}), None, 0)
    with pytest.raises(MemlocError, match=r"perturbation\.ratio: .* not between 0 and 1"):
        perturb(frame, ["a", "b"], ratio, 0, "t")


def test_label_outside_the_set_is_refused():
    frame = assign_splits(whole({"a": 20, "b": 20}), None, 0)
    with pytest.raises(MemlocError, match="task t: label 'b' is not among a, c"):
        perturb(frame, ["a", "c"], 0.15, 0, "t")


def test_class_too_small_is_refused():
    frame = assign_splits(whole({"a": 20, "b": 6}), None, 0)
    with pytest.raises(MemlocError, match=r"class 'b' has 6 .*15% .*at least 7.*max_train"):
        perturb(frame, ["a", "b"], 0.15, 0, "t")


def test_split_without_rows_is_refused():
    with pytest.raises(MemlocError, match="split validation: no rows"):
        assign_splits(whole({"a": 20}, heldout=1), None, 0)


# --- facts and files -----------------------------------------------------------------------


def test_duplicates_counted_by_hand():
    rows = [
        ("train", "x", "a", "a"),
        ("train", "x", "a", "b"),  # repeats the first, and contradicts it after perturbation
        ("train", "y", "a", "a"),
        ("train", "y", "a", "a"),  # repeats without contradiction
        ("train", "z", "a", "b"),
        ("train", "z", "b", "b"),  # contradicts the one above in the original labels only
        ("validation", "x", "a", "a"),
        ("test", "w", "a", "a"),
        ("test", "y", "b", "b"),
    ]
    frame = pd.DataFrame(rows, columns=["split", "text", "original_label", "label"])
    assert duplicates(frame) == {
        "train_repeats": 3,
        "heldout_in_train": 2,
        "conflicting": 2,
        "conflicting_before": 2,
    }


def test_pairs_are_duplicates_only_as_pairs():
    frame = pd.DataFrame(
        [
            ("train", "x", "y", "a", "a"),
            ("train", "x", "z", "a", "b"),
            ("test", "y", "x", "a", "a"),
        ],
        columns=["split", "first", "second", "original_label", "label"],
    )
    assert set(duplicates(frame).values()) == {0}


def run_file(tmp_path, frame, **options):
    source, output = tmp_path / "t.parquet", tmp_path / "t" / "perturbed.parquet"
    write_task(frame, source)
    usual = {"task": "t", "labels": ["a", "b"], "share": None, "natural": False}
    options = usual | {"ratio": 0.15, "data_seed": 0} | options
    perturb_file(source, output, **options)
    provenance = json.loads(output.with_name(f"{output.name}.provenance.json").read_text())
    return pd.read_parquet(output), provenance


def test_file_has_the_contract_s_columns(tmp_path):
    frame = whole({"a": 40, "b": 20}).drop(columns="index")
    out, facts = run_file(tmp_path, frame)
    assert list(out) == ["split", "index", "text", "original_label", "label", "noisy"]
    assert out["index"].dtype == "int64" and out["noisy"].dtype == bool
    assert list(frame["text"][out["index"]]) == list(out["text"])
    assert facts["noisy"] == 6 + 3 == out["noisy"].sum()
    assert facts["rows"] == {"train": 60, "validation": 9, "test": 9}
    assert facts["noisy_by_original_label"] == {"a": 6, "b": 3}
    assert facts["noisy_by_label"] == {"a": 3, "b": 6}
    assert facts["data_seed"] == 0 and facts["ratio"] == 0.15


def test_same_seed_same_bytes(tmp_path):
    frame = whole({"a": 40, "b": 20}).drop(columns="index")
    contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        run_file(tmp_path / name, frame)
        contents.append((tmp_path / name / "t" / "perturbed.parquet").read_bytes())
    assert contents[0] == contents[1]


def natural(split):
    frame = table({"a": 30, "b": 30}, split)
    frame["noisy"] = [i % 5 == 0 for i in range(60)]
    flipped = frame["label"].map({"a": "b", "b": "a"})
    frame["original_label"] = frame["label"].where(~frame["noisy"], flipped)
    frame.loc[::10, "original_label"] = None
    return frame


def test_natural_noise_flips_nothing(tmp_path):
    frame = pd.concat([natural("train"), table({"a": 5, "b": 5}, "heldout").assign(noisy=False)])
    frame["original_label"] = frame["original_label"].where(
        frame["split"] == "train", frame["label"]
    )
    frame = frame.reset_index(drop=True)
    out, facts = run_file(tmp_path, frame, natural=True)
    train = out[out["split"] == "train"]
    assert list(train["label"]) == list(frame["label"][:60])
    assert list(train["noisy"]) == list(frame["noisy"][:60])
    assert facts["noisy"] == 12 and facts["noisy_uncorrected"] == 6
    assert facts["ratio"] is None


def test_natural_noise_with_a_split_of_our_own_keeps_true_labels_held_out(tmp_path):
    frame = natural("all")
    out, _ = run_file(tmp_path, frame, natural=True, share=0.5)
    held = out[out["split"] != "train"]
    assert not held["noisy"].any()
    assert held["original_label"].notna().all()
    assert list(held["label"]) == list(held["original_label"])


@pytest.mark.parametrize("value", [True, False])
def test_natural_noise_needs_both_kinds(tmp_path, value):
    frame = pd.concat([natural("train"), natural("heldout")], ignore_index=True)
    frame["noisy"] = (frame["split"] == "train") & value
    frame["original_label"] = frame["label"]
    with pytest.raises(MemlocError, match=r"columns\.noisy marks .* not none or all"):
        run_file(tmp_path, frame, natural=True)


@pytest.mark.parametrize("corrected", [False, True])
def test_a_class_without_a_true_example_is_refused(tmp_path, corrected):
    """θ_O would have no example of it; a correction towards it is one."""
    frame = pd.concat([table({"a": 30, "b": 30, "c": 30}), natural("heldout")], ignore_index=True)
    train = frame["split"] == "train"
    bad = train & ((frame["label"] == "b") | (frame.index % 7 == 0))
    frame["noisy"] = bad
    frame["original_label"] = frame["label"].where(~bad, "b" if corrected else None)
    frame.loc[bad & (frame["label"] == "b"), "original_label"] = None
    if corrected:
        out, _ = run_file(tmp_path, frame, natural=True, labels=["a", "b", "c"])
        assert "b" in set(out.loc[out["noisy"], "original_label"])
        return
    with pytest.raises(MemlocError, match=r"truly 'b': .*θ_O.*columns\.corrected"):
        run_file(tmp_path, frame, natural=True, labels=["a", "b", "c"])


def test_a_class_with_few_true_examples_is_told(tmp_path, caplog):
    frame = pd.concat([table({"a": 30, "b": 30}), natural("heldout")], ignore_index=True)
    rows = frame.index[(frame["split"] == "train") & (frame["label"] == "b")]
    frame["noisy"] = frame.index.isin(rows[:15])
    frame["original_label"] = frame["label"].where(~frame["noisy"], None)
    run_file(tmp_path, frame, natural=True)
    assert "known to be truly" not in caplog.text
    frame["noisy"] = frame.index.isin(rows[:26])
    frame["original_label"] = frame["label"].where(~frame["noisy"], None)
    run_file(tmp_path, frame, natural=True)
    assert "class b has 30 training rows, but only 4 known to be truly of it" in caplog.text


def test_describe_counts_labels():
    frame = perturb(assign_splits(whole({"a": 20, "b": 40}), None, 0), ["a", "b"], 0.15, 0, "t")
    facts = describe(frame, ["a", "b"])
    assert facts["label_counts"] == {"a": 20 - 3 + 6, "b": 40 - 6 + 3}
    assert facts["noisy"] + facts["clean"] == 60


def test_rows_of_another_data_seed_are_perturbed_anew(tmp_path):
    """Split, subsets and original labels stay; the same share of each class becomes noisy."""
    rows = whole({"a": 60, "b": 40}).drop(columns="index")
    options = dict(max_train=40)
    first, _ = run_file(tmp_path, rows, **options, data_seed=0)
    anew, facts = run_file(tmp_path, rows, **options, data_seed=7, rows_seed=0)
    other, _ = run_file(tmp_path, rows, **options, data_seed=7)
    same = [name for name in first if name not in ("label", "noisy")]
    pd.testing.assert_frame_equal(first[same], anew[same])
    assert not first["noisy"].equals(anew["noisy"])
    counts = [frame[frame["noisy"]].groupby("original_label").size() for frame in (first, anew)]
    assert counts[0].equals(counts[1])
    assert not other["index"].equals(anew["index"]), "its own split would differ"
    assert facts["data_seed"] == 7 and facts["rows_seed"] == 0
