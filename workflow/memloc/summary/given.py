"""The checkpoints that a study was given, and what their exam found: summary/given.tsv."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.store.records import read_checked
from memloc.store.tables import write_tsv

COLUMNS = [
    "task", "model", "seed", "checkpoint", "source", "noisy_rows", "noisy_as_labelled",
    "clean_accuracy", "validation_accuracy", "layers_changed", "remarks",
]  # fmt: skip


def row_of(checkpoint: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint's row; layers_changed: those that differ from theta_P's."""
    source, changes = record["source"], record["relative_change"]
    moved = [str(layer) for layer, change in enumerate(changes, start=1) if change > 0]
    return {
        **{name: checkpoint[name] for name in ("task", "model", "seed")},
        "checkpoint": checkpoint["theta"],
        "source": source.get("folder") or f"{source['hub']} at {source['revision']}",
        **{name: record[name] for name in COLUMNS[5:9]},
        "layers_changed": "all" if len(moved) == len(changes) else ", ".join(moved) or "none",
        "remarks": "; ".join(record["notes"]) or "none",
    }


def write_given(checkpoints: Iterable[Mapping[str, Any]], output: str | Path) -> None:
    """Write the table from the records of `checkpoints`, which name run, theta and record."""
    rows = [row_of(found, read_checked(found["record"])) for found in checkpoints]
    write_tsv(pd.DataFrame(rows, columns=COLUMNS), output, COLUMNS)
