"""The tables of retraining jobs gathered into one of all windows; needs no torch."""

import logging
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import pandas as pd

from memloc.errors import MemlocError
from memloc.localise.weights import normalise
from memloc.store.tables import COLUMNS, read_parquet, read_tsv, write_parquet, write_tsv

logger = logging.getLogger(__name__)


def gather_retrained(
    tables: Sequence[str | Path],
    examples: Sequence[str | Path],
    table: str | Path,
    example_table: str | Path,
) -> None:
    """One table of all windows, normalised by the window of all layers, from those of the jobs.

    Raises MemlocError when windows are missing or there twice, or jobs saw different examples.
    """
    frame = pd.concat([read_tsv(path, COLUMNS["windows"]) for path in tables], ignore_index=True)
    frame = frame.sort_values(["start", "end"], ignore_index=True)
    frame["noisy_error_normalised"] = normalise(frame)
    if frame["noisy_error_normalised"].isna().all():
        logger.warning("%s: the window of all layers has no error: not normalised", table)
    parts = [read_parquet(path) for path in examples]
    for path, part in zip(examples, parts, strict=True):
        if not part["index"].equals(parts[0]["index"]):
            raise MemlocError(
                f"{path} and {examples[0]} have other noisy examples; run the retraining anew"
            )
    names = [f"{row.start}-{row.end}" for row in frame.itertuples()]
    whole = reduce(lambda left, right: left.merge(right, on="index"), parts)
    write_parquet(whole[["index", *names]], example_table)
    write_tsv(frame, table, COLUMNS["windows"])
