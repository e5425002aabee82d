"""Exact tables."""

import importlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memloc
from memloc.errors import MemlocError
from memloc.store.columns import text_names
from memloc.store.tables import (
    NAMES,
    read_parquet,
    read_tsv,
    write_parquet,
    write_task,
    write_tsv,
)


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
    with pytest.raises(MemlocError, match=r"t\.parquet can't be read: .*y.*Delete it"):
        read_parquet(path, ["y"])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(MemlocError, match=r"t\.parquet can't be read: .*Delete it"):
        read_parquet(path)
    with pytest.raises(MemlocError, match=r"none\.parquet"):
        read_parquet(tmp_path / "none.parquet")


def test_texts_are_what_memloc_does_not_add():
    assert text_names(["split", "index", "premise", "hypothesis", "label"]) == [
        *("premise", "hypothesis"),
    ]


LOOK_ALIKES = ["007", "1e3", "nan", "null", "true", "1_000", "NA", "None", "inf", "-0", "", "x"]


def columns_of_every_kind():
    """(where, columns) of every table that a module of memloc describes by COLUMNS."""
    root = Path(memloc.__file__).parent
    for file in sorted(root.rglob("*.py")):
        if re.search(r"^\w*COLUMNS\b.* = [\[{(]", file.read_text(), re.M):
            name = ".".join(file.relative_to(root.parent).with_suffix("").parts)
            for key, value in vars(importlib.import_module(name)).items():
                if key.endswith("COLUMNS") and key != "LABEL_COLUMNS":
                    kinds = value if isinstance(value, dict) else {"": value}
                    yield from ((f"{name} {key} {kind}", list(kinds[kind])) for kind in kinds)


def test_names_that_look_like_something_else_stay_text_in_every_table(tmp_path):
    tables = dict(columns_of_every_kind())
    assert len(tables) > 25
    for where, columns in tables.items():
        numbers = [0.5] * (len(LOOK_ALIKES) - 1) + [float("nan")]
        frame = pd.DataFrame({c: LOOK_ALIKES if c in NAMES else numbers for c in columns})
        write_tsv(frame, tmp_path / "t.tsv", columns)
        pd.testing.assert_frame_equal(read_tsv(tmp_path / "t.tsv", columns), frame, obj=where)
        write_parquet(frame, tmp_path / "t.parquet")
        pd.testing.assert_frame_equal(read_parquet(tmp_path / "t.parquet"), frame, obj=where)


def test_a_table_of_one_name_alone_has_text_too(tmp_path):
    for name in LOOK_ALIKES:
        write_tsv(pd.DataFrame({"task": [name], "x": [1]}), tmp_path / "t.tsv")
        back = read_tsv(tmp_path / "t.tsv")
        assert back["task"].tolist() == [name] and back["x"].tolist() == [1]


def test_a_row_without_a_name_is_not_written(tmp_path):
    with pytest.raises(MemlocError, match=r"t\.tsv: a row of the table has no model"):
        write_tsv(pd.DataFrame({"model": ["a", None]}), tmp_path / "t.tsv")
