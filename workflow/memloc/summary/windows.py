"""Every window of layers, mean over seeds, and the smallest one that undoes most of the noise.

The smallest window is what a first look asks for: of the windows that spare the clean examples
(clean error of at most LITTLE), the one of fewest layers whose change makes at least the share MOST
of the noisy examples lose their perturbed label; of equals the one that undoes more, then the
first. It is chosen on the examples that its errors are of: on others it would do a little less.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.store.tables import COLUMNS as TABLES
from memloc.store.tables import read_tsv, write_tsv

COLUMNS = [
    "task", "model", "technique", "start", "end", "noisy_error", "sd", "error", "clean_error",
    "n_noisy", "n_clean", "n_seeds", "smallest",
]  # fmt: skip
KEYS = ["task", "model", "technique"]
Run = Mapping[str, Any]  # task, model, seed and technique of a window table
MOST, LITTLE = 0.9, 0.01  # noisy error that a window must reach, clean error that it may cost
DIGITS = 9  # of errors that are compared; what lies beyond is rounding


def mean_windows(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """A row per window from the seeds' window tables; error is the normalised noisy error.

    Normalised errors are means over the seeds whose normalisation is defined; n_noisy and n_clean
    are of one seed, the least.
    """
    seeds = pd.concat(tables).groupby(["start", "end"], sort=True)
    mean, least = seeds.mean(), seeds[["n_noisy", "n_clean"]].min().astype(int)
    frame = mean[["noisy_error", "clean_error"]].assign(
        sd=seeds["noisy_error"].std(), error=mean["noisy_error_normalised"], n_seeds=len(tables)
    )
    return frame.join(least).reset_index()


def smallest(windows: pd.DataFrame) -> int | None:
    """Index of the smallest window that undoes MOST at a clean error of LITTLE; None: none does."""
    noisy, clean = windows["noisy_error"].round(DIGITS), windows["clean_error"].round(DIGITS)
    will_do = windows[(noisy >= MOST) & (clean <= LITTLE)]
    if will_do.empty:
        return None
    order = will_do.assign(size=will_do["end"] - will_do["start"], undone=-will_do["noisy_error"])
    return int(order.sort_values(["size", "undone", "start"]).index[0])


def window_table(tables: Iterable[tuple[Run, pd.DataFrame]]) -> pd.DataFrame:
    """Frame of COLUMNS: the windows of all tasks, models and techniques."""
    groups: dict[tuple, list[pd.DataFrame]] = {}
    for run, table in tables:
        groups.setdefault(tuple(run[key] for key in KEYS), []).append(table)
    parts = []
    for key, seeds in groups.items():
        frame = mean_windows(seeds)
        chosen = smallest(frame)
        marks = ["yes" if i == chosen else "no" for i in frame.index]
        parts.append(frame.assign(**dict(zip(KEYS, key, strict=True)), smallest=marks))
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def write_windows(paths: Sequence[str | Path], runs: Sequence[Run], output: str | Path) -> None:
    """Write summary/windows.tsv from the runs' window tables."""
    tables = [read_tsv(path, TABLES["windows"]) for path in paths]
    write_tsv(window_table(zip(runs, tables, strict=True)), output, COLUMNS)
