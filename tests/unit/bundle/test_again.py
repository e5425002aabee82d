"""Which windows can be asked for again: those of tables that can be computed and that have them."""

import pytest

from memloc.bundle.again import Asked, compute_again, rounding
from memloc.errors import MemlocError

HEAD = "start\tend\tnoisy_error\tclean_error\tnoisy_error_normalised\tn_noisy\tn_clean\n"


@pytest.mark.parametrize("name", ["swap-heads.tsv", "swap.examples.parquet", "mcog.tsv"])
def test_a_table_that_cannot_be_computed_is_not_taken_for_another(tmp_path, name):
    run = tmp_path / "results/toy/bert/seed1"
    run.mkdir(parents=True)
    (run / "swap.tsv").write_text(HEAD)
    with pytest.raises(MemlocError, match="can't be computed again"):
        compute_again(tmp_path / "results", tmp_path, Asked("1-1", table=str(run / name)))


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
