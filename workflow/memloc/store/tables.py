"""Tables: tidy TSV with floats in full precision (round-trip exact), and parquet for big ones."""

import csv
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from memloc.errors import MemlocError
from memloc.store.files import atomic, reading

# What is measured of a model whose parts were modified (memloc.localise.sweep.error_table).
FURTHER = [
    *("noise_minus_clean", "to_original", "n_original", "validation_error", "n_validation"),
]
COLUMNS: dict[str, list[str]] = {
    "history": [
        "epoch",
        "train_loss",
        "clean_accuracy",
        "noisy_accuracy",
        "validation_accuracy",
        "validation_macro_f1",
        "seconds",
    ],
    "windows": [
        "start",
        "end",
        "noisy_error",
        "clean_error",
        "n_noisy",
        "n_clean",
        "noisy_error_normalised",
        *FURTHER,
    ],
    "losses": ["index", "loss"],
    "heads": ["layer", "head", "noisy_error", "clean_error", "n_noisy", "n_clean", *FURTHER],
}

ANEW = "Delete it to have it made anew"
# Columns of names, most of which users give: they are text, also where they look like a number, a
# truth value or a missing one (007, 1e3, true, nan).
NAMES = (
    *("task", "model", "technique", "subject", "label", "original_label", "labels", "category"),
    *("class_a", "class_b", "a", "b", "name", "stage"),
)


def write_tsv(frame: pd.DataFrame, path: str | Path, columns: list[str] | None = None) -> None:
    """Write `frame` atomically; with `columns`, exactly these and in this order.

    Raises MemlocError where a column of NAMES lacks one: it would be read as a name.
    """
    if columns is not None:
        missing = [name for name in columns if name not in frame]
        if missing:
            raise MemlocError(f"{path}: the table lacks the columns {missing}")
        frame = frame[columns]
    for name in frame.columns.intersection(NAMES):
        if frame[name].isna().any():
            raise MemlocError(f"{path}: a row of the table has no {name}")
    with atomic(path) as draft:
        frame.to_csv(draft, sep="\t", index=False, na_rep="nan")


def read_tsv(path: str | Path, columns: list[str] | None = None) -> pd.DataFrame:
    """Read a TSV; with `columns`, an error names those it lacks.

    Only "nan" means missing; columns of NAMES are text and lack nothing. Raises MemlocError where
    the file can't be read.
    """
    with reading(path, ANEW):
        with open(path, newline="", encoding="utf-8") as file:
            head = next(csv.reader(file, delimiter="\t"), [])
        frame = pd.read_csv(
            path,
            sep="\t",
            keep_default_na=False,
            na_values={name: [] if name in NAMES else ["nan"] for name in head},
            dtype=dict.fromkeys(NAMES, str),
        )
    missing = [name for name in columns or [] if name not in frame]
    if missing:
        raise MemlocError(f"{path}: lacks the columns {missing}; it has {list(frame)}")
    return frame


def write_parquet(table: pd.DataFrame | pa.Table, path: str | Path) -> None:
    """Write a table atomically as compressed parquet; a data frame's index is left out."""
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    with atomic(path) as draft:
        pq.write_table(table, draft, compression="zstd")


def read_parquet(path: str | Path, columns: list[str] | None = None) -> pd.DataFrame:
    """Read a parquet file of ours, or some of its columns.

    Raises MemlocError where the file isn't whole or lacks a column.
    """
    with reading(path, ANEW):
        return pd.read_parquet(path, columns=columns)


def write_task(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a task's table as parquet: texts and labels as strings, noisy bool, index int64."""
    kinds = {"noisy": pa.bool_(), "index": pa.int64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in frame])
    write_parquet(pa.Table.from_pandas(frame, schema=schema, preserve_index=False), path)
