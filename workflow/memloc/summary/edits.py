"""What removing noise costs: windows as edits of a model, noise undone against accuracy lost.

A window that is swapped or retrained is an edit of theta_M2: noisy examples lose their perturbed
label (noise undone, the noisy error), and validation examples may lose their right one (accuracy
lost, the window's validation error minus theta_M2's own). Both are means over seeds. The front
holds the windows that no other one beats: none undoes as much noise for less accuracy, or more for
as much. The best edit is the window of the front that undoes most noise at no more than
ACCURACY_LOST.

Windows are compared, and the best one is chosen, on the same validation examples: with few of them
the accuracy that it really costs is more likely above the number given here than below it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from memloc.store.tables import write_tsv
from memloc.summary.seeds import KEYS, Ends, Run, Tables, by_setting

COLUMNS = [
    "task", "model", "technique", "start", "end", "noise_undone", "sd_noise", "to_original",
    "accuracy_lost", "sd_lost", "best", "n_validation", "n_seeds",
]  # fmt: skip
ACCURACY_LOST = 0.01  # more than this isn't worth the noise that an edit removes
DIGITS = 9  # of shares that are compared; what lies beyond is rounding


def mean_edits(tables: Sequence[pd.DataFrame], own: Sequence[float]) -> pd.DataFrame:
    """A row per window: means and deviations over the seeds' window tables.

    own: theta_M2's validation error, by seed. A window with an undefined mean is left out.
    """
    lost = [t["validation_error"] - error for t, error in zip(tables, own, strict=True)]
    edits = [t.assign(accuracy_lost=loss) for t, loss in zip(tables, lost, strict=True)]
    seeds = pd.concat(edits).groupby(["start", "end"])
    mean, sd = seeds.mean(), seeds.std()
    frame = mean[["to_original", "accuracy_lost", "n_validation"]].assign(
        noise_undone=mean["noisy_error"],
        sd_noise=sd["noisy_error"],
        sd_lost=sd["accuracy_lost"],
        n_validation=mean["n_validation"].astype(int),
        n_seeds=len(tables),
    )
    return frame.dropna(subset=["noise_undone", "accuracy_lost"]).reset_index()


def front(edits: pd.DataFrame) -> pd.DataFrame:
    """The windows that no other one beats, by accuracy lost; of equals the smallest, then first."""
    undone, size = edits["noise_undone"].round(DIGITS), edits["end"] - edits["start"]
    compared = edits.assign(lost=edits["accuracy_lost"].round(DIGITS), undone=-undone, size=size)
    ordered = compared.sort_values(["lost", "undone", "size", "start"])
    least = ordered["undone"].cummin().shift(fill_value=1.0)
    return edits.loc[ordered.index[ordered["undone"] < least]]


def with_best(found: pd.DataFrame) -> pd.DataFrame:
    """The front with best (yes or no): the most noise undone at no more than ACCURACY_LOST."""
    allowed = found["accuracy_lost"].round(DIGITS) <= ACCURACY_LOST
    best = found.index == (found[allowed].index[-1] if allowed.any() else None)
    return found.assign(best=["yes" if is_best else "no" for is_best in best])


def edit_table(
    tables: Iterable[tuple[Run, pd.DataFrame]], own: Mapping[tuple, float]
) -> pd.DataFrame:
    """Fronts of all tasks, models and techniques; own: theta_M2's error by task, model, seed."""
    fronts = [
        with_best(front(mean_edits(*seeds))).assign(**dict(zip(KEYS, key, strict=True)))
        for key, seeds in by_setting(tables, own).items()
    ]
    return pd.concat(fronts, ignore_index=True)[COLUMNS]


def write_edits(tables: Tables, ends: Ends, output: str | Path) -> None:
    """Write summary/edits.tsv from the runs' window tables and the ends of their histories."""
    own = {run: 1 - float(end["validation_accuracy"]) for run, end in ends.items()}
    write_tsv(edit_table(tables, own), output, COLUMNS)
