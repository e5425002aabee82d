"""M-CoG of a task, model and technique: how sure it is, how far it can move, which way it leans."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from memloc.localise import centre
from memloc.localise.found import UNDEFINED, nothing_found
from memloc.localise.weights import mean_mcog, whole_window
from memloc.study.techniques import Technique, papers
from memloc.summary.runs import Seeds, tables_of

COLUMNS = [
    "task", "model", "technique", "mcog", "sd", "n_seeds", "n_zero", "ci_low", "ci_high",
    "resampled", "n_examples", "leans", "attainable_low", "attainable_high", "rescaled",
    "found", "reason",
]  # fmt: skip
MIXED = "mixed"


def centre_row(
    technique: Technique, seeds: Seeds, weights: Mapping[int, pd.DataFrame], n_tasks: int, what: str
) -> dict[str, Any]:
    """M-CoG of a task, model and technique with what says how far to trust it: columns of mcog."""
    row: dict[str, Any] = dict(mean_mcog(weights, what))
    n_layers = len(next(iter(weights.values())))
    low, high = centre.attainable(n_layers) if technique.windows else (1.0, float(n_layers))
    error, n_examples = _of_examples(technique, seeds, weights)
    spread = centre.spread_of(error, n_examples, row["sd"], row["n_seeds"] - row["n_zero"])
    went = {seed: run.outcome for seed, run in seeds.items()}
    undefined = math.isnan(row["mcog"])
    reason = UNDEFINED if undefined else nothing_found(technique, tables_of(seeds), went)
    return row | {
        "ci_low": row["mcog"] - spread.margin(), "ci_high": row["mcog"] + spread.margin(),
        "resampled": spread.basis, "n_examples": n_examples,
        "leans": "" if reason else centre.leaning(row["mcog"], n_layers, spread, n_tasks),
        "attainable_low": low, "attainable_high": high,
        "rescaled": centre.rescaled(row["mcog"], low, high, n_layers),
        "found": "no" if reason else "yes", "reason": reason,
    }  # fmt: skip


def _of_examples(
    technique: Technique, seeds: Seeds, weights: Mapping[int, pd.DataFrame]
) -> tuple[float, int]:
    """Standard error over noisy examples and their number; (nan, 0) without tables per example."""
    defined = [s for s in seeds if not weights[s]["weight"].isna().any()]
    tables = {s: found for s in defined if (found := seeds[s].examples) is not None}
    if not technique.windows or not tables or len(tables) < len(defined):
        return math.nan, 0
    wholes = {s: whole_window(seeds[s].frame)["noisy_error"] for s in tables}
    return centre.example_error(tables, wholes), len(next(iter(tables.values())))


def judged(mcog: pd.DataFrame) -> pd.DataFrame:
    """Rows of mcog.tsv that an answer rests on: the paper's techniques, where they found something.

    All techniques count where none of the paper's was run.
    """
    paper = mcog["technique"].isin(papers(mcog["technique"]))
    return mcog[paper & mcog["found"].eq("yes") & mcog["mcog"].notna()]


def leanings(mcog: pd.DataFrame) -> pd.Series:
    """Which side of the middle each task leans to: lower, upper, open or mixed, by task.

    Of the rows that count (`judged`) and have an interval, more than half must lie on that side for
    sure and none on the other; "mixed" says that rows for sure lie on both, "open" all else.
    """
    frame = judged(mcog)
    return frame.groupby("task", sort=False).apply(_leaning)


def _leaning(rows: pd.DataFrame) -> str:
    told = rows.loc[rows["resampled"] != "none", "leans"]
    counts = {side: int((told == side).sum()) for side in (centre.LOWER, centre.UPPER)}
    if all(counts.values()):
        return MIXED
    sure = [side for side, count in counts.items() if count > len(told) / 2]
    return sure[0] if sure else centre.OPEN
