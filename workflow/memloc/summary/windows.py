"""Every window of layers, mean over seeds, and the smallest one that undoes most of the noise.

A noisy error counts examples that theta_M2 never learnt, too. What a window undoes is the share of
the memorised examples alone: the noisy error beyond theta_M2's own, over what theta_M2 memorised.

The smallest window is what a first look asks for: of the windows that spare the clean examples
(clean error of at most LITTLE), the one of fewest layers that undoes at least the share MOST; of
equals the one that undoes more, then the first. It is chosen on the examples that its errors are
of: on others it would do a little less.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from memloc.store.tables import write_tsv
from memloc.summary.seeds import KEYS, Ends, Run, Tables, by_setting

COLUMNS = [
    "task", "model", "technique", "start", "end", "undone", "noisy_error", "sd", "error",
    "clean_error", "memorised", "n_noisy", "n_clean", "n_seeds", "smallest",
]  # fmt: skip
MOST, LITTLE = 0.9, 0.01  # noisy error that a window must reach, clean error that it may cost
DIGITS = 9  # of errors that are compared; what lies beyond is rounding


def undone(noisy_error: pd.Series, memorised: float) -> pd.Series:
    """The share of the memorised noisy examples that lose their label; nan where none is one.

    It is a net share: an example that gets its perturbed label only by the change counts against.
    """
    if memorised <= 0:
        return noisy_error * np.nan
    return (1 - (1 - noisy_error) / memorised).clip(0, 1)


def mean_windows(tables: Sequence[pd.DataFrame], memorised: Sequence[float]) -> pd.DataFrame:
    """A row per window from the seeds' window tables; error is the normalised noisy error.

    memorised: by seed, the share of noisy examples whose perturbed label theta_M2 predicts. Shares
    are means over the seeds in which they are defined; n_noisy and n_clean are of one seed, the
    least.
    """
    tables = [
        table.assign(undone=undone(table["noisy_error"], share))
        for table, share in zip(tables, memorised, strict=True)
    ]
    seeds = pd.concat(tables).groupby(["start", "end"], sort=True)
    mean, least = seeds.mean(), seeds[["n_noisy", "n_clean"]].min().astype(int)
    frame = mean[["undone", "noisy_error", "clean_error"]].assign(
        memorised=float(np.mean(memorised)),
        sd=seeds["noisy_error"].std(),
        error=mean["noisy_error_normalised"],
        n_seeds=len(tables),
    )
    return frame.join(least).reset_index()


def smallest(windows: pd.DataFrame) -> int | None:
    """Index of the smallest window that undoes MOST at a clean error of LITTLE; None: none does."""
    done, clean = windows["undone"].round(DIGITS), windows["clean_error"].round(DIGITS)
    will_do = windows[(done >= MOST) & (clean <= LITTLE)]
    if will_do.empty:
        return None
    order = will_do.assign(size=will_do["end"] - will_do["start"], least=-will_do["undone"])
    return int(order.sort_values(["size", "least", "start"]).index[0])


def window_table(
    tables: Iterable[tuple[Run, pd.DataFrame]], memorised: Mapping[tuple, float]
) -> pd.DataFrame:
    """Frame of COLUMNS: the windows of all tasks, models and techniques.

    memorised: the share of noisy examples that theta_M2 memorised, by task, model and seed.
    """
    parts = []
    for key, seeds in by_setting(tables, memorised).items():
        frame = mean_windows(*seeds)
        chosen = smallest(frame)
        marks = ["yes" if i == chosen else "no" for i in frame.index]
        parts.append(frame.assign(**dict(zip(KEYS, key, strict=True)), smallest=marks))
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def write_windows(tables: Tables, ends: Ends, output: str | Path) -> None:
    """Write summary/windows.tsv from the runs' window tables and the ends of their histories."""
    memorised = {run: float(end["noisy_accuracy"]) for run, end in ends.items()}
    write_tsv(window_table(tables, memorised), output, COLUMNS)
