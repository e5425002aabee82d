"""Exact tables."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloc.errors import MemlocError
from memloc.store.columns import text_names
from memloc.store.tables import read_parquet, read_tsv, write_parquet, write_task, write_tsv


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


VALUES = st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=5))


@given(st.lists(st.tuples(st.integers(-9, 9), st.booleans(), VALUES), min_size=1, max_size=9))
def test_parquet_holds_what_was_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("tables") / "t.parquet"
    frame = pd.DataFrame(rows, columns=["index", "noisy", "text"]).astype({"text": object})
    frame.index = frame.index + 7  # left out
    write_parquet(frame, path)
    back = read_parquet(path)
    assert list(back) == list(frame) and back.index.tolist() == list(range(len(frame)))
    assert back["index"].tolist() == frame["index"].tolist()
    assert back["noisy"].tolist() == frame["noisy"].tolist() and back["noisy"].dtype == bool
    assert [None if pd.isna(v) else v for v in back["text"]] == [text for _, _, text in rows]
    assert list(read_parquet(path, ["noisy"])) == ["noisy"]


def test_a_task_s_columns_have_the_same_types_whatever_is_in_them(tmp_path):
    frame = pd.DataFrame({"index": [3], "original_label": [None], "label": ["a"], "noisy": [True]})
    write_task(frame, tmp_path / "t.parquet")
    kinds = {field.name: str(field.type) for field in pq.read_schema(tmp_path / "t.parquet")}
    assert kinds == {
        "index": "int64",
        "original_label": "string",
        "label": "string",
        "noisy": "bool",
    }


def test_parquet_is_compressed(tmp_path):
    write_parquet(pd.DataFrame({"x": [0] * 9}), tmp_path / "t.parquet")
    assert pq.ParquetFile(tmp_path / "t.parquet").metadata.row_group(0).column(0).compression == (
        "ZSTD"
    )


def test_parquet_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "t.parquet"
    write_parquet(pd.DataFrame({"x": [1, 2]}), path)
    with pytest.raises(MemlocError, match=r"t\.parquet: can't be read: .*y.*Delete it"):
        read_parquet(path, ["y"])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(MemlocError, match=r"t\.parquet: can't be read: .*Delete it"):
        read_parquet(path)
    with pytest.raises(FileNotFoundError):
        read_parquet(tmp_path / "none.parquet")


def test_texts_are_what_memloc_does_not_add():
    assert text_names(["split", "index", "premise", "hypothesis", "label"]) == [
        *("premise", "hypothesis"),
    ]
