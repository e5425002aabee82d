"""Tables that `datasets` reads: parquet and arrow files, and folders written by save_to_disk."""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from memloc.data.faults import listed
from memloc.errors import MemlocError, shortly


def read_columnar(content: bytes, kind: str, shown: str) -> list[tuple[str, dict[str, Any]]]:
    """Rows of a parquet or arrow file as ("row N", values by column).

    Values are as the file holds them: classes stay numbers.
    """
    import datasets  # takes seconds, which files of text can save

    with tempfile.TemporaryDirectory(prefix="memloc-") as folder:
        file = Path(folder, f"rows.{kind}")
        file.write_bytes(content)
        try:
            _refuse_twice(_column_names(file, kind), shown)
            loaded = datasets.load_dataset(
                kind, data_files=str(file), split="train", cache_dir=folder
            )
        except (pa.ArrowException, OSError, datasets.exceptions.DatasetGenerationError) as error:
            cause = str(error.__cause__ or error).splitlines()[0]
            raise MemlocError(
                f"{shown}: not a whole {kind} file: {shortly(cause, 160)}. Fetch or write it again."
            ) from error
        return rows_of(loaded)


def rows_of(dataset: Any) -> list[tuple[str, dict[str, Any]]]:
    """Rows of a loaded data set, undecoded: texts, numbers, lists."""
    table = dataset.with_format("arrow")[:]
    return [(f"row {number}", row) for number, row in enumerate(table.to_pylist(), 1)]


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
