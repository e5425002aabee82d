"""What a run cost: Snakemake's benchmark files gathered by stage."""

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from memloc.store.tables import write_tsv

COLUMNS = ["stage", "jobs", "seconds", "longest_seconds", "cpu_seconds", "peak_mb"]


def starred(path: str | Path, folder: str | Path, names: Iterable[str]) -> str:
    """A benchmark file's stage: its path with tasks, models and seeds replaced by a star."""
    longest_first = sorted(names, key=len, reverse=True)
    named = "|".join([*map(re.escape, longest_first), r"seed\d+"])
    parts = Path(path).relative_to(folder).with_suffix("").parts
    # a whole part of the path, or what follows an underscore in a figure's name
    return "/".join(re.sub(rf"(^|_)({named})(@\d+)?(?=_|$)", r"\1*", part) for part in parts)


def cost(folder: str | Path, names: Iterable[str]) -> pd.DataFrame:
    """Seconds, CPU seconds and peak memory per stage of all benchmark files below `folder`."""
    names = list(names)
    rows = []
    for path in sorted(Path(folder).rglob("*.tsv")):
        jobs = pd.read_csv(path, sep="\t", na_values=["-", "NA"])
        if "s" not in jobs:
            continue
        stage = starred(path, folder, names)
        rows += [(stage, r["s"], r.get("cpu_time"), r.get("max_rss")) for _, r in jobs.iterrows()]
    frame = pd.DataFrame(rows, columns=["stage", "s", "cpu", "rss"])
    groups = frame.groupby("stage", sort=True)
    table = pd.DataFrame(
        {
            "jobs": groups.size(),
            "seconds": groups["s"].sum(),
            "longest_seconds": groups["s"].max(),
            "cpu_seconds": groups["cpu"].sum(min_count=1),
            "peak_mb": groups["rss"].max(),
        }
    )
    return table.reset_index().sort_values("seconds", ascending=False)[COLUMNS]


def write_cost(folder: str | Path, names: Iterable[str], output: str | Path) -> None:
    """Write summary/cost.tsv; without benchmark files it has no rows."""
    write_tsv(cost(folder, names), output, COLUMNS)
