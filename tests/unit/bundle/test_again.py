"""Windows computed again: which can be asked for, and that nothing in a table is believed."""

import io

import pandas as pd
import pytest

from memloc.bundle.again import Asked, _windows, compared_rows, compute_again, rounding
from memloc.bundle.recompute import read_windows
from memloc.errors import MemlocError
from memloc.store.tables import COLUMNS

WINDOWS = [(1, 1), (1, 2)]
TABLE = """start end noisy_error clean_error n_noisy n_clean noisy_error_normalised
1 1 1.0 0.25 12 12 2.0
1 2 0.5 0.25 12 12 1.0
"""
FURTHER = {
    "noise_minus_clean": [0.75, 0.25],
    "to_original": [1.0, 0.5],
    "n_original": [10, 10],
    "validation_error": [0.0, float("nan")],
    "n_validation": [12, 12],
}


@pytest.fixture
def windows(tmp_path):
    """A table of two windows, as it is written and read."""
    frame = pd.read_csv(io.StringIO(TABLE), sep=" ").assign(**FURTHER)[COLUMNS["windows"]]
    frame.to_csv(tmp_path / "swap.tsv", sep="\t", index=False, na_rep="nan")
    return read_windows(tmp_path / "swap.tsv")


def write_run(results, run):
    (results / run).mkdir(parents=True)
    (results / run / "swap.tsv").write_text("\t".join(COLUMNS["windows"]) + "\n")


@pytest.mark.parametrize("name", ["swap-heads.tsv", "swap.examples.parquet", "mcog.tsv"])
def test_a_table_that_cannot_be_computed_is_not_taken_for_another(tmp_path, name):
    write_run(tmp_path / "results", "toy/bert/seed1")
    table = str(tmp_path / "results/toy/bert/seed1" / name)
    with pytest.raises(MemlocError, match="can't be computed again"):
        compute_again(tmp_path / "results", tmp_path, Asked("1-1", table=table))


@pytest.mark.parametrize(
    "asked", [{"task": "rte"}, {"seed": ""}, {"seed": "9"}, {"table": ""}, {"table": "x/swap.tsv"}]
)
def test_where_no_run_is_as_asked_for_those_that_exist_are_named(tmp_path, asked):
    write_run(tmp_path, "toy/bert/seed1")
    write_run(tmp_path, "toy/bert/seed2")
    with pytest.raises(MemlocError, match=r"toy/bert/seed1, toy/bert/seed2.*--task"):
        compute_again(tmp_path, tmp_path, Asked("1-1", **asked))


def test_a_folder_without_tables_of_windows_is_told(tmp_path):
    with pytest.raises(MemlocError, match=r"no run in it has a swap\.tsv or retrain\.tsv"):
        compute_again(tmp_path, tmp_path, Asked("1-1"))


def test_a_window_is_compared_once_however_often_it_is_named(windows, tmp_path):
    assert _windows("1-2, 1-1,1-2", windows, tmp_path) == [(1, 2), (1, 1)]
    with pytest.raises(MemlocError, match="has no window 2-2"):
        _windows("1-1,2-2", windows, tmp_path)


@pytest.mark.parametrize("exactly", [True, False])
def test_what_is_the_same_is_the_same(windows, exactly):
    rows, same = compared_rows("swap", WINDOWS, windows, windows.copy(), exactly)
    assert same and len(rows) == 6 and {row[4] for row in rows} == {"0"}


@pytest.mark.parametrize("exactly", [True, False])
@pytest.mark.parametrize("column", [name for name in COLUMNS["windows"] if name[:2] == "n_"])
@pytest.mark.parametrize("value", [1, 13, 99, float("nan")])
def test_a_count_of_the_table_must_be_the_one_counted_again(windows, column, value, exactly):
    told = windows.copy()
    told.loc[(1, 2), column] = value
    rows, same = compared_rows("swap", WINDOWS, told, windows, exactly)
    assert not same and [row[:2] for row in rows if row[4] != "0"] == [["1-2", column]]


@pytest.mark.parametrize("name", ["swap", "retrain"])
@pytest.mark.parametrize("column", [c for c in COLUMNS["windows"] if "noisy_e" in c or "_" in c])
def test_a_table_cannot_widen_what_rounding_explains(windows, name, column):
    told = windows.copy()
    told.loc[(1, 2), [c for c in told if c[:2] == "n_"]] = 1
    told.loc[(1, 2), column] += 0.5
    assert not compared_rows(name, WINDOWS, told, windows, exactly=False)[1]


@pytest.mark.parametrize("column", [c for c in COLUMNS["windows"] if "error" in c or "_o" in c])
def test_rounding_explains_one_example_and_no_two(windows, column):
    if column == "n_original":
        return
    told = windows.copy()
    told.loc[(1, 1), column] -= 1 / 12
    assert compared_rows("swap", WINDOWS, told, windows, exactly=False)[1]
    assert not compared_rows("swap", WINDOWS, told, windows, exactly=True)[1]
    told.loc[(1, 1), column] -= 1 / 10
    assert not compared_rows("swap", WINDOWS, told, windows, exactly=False)[1]


@pytest.mark.parametrize("change", [("1.0", ""), ("1 2 ", "1 1 "), ("1 1 ", "x 1 "), ("12", "a")])
def test_a_table_that_holds_no_numbers_is_refused(tmp_path, change):
    text = pd.read_csv(io.StringIO(TABLE.replace(*change)), sep=" ", dtype=str).assign(**FURTHER)
    text.to_csv(tmp_path / "swap.tsv", sep="\t", index=False, na_rep="")
    with pytest.raises(MemlocError, match=r"can't be read|twice"):
        read_windows(tmp_path / "swap.tsv")


@pytest.mark.parametrize(
    ("name", "n", "most"),
    [
        ("swap", 1, 0),
        ("retrain", 0, 0),
        ("swap", 4, 1 / 4),
        ("swap", 1000, 0.01),
        ("retrain", 100, 0.05),
    ],
)
def test_rounding_never_explains_an_error_of_all_examples(name, n, most):
    assert rounding(name, n) == most < 1
