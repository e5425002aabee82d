"""Whether two finished studies say the same: tables bit for bit, seconds aside."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

# Tables of how long jobs took, or were expected to: no two runs have the same.
OF_TIME = ("budget.tsv", "budget_actual.tsv", "cost.tsv")
PATTERNS = ("*.tsv", "*.parquet", "*.sha256")


def differences(one: Path, other: Path) -> Iterator[str]:
    """What differs between two results folders: missing files, cells, checkpoints' digests."""
    ours, theirs = results(one), results(other)
    yield from (f"{name}: only in {one}" for name in sorted(ours - theirs))
    yield from (f"{name}: only in {other}" for name in sorted(theirs - ours))
    for name in sorted(ours & theirs):
        if content(one / name) != content(other / name):
            yield f"{name}: contents differ"


def results(folder: Path) -> set[str]:
    """Tables and digests below a results folder, hidden ones left out."""
    found = (path.relative_to(folder) for kind in PATTERNS for path in folder.rglob(kind))
    return {
        str(path)
        for path in found
        if path.name not in OF_TIME and not any(part.startswith(".") for part in path.parts)
    }


def content(path: Path) -> list:
    """What is compared: a table's cells as they are written, columns of seconds left out."""
    if path.suffix == ".parquet":
        frame = pd.read_parquet(path)
        return [frame.dtypes.astype(str).to_dict(), frame.to_dict("list")]
    if path.suffix != ".tsv":
        return [path.read_bytes()]
    with open(path, newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    kept = [i for i, name in enumerate(rows[0]) if name != "seconds"]
    return [[row[i] for i in kept] for row in rows]
