"""How tables of texts and labels are stored."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from memloc.files import atomic


def write_table(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a task's table as parquet: text as strings, noisy as bool, index as int64."""
    kinds = {"noisy": pa.bool_(), "index": pa.int64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in frame])
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    with atomic(path) as draft:
        pq.write_table(table, draft, compression="zstd")
