"""Single examples: smallest reverting windows, their distribution and ranks."""

import numpy as np
import pandas as pd
import pytest

from example_tables import N_LAYERS, NAMES, study, tables
from memloc.errors import MemlocError
from memloc.store.tables import read_tsv
from memloc.summary.examples import RUN_COLUMNS, locate, ranks, read_locations, shares, windows_in
from memloc.windows import window_name


def brute_force(kept):
    """The smallest reverting window of one example's row, the slow and obvious way."""
    for length in range(1, N_LAYERS + 1):
        for start in range(1, N_LAYERS - length + 2):
            if not kept[f"{start}-{start + length - 1}"]:
                return str(length), str(start)
    return "none", "none"


def test_smallest_windows_by_hand():
    reverting = [{"2-2", "3-3", "1-3"}, {"1-3"}, {"2-3", "1-2", "1-3"}, set(), {"1-1"}]
    found = locate(*tables(reverting, [True, True, True, True, False]))
    assert list(found) == RUN_COLUMNS and set(found["n_layers"]) == {3}
    assert found["length"].tolist() == ["1", "3", "2", "none", "none"]
    assert found["start"].tolist() == ["2", "1", "1", "none", "none"]
    assert found["single_layers"].tolist() == ["2,3", "none", "none", "none", "none"]
    assert found["share"].tolist()[:4] == [3 / 6, 1 / 6, 3 / 6, 0.0]
    assert np.isnan(found["share"].iloc[4]) and not found["memorised"].iloc[4]


def test_smallest_windows_equal_brute_force():
    draw = np.random.default_rng(0)
    reverting = [{n for n in NAMES if draw.random() < 0.3} for _ in range(60)]
    examples, memorised = tables(reverting)
    found = locate(examples, memorised.sample(frac=1, random_state=1))
    for row, kept in zip(found.itertuples(), examples.to_dict("records"), strict=True):
        assert (row.length, row.start) == brute_force(kept)
        reverting = {window_name(window) for window in windows_in(row.windows, N_LAYERS)}
        assert reverting == {name for name in NAMES if not kept[name]}


def test_other_examples_are_refused():
    examples, memorised = tables([{"1-1"}, set()])
    with pytest.raises(MemlocError, match="differ in examples"):
        locate(examples, memorised.iloc[:1])


def run(reverting, seed, model="bert", memorised=None):
    frame = locate(*tables(reverting, memorised))
    return frame.assign(task="rte", model=model, seed=seed)


def test_shares_are_of_memorised_examples_and_never_is_explicit():
    one = run([{"1-1"}, {"1-1", "3-3"}, {"1-3"}, set()], 1)
    two = run([{"1-1"}, {"1-2"}, {"1-1"}, set()], 2, memorised=[True, True, False, True])
    found = shares(pd.concat([one, two])).set_index(["kind", "value"])
    assert list(found.loc["length"].index) == ["1", "2", "3", "none"]
    assert found.loc[("length", "1"), "share"] == pytest.approx((2 / 4 + 1 / 3) / 2)
    assert found.loc[("length", "none"), "share"] == pytest.approx((1 / 4 + 1 / 3) / 2)
    assert found.loc["length"]["share"].sum() == pytest.approx(1)
    assert found.loc[("layer", "3"), "share"] == pytest.approx((1 / 4 + 0) / 2)
    assert set(found["n_examples"]) == {7} and set(found["n_unmemorised"]) == {1}
    assert found.loc[("layer", "3"), "sd"] == pytest.approx(0.25 / 2**0.5)


def test_ranks_put_the_never_reverted_first():
    one = run([{"1-1", "1-2", "1-3"}, {"1-1"}, {"1-2"}, set()], 1)
    two = run([{"1-1"}, {"1-1"}, {"1-3"}, set()], 2, memorised=[False, True, True, True])
    found = ranks(pd.concat([one, two]))
    assert found["index"].tolist() == [19, 16, 13, 10]
    assert found["difficulty"].tolist() == pytest.approx([4 / 3, 2.5 / 3, 1 / 3, 1 / 3])
    assert found["n_never"].tolist() == [2, 0, 0, 0]
    assert found["n_memorised"].tolist() == [2, 2, 2, 1] and set(found["n_runs"]) == {2}


def test_a_run_that_memorised_nothing_has_shares_of_none():
    found = shares(run([set(), set()], 1, memorised=[False, False]))
    assert found["share"].isna().all() and set(found["n_examples"]) == {0}
    assert ranks(run([set()], 1, memorised=[False])).empty


def test_tables_round_trip(tmp_path):
    outputs = study(tmp_path)
    examples = read_locations(outputs["examples"])
    assert len(examples) == 120 and set(examples["length"]) <= {"1", "2", "3", "none"}
    assert examples["windows"].str.startswith("0x").all()
    again = shares(examples)
    kept = read_tsv(outputs["example_shares"])
    assert again["share"].tolist() == pytest.approx(kept["share"].tolist())
