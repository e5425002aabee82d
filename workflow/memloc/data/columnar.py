"""Tables that `datasets` reads: parquet and arrow files, and folders written by save_to_disk."""

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from memloc.data.limits import MOST_BYTES, refuse_many
from memloc.errors import MemlocError, listed
from memloc.store.files import readable, reading, refuse_unreadable

REMEDY = (
    "It is no whole file of its kind, or holds a column that `datasets` does not know: fetch it "
    "again, or write it again without that column."
)
SAVED = (
    "It is no whole folder of save_to_disk, or one of its splits holds no rows: write it again "
    "with datasets' save_to_disk, or name its files under source.files."
)
BATCH = 1024  # rows that are unpacked at once to see how large they are


def read_columnar(content: bytes, kind: str, shown: str) -> list[tuple[str, dict[str, Any]]]:
    """Rows of a parquet or arrow file as ("row N", values by column).

    Values are as the file holds them: classes stay numbers.
    """
    import datasets  # takes seconds, which files of text can save

    with tempfile.TemporaryDirectory(prefix="memloc-") as folder, reading(shown, REMEDY):
        file = Path(folder, f"rows.{kind}")
        file.write_bytes(content)
        _refuse_twice(_column_names(file, kind), shown)
        if kind == "parquet" and not _rows_in(file, shown):
            return []  # at which datasets stumbles
        loaded = datasets.load_dataset(kind, data_files=str(file), split="train", cache_dir=folder)
        return rows_of(loaded)


def _rows_in(file: Path, shown: str) -> int:
    """Rows of a parquet file; MemlocError where they unpack to more than MOST_BYTES."""
    with pq.ParquetFile(file) as parts:
        refuse_many(parts.metadata.num_rows, shown)
        unpacked = 0
        for batch in parts.iter_batches(BATCH):
            unpacked += batch.nbytes
            if unpacked > MOST_BYTES:
                raise MemlocError(
                    f"{shown}: its rows unpack to more than {readable(MOST_BYTES)}, and are held "
                    "in memory. Split it into several files (source.files takes a list), or keep "
                    "fewer columns or rows."
                )
        return int(parts.metadata.num_rows)


def rows_of(dataset: Any, named: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """Rows of a loaded data set, undecoded: texts, numbers, lists.

    With `named`, the numbers of classes become their names; -1, the hub's "no label", becomes None.
    """
    rows = dataset.with_format("arrow")[:].to_pylist()
    if named:
        for column, names in _classes(dataset.features).items():
            for row in rows:
                row[column] = _named(row[column], names)
    return [(f"row {number}", row) for number, row in enumerate(rows, 1)]


def _classes(features: Any) -> dict[str, list[str]]:
    """Names of classes by column, for columns of classes and of lists of them."""
    found = {}
    for column, feature in features.items():
        names = getattr(getattr(feature, "feature", feature), "names", None)
        if isinstance(names, list):
            found[column] = names
    return found


def _named(value: Any, names: list[str]) -> Any:
    if isinstance(value, list):
        return [_named(part, names) for part in value]
    return None if value is None or value < 0 else names[value]


def read_saved(folder: str, splits: list[str]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Rows of each of `splits` of a folder written by `save_to_disk`, classes by name.

    A folder that holds one table without splits has the split train. Raises MemlocError.
    """
    import datasets

    index = Path(folder, "dataset_dict.json")
    with reading(folder, SAVED):
        for file in Path(folder).rglob("*"):
            refuse_unreadable(file)
        if index.is_file():  # splits that aren't asked for may be empty, at which datasets stumbles
            refuse_lacking(splits, json.loads(index.read_text(encoding="utf-8"))["splits"], folder)
            parts = {name: datasets.load_from_disk(f"{folder}/{name}") for name in splits}
        else:
            parts = {"train": datasets.load_from_disk(folder)}
            refuse_lacking(splits, parts, folder)
        for name in splits:
            _refuse_twice(parts[name].column_names, f"{folder}: {name}")
        return {name: rows_of(parts[name], named=True) for name in splits}


def refuse_lacking(wanted: list[str], there: Iterable[str], shown: str) -> None:
    """Raise MemlocError if a source lacks one of the splits `wanted`."""
    for name in wanted:
        if name not in there:
            raise MemlocError(
                f"{shown}: has no split {name!r}; it has {listed(there)}. Correct `split` in the "
                "task file."
            )


def _column_names(file: Path, kind: str) -> list[str]:
    if kind == "parquet":
        return list(pq.read_schema(file).names)
    with pa.memory_map(str(file)) as source:
        try:
            return list(pa.ipc.open_file(source).schema.names)
        except pa.ArrowInvalid:  # the other of Arrow's two forms
            source.seek(0)
            return list(pa.ipc.open_stream(source).schema.names)


def _refuse_twice(names: list[str], shown: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise MemlocError(f"{shown}: has the columns {listed(twice)} twice. Rename or drop one.")
