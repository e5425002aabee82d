"""Rows found by memorisation: by a plain loop, with ties, over models, and what is refused."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloc.data.perturb import mark_file
from memloc.errors import MemlocError
from memloc.generalise.finding import COLUMNS, chosen, find_noise
from memloc.store.files import read_json
from memloc.store.tables import read_tsv, write_task

SETTINGS = {"task": "toy", "labels": ["a", "b"]}
MEMORISED = st.lists(st.sampled_from([-0.2, 0.0, 0.25, 0.5, 0.75]), min_size=1, max_size=30)


@given(MEMORISED, st.sampled_from([0.1, 0.25, 0.4]), st.randoms())
def test_a_share_is_the_most_memorised_whatever_the_order_of_rows(values, share, random):
    rows = list(enumerate(values))
    by_hand = sorted(rows, key=lambda row: (-row[1], row[0]))[
        : int(Fraction(str(share)) * len(rows))
    ]
    random.shuffle(rows)
    index, memorisation = (np.array(part) for part in zip(*rows, strict=True))
    found = chosen(index, memorisation, {"share": share})
    assert set(index[found]) == {number for number, _ in by_hand}


@given(MEMORISED, st.sampled_from([0.25, 0.5, 0.6]))
def test_a_threshold_takes_the_rows_that_reach_it(values, threshold):
    found = chosen(np.arange(len(values)), np.array(values), {"threshold": threshold})
    assert list(found) == [value >= threshold for value in values]


def unmarked(folder, labels):
    n = len(labels)
    frame = pd.DataFrame(
        {
            "split": [*["train"] * n, "validation"],
            "index": [*range(100, 100 + n), 7],
            "text": [f"text {i}" for i in range(n + 1)],
            "original_label": [*labels, "a"],
            "label": [*labels, "a"],
            "noisy": False,
        }
    )
    write_task(frame, folder / "unmarked.parquet")
    return folder / "unmarked.parquet"


def halves_of(folder, model, memorised, n_halves=4, held=0.25):
    """Tables of halves: a row's label gets `held` when held out, `held` + memorised otherwise."""
    paths = {}
    for number in range(1, n_halves + 1):
        trained = (np.arange(len(memorised)) + number) % 2 == 0
        probability = held + np.where(trained, memorised, 0)
        table = {"index": np.arange(100, 100 + len(memorised)), "trained": trained}
        paths[number] = folder / f"{model}-{number}.parquet"
        pd.DataFrame({**table, "probability": probability}).to_parquet(paths[number])
    return paths


def find(folder, memorised, criterion, labels="ababababab"):
    """found.tsv of the rows; `memorised`: of each model, how much it memorises each row."""
    data = unmarked(folder, list(labels))
    halves = {model: halves_of(folder, model, np.array(own)) for model, own in memorised.items()}
    find_noise(data, halves, folder / "found.tsv", **SETTINGS, criterion=criterion)
    return read_tsv(folder / "found.tsv", COLUMNS)


def rest(*first):
    """Memorisation of ten rows, of which most is 0."""
    return [*first, *[0.0] * (10 - len(first))]


def test_the_mean_over_models_decides(tmp_path):
    found = find(tmp_path, {"x": rest(0.75, 0.5), "w": rest(0.25, 0.0, 0.5)}, {"threshold": 0.5})
    assert found["counterfactual_memorisation"].tolist() == rest(0.5, 0.25, 0.25)
    assert list(found["found"]) == [True, *[False] * 9]
    assert (found["generalisation"] == 0.25).all() and found["training_memorisation"][0] == 0.75
    assert (found["n_heldout"] == 2).all() and (found["n_trained"] == 2).all()
    assert list(found["label"]) == list("ababababab")
    record = read_json(tmp_path / "found.tsv.provenance.json")
    assert record["models"] == ["w", "x"] and record["halves"] == [1, 2, 3, 4]
    assert record["criterion"] == {"threshold": 0.5} and record["n_found"] == 1
    assert record["found_by_label"] == {"a": 1, "b": 0} and record["most_memorised"] == 0.5


T, S = "threshold", "share"
KEY = "perturbation.found"


@pytest.mark.parametrize(
    "memorised, criterion, labels, said",
    [
        (rest(0.4), (T, 0.5), "ab" * 5, rf"none of 10 .* 0.400 \(row 100\): lower {KEY}.{T}"),
        (rest(0.4), (S, 0.05), "ab" * 5, rf"{S} 0.05 none .* raise {KEY}.{S}"),
        (rest(0.4), (S, 0.2), "ab" * 5, rf"aren't memorised at all .*0\.000.* lower {KEY}.{S}"),
        ([0.6] * 5 + [0.0] * 5, (T, 0.5), "ab" * 5, rf"5 of 10 .*0.300 or more: raise {KEY}.{T}"),
        ([0.6] * 10, (T, 0.5), "ab" * 5, r"10 of 10 "),
        (rest(0.6, 0.7), (T, 0.5), "bb" + "a" * 8, rf"all .* of 'b' .* θ_O.* raise {KEY}.{T}"),
        (rest(0.6, 0.7), (S, 0.2), "bb" + "a" * 8, rf"all .* of 'b' .* lower {KEY}.{S}"),
    ],
)
def test_too_few_and_too_many_are_refused(tmp_path, memorised, criterion, labels, said):
    with pytest.raises(MemlocError, match=said):
        find(tmp_path, {"x": memorised}, dict([criterion]), labels)
    assert not (tmp_path / "found.tsv").exists()


def test_rows_that_were_never_held_out_are_refused(tmp_path):
    data = unmarked(tmp_path, list("abababab"))
    halves = {"x": halves_of(tmp_path, "x", np.array([0.9] + [0.0] * 7), n_halves=1)}
    with pytest.raises(MemlocError, match=r"8 of 8 .*row 100.*generalisation.halves.*pairs"):
        find_noise(data, halves, tmp_path / "f.tsv", **SETTINGS, criterion={"share": 0.2})


def test_a_class_without_rows_is_told_as_such(tmp_path):
    with pytest.raises(MemlocError, match="no training row has the label 'b'"):
        find(tmp_path, {"x": rest(0.75)}, {"threshold": 0.5}, labels="a" * 10)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("number", [1, 4])
def test_a_row_is_never_scored_from_the_other_halves_alone(tmp_path, value, number):
    data = unmarked(tmp_path, list("ababababab"))
    halves = halves_of(tmp_path, "x", np.array(rest(0.75)))
    table = pd.read_parquet(halves[number])
    table.loc[6, "probability"] = value
    table.to_parquet(halves[number])
    said = rf"x-{number}\.parquet: 1 of 10 rows lack a probability \(the first is row 106"
    with pytest.raises(MemlocError, match=said):
        find_noise(data, {"x": halves}, tmp_path / "f.tsv", **SETTINGS, criterion={"share": 0.2})
    assert not (tmp_path / "f.tsv").exists()


def test_found_rows_are_marked_as_natural_noise_is(tmp_path):
    find(tmp_path, {"x": rest(0.0, 0.0, 0.9)}, {"threshold": 0.5})
    settings = SETTINGS | {"finding": {"models": ["x"]}, "data_seed": 3, "share": None}
    settings |= {"max_train": None, "max_heldout": 5, "ratio": 0.15, "natural": False}
    files = (tmp_path / f"{name}" for name in ("unmarked.parquet", "found.tsv", "p.parquet"))
    mark_file(*files, settings)
    data = pd.read_parquet(tmp_path / "p.parquet")
    before = pd.read_parquet(tmp_path / "unmarked.parquet")
    assert list(data) == list(before) and (data["label"] == before["label"]).all()
    assert list(data.loc[data["noisy"], "index"]) == [102] and not data["noisy"].iloc[-1]
    assert data["original_label"].isna().tolist() == data["noisy"].tolist()
    record = read_json(tmp_path / "p.parquet.provenance.json")
    assert record["noise"] == {"models": ["x"]} and record["max_heldout"] == 5
    assert record["ratio"] is None and record["noisy"] == record["noisy_uncorrected"] == 1
    read_tsv(tmp_path / "found.tsv").iloc[1:].to_csv(tmp_path / "found.tsv", sep="\t", index=False)
    files = (tmp_path / f"{name}" for name in ("unmarked.parquet", "found.tsv", "p.parquet"))
    with pytest.raises(MemlocError, match=r"found\.tsv: tells of other rows .*delete it"):
        mark_file(*files, settings)
