"""How much of the error of layer swapping comes from mixing two networks, noise or not."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.store.tables import COLUMNS as TABLES
from memloc.store.tables import read_tsv, write_tsv

COLUMNS = [
    "task", "model", "windows", "noisy_error", "clean_error", "noise_minus_clean",
    "mixing_error", "sd_mixing", "mixing_clean", "noise_minus_mixing", "n_seeds",
]  # fmt: skip
ONE, EVERY, ALL = "one layer", "all windows", "all layers"


def kinds_of(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of a window table by kind: of one layer, of any number, of all layers."""
    length = table["end"] - table["start"]
    return {ONE: table[length == 0], EVERY: table, ALL: table[length == length.max()]}


def mean_errors(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """kind, then each seed's mean noisy_error and clean_error over the windows of that kind."""
    return pd.DataFrame(
        [
            {"windows": kind, "noisy_error": rows["noisy_error"].mean(),
             "clean_error": rows["clean_error"].mean()}
            for table in tables
            for kind, rows in kinds_of(table).items()
        ]
    )  # fmt: skip


def compared(swapped: Sequence[pd.DataFrame], mixed: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """A row per kind of window, of the seeds' tables of swapping with noise and without.

    noisy_error and clean_error: of layer swapping; mixing_error and mixing_clean: the errors of
    the same examples when windows of theta_O come from another seed's. All are means over seeds.
    """
    noise = mean_errors(swapped).groupby("windows", sort=False).mean()
    mixing = mean_errors(mixed).groupby("windows", sort=False)
    found = noise.assign(
        noise_minus_clean=noise["noisy_error"] - noise["clean_error"],
        mixing_error=mixing["noisy_error"].mean(),
        sd_mixing=mixing["noisy_error"].std(),
        mixing_clean=mixing["clean_error"].mean(),
        n_seeds=len(mixed),
    )
    found["noise_minus_mixing"] = found["noisy_error"] - found["mixing_error"]
    return found.reset_index()


def write_no_noise(
    swapped: Sequence[str | Path],
    mixed: Sequence[str | Path],
    runs: Sequence[Mapping[str, Any]],
    output: str | Path,
) -> None:
    """Write summary/no_noise.tsv; both lists have a window table per run (task, model, seed)."""
    groups: dict[tuple, tuple[list, list]] = {}
    for run, *paths in zip(runs, swapped, mixed, strict=True):
        group = groups.setdefault((run["task"], run["model"]), ([], []))
        for tables, path in zip(group, paths, strict=True):
            tables.append(read_tsv(path, TABLES["windows"]))
    frames = [
        compared(*tables).assign(task=task, model=model) for (task, model), tables in groups.items()
    ]
    write_tsv(pd.concat(frames), output, COLUMNS)
