"""Generalisation scores by hand, and halves trained: like a plain loop, and after a kill."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloc.errors import MemlocError
from memloc.generalise import scores as generalisation
from memloc.generalise.scores import gather_halves, scaled, score_examples, summarise_generalisation
from memloc.store.tables import COLUMNS, read_tsv, write_tsv

# Four examples, two classes. Example 13 is never held out, 12 held out once, 11 at chance exactly.
EXAMPLES = pd.DataFrame({"index": [10, 11, 12, 13], "noisy": [False, True, False, False]})
HALVES = {
    1: [(10, False, 0.9), (11, True, 0.8), (12, True, 0.7), (13, True, 1.0)],
    2: [(10, False, 0.3), (11, False, 0.4), (12, False, 0.2), (13, True, 0.5)],
    3: [(10, True, 0.95), (11, False, 0.6), (12, True, 0.9), (13, True, 0.75)],
}


def halves():
    columns = ["index", "trained", "probability"]
    return {number: pd.DataFrame(rows, columns=columns) for number, rows in HALVES.items()}


def test_examples_are_scored_as_by_hand():
    found = score_examples(list(halves().values()), EXAMPLES, chance=0.5).set_index("index")
    assert list(found["n_heldout"]) == [2, 2, 1, 0] and list(found["n_trained"]) == [1, 1, 2, 3]
    assert found["generalisation"].tolist()[:3] == pytest.approx([0.6, 0.5, 0.2])
    assert math.isnan(found.loc[13, "generalisation"])
    assert found["training_memorisation"].tolist() == pytest.approx([0.95, 0.8, 0.8, 0.75])
    memorised = found["counterfactual_memorisation"].tolist()
    assert memorised[:3] == pytest.approx([0.35, 0.3, 0.6]) and math.isnan(memorised[3])
    # 0.5 doesn't exceed chance; the one never held out is neither above nor below it
    assert list(found["above_chance"]) == ["yes", "no", "no", "none"]
    assert generalisation.share_above(found) == pytest.approx(1 / 3)


def test_halves_are_scored_by_what_they_held_out():
    found = generalisation.score_halves(halves(), chance=0.5)
    assert list(found["score"]) == pytest.approx([1.0, 0.0, 1.0])
    assert list(found["n_heldout"]) == [1, 3, 1] and list(found["n_trained"]) == [3, 1, 3]
    assert found["probability_trained"].iloc[0] == pytest.approx((0.8 + 0.7 + 1.0) / 3)


def test_nothing_held_out_has_no_score():
    never = [pd.DataFrame({"index": [10, 11], "trained": True, "probability": 0.5})]
    found = score_examples(never, EXAMPLES, 0.5)
    assert math.isnan(generalisation.share_above(found)) and set(found["above_chance"]) == {"none"}
    assert list(found["n_trained"]) == [1, 1, 0, 0]


@given(st.integers(2, 9), st.floats(0, 1))
def test_scaling_puts_chance_at_nought_and_the_best_at_one(classes, accuracy):
    chance = 1 / classes
    assert scaled(chance, chance) == 0 and scaled(1, chance) == 1
    assert scaled(accuracy, chance) == pytest.approx(
        accuracy - chance * (1 - accuracy) / (1 - chance)
    )


@given(st.data())
def test_the_score_is_that_of_a_plain_loop(data):
    n, count = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 5))
    draw = np.random.default_rng(data.draw(st.integers(0, 999)))
    trained, probability = draw.random((count, n)) < 0.5, draw.random((count, n))
    tables = [
        pd.DataFrame({"index": np.arange(n), "trained": t, "probability": p})
        for t, p in zip(trained, probability, strict=True)
    ]
    examples = pd.DataFrame({"index": np.arange(n), "noisy": False})
    found = score_examples(tables, examples, 0.25)
    above, counted = 0, 0
    for i in range(n):
        held = [probability[h][i] for h in range(count) if not trained[h][i]]
        if held:
            counted += 1
            above += sum(held) / len(held) > 0.25
    score = generalisation.share_above(found)
    assert score == pytest.approx(above / counted) if counted else math.isnan(score)


# --- files ---------------------------------------------------------------------------------


@pytest.fixture
def gathered(tmp_path):
    data = EXAMPLES.assign(split="train", label=["a", "b", "a", "a"])
    data.loc[4] = {"index": 99, "noisy": False, "split": "validation", "label": "b"}
    data.to_parquet(tmp_path / "perturbed.parquet")
    for number, frame in halves().items():
        frame.to_parquet(tmp_path / f"{number}.parquet")
    paths = {number: tmp_path / f"{number}.parquet" for number in HALVES}
    outputs = tmp_path / "generalisation.tsv", tmp_path / "halves.tsv"
    gather_halves(tmp_path / "perturbed.parquet", paths, *outputs, n_classes=2)
    return tmp_path


def test_gathering_says_which_examples_were_never_held_out(gathered, caplog):
    frame = read_tsv(gathered / "generalisation.tsv", generalisation.EXAMPLE_COLUMNS)
    assert list(frame["index"]) == [10, 11, 12, 13]
    assert list(frame["above_chance"]) == ["yes", "no", "no", "none"]
    paths = {number: gathered / f"{number}.parquet" for number in HALVES}
    outputs = gathered / "again.tsv", gathered / "again-halves.tsv"
    gather_halves(gathered / "perturbed.parquet", paths, *outputs, n_classes=2)
    assert "1 of 4 training examples were never held out" in caplog.text


def test_a_table_of_other_examples_is_refused(gathered):
    halves()[1].assign(index=[1, 2, 3, 4]).to_parquet(gathered / "1.parquet")
    outputs = gathered / "a.tsv", gathered / "b.tsv"
    with pytest.raises(MemlocError, match=r"1\.parquet.*train the half anew"):
        data = gathered / "perturbed.parquet"
        gather_halves(data, {1: gathered / "1.parquet"}, *outputs, n_classes=2)


def history(path, accuracies):
    rows = [dict.fromkeys(COLUMNS["history"], 0.0) for _ in accuracies]
    for epoch, (row, accuracy) in enumerate(zip(rows, accuracies, strict=True), start=1):
        row |= {"epoch": epoch, "validation_accuracy": accuracy}
    write_tsv(pd.DataFrame(rows), path, COLUMNS["history"])
    return path


def test_the_summary_takes_accuracy_at_the_end_of_training(gathered):
    pair = {"task": "toy", "model": "tiny"}
    paths = [history(gathered / f"{s}.tsv", acc) for s, acc in [(1, [0.9, 0.6]), (2, [0.5, 0.8])]]
    summarise_generalisation(
        [gathered / "generalisation.tsv"],
        [gathered / "halves.tsv"],
        [pair],
        paths,
        [pair | {"seed": 1}, pair | {"seed": 2}],
        {"toy": gathered / "perturbed.parquet"},
        "perturbed",
        gathered / "summary.tsv",
    )
    (row,) = read_tsv(gathered / "summary.tsv").to_dict("records")
    assert row["task"] == "toy" and row["model"] == "tiny"
    assert row["score"] == pytest.approx(1 / 3) and row["sd"] == pytest.approx(
        np.std([1, 0, 1], ddof=1)
    )
    assert row["validation_accuracy"] == pytest.approx(0.7)
    assert row["validation_scaled"] == pytest.approx(0.4)
    assert row["n_examples"] == 3 and row["n_never_heldout"] == 1 and row["n_halves"] == 3
    assert row["score_clean"] == pytest.approx(0.5) and row["score_noisy"] == 0
    # three of four labels are a: of 10, 11 and 12 with .6, .5 and .2, 11 alone exceeds its share,
    # .25; guessing by shares exceeds 1/2 for 10 and 12; the one validation row is no a
    assert row["score_above_prior"] == pytest.approx(1 / 3) and row["majority"] == 0
    assert row["score_prior"] == pytest.approx(2 / 3) and row["n_classes"] == 2
    assert row["validation_above_majority"] == pytest.approx(0.7)
    assert row["balance"] == pytest.approx(-(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)))
