"""Exact tables."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloc.errors import MemlocError
from memloc.store.tables import read_tsv, write_tsv


@given(st.lists(st.floats(width=64), min_size=1, max_size=20))
def test_floats_survive_a_table_exactly(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("tables") / "t.tsv"
    write_tsv(pd.DataFrame({"x": values, "name": "none"}), path)
    back = read_tsv(path, ["x", "name"])
    assert np.array_equal(np.array(values), back["x"].to_numpy(dtype=float), equal_nan=True)
    assert set(back["name"]) == {"none"}


def test_tables_without_a_column_are_refused(tmp_path):
    with pytest.raises(MemlocError, match="lacks the columns"):
        write_tsv(pd.DataFrame({"a": [1]}), tmp_path / "t.tsv", ["a", "b"])
    write_tsv(pd.DataFrame({"a": [1]}), tmp_path / "t.tsv")
    with pytest.raises(MemlocError, match=r"t.tsv: lacks the columns \['b'\]"):
        read_tsv(tmp_path / "t.tsv", ["b"])
