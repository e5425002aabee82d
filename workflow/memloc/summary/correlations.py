"""summary/correlations.tsv: every rank correlation of the study, with the paper's beside it.

Those between techniques and between models (Figures 8 and 9) are made here, those of depth with
generalisation and others in `memloc.summary.depth`. Each pairs the values that a and b give for the
same task, the same model (or technique) and, of layer weights, the same layer. Holm's adjustment is
made within a family of tests, which is what one table or panel shows together: column `family`.
"""

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from memloc.seeds import derive
from memloc.store.tables import read_tsv, write_tsv
from memloc.study.published import RETRAINING_MODELS
from memloc.summary.depth import depth_rows, main_tasks
from memloc.summary.spearman import correlate, holm

COLUMNS = [
    "family", "measure", "level", "a", "b", "rho", "p", "p_holm", "ci_low", "ci_high", "n",
    "mean_difference", "mean_absolute_difference", "paper_rho", "paper_mean_difference",
    "paper_mean_absolute_difference", "note",
]  # fmt: skip


def min_max(values: pd.Series) -> pd.Series:
    """A Series scaled to 0..1; a constant one becomes 0."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else values * 0.0


def compare_pairs(
    frame: pd.DataFrame,
    value: str,
    by: str,
    keys: list[str],
    seed: int,
    measure: str,
    level: str,
) -> list[dict]:
    """Rows for every pair of the entries of column `by`, joined on `keys` (task among them)."""
    rows = []
    entries = list(dict.fromkeys(frame[by]))
    for a, b in combinations(entries, 2):
        left, right = (
            frame.loc[frame[by] == name, [*keys, value]].rename(columns={value: new})
            for name, new in ((a, "x"), (b, "y"))
        )
        found = correlate(left.merge(right, on=keys), derive(seed, measure, level, a, b))
        rows.append(
            {"family": f"{measure}:{level}", "measure": measure, "level": level, "a": a, "b": b}
            | found
        )
    return rows


def mean_of_pairs(rows: Iterable[dict], level: str) -> list[dict]:
    """The mean of pairwise rhos as a row of its own: the paper gives it for retraining (4.1)."""
    values = [row["rho"] for row in rows if not np.isnan(row["rho"])]
    if not values:
        return []
    row = {"measure": "mcog", "level": level, "a": "mean", "b": "all pairs", "n": len(values)}
    paper = {"paper_rho": RETRAINING_MODELS} if level == "model:retraining" else {}
    note = f"mean of {len(values)} pairwise rho, no test"
    return [row | paper | {"family": "", "rho": float(np.mean(values)), "note": note}]


def agreement(weights: pd.DataFrame, mcog: pd.DataFrame, seed: int) -> list[dict]:
    """Rows between techniques and between models.

    Level "technique" compares techniques over tasks and models. Level "model" compares models over
    tasks and techniques, with each technique's weights scaled to 0..1, since units differ between
    techniques. Level "model:NAME" compares models on M-CoG within the technique NAME; the paper's
    0.85 is the mean of these for retraining. Layer weights of models with different numbers of
    layers aren't compared.
    """
    rows = []
    scaled = weights.assign(scaled=weights.groupby("technique")["weight"].transform(min_max))
    rows += compare_pairs(mcog, "mcog", "technique", ["task", "model"], seed, "mcog", "technique")
    rows += compare_pairs(mcog, "mcog", "model", ["task", "technique"], seed, "mcog", "model")
    keys = ["task", "model", "layer"]
    rows += compare_pairs(weights, "weight", "technique", keys, seed, "layer_weights", "technique")
    keys = ["task", "technique", "layer"]
    depth = weights.groupby("model")["layer"].max()
    same_depth = [scaled[scaled["model"].map(depth) == d] for d in sorted(depth.unique())]
    for part in same_depth:
        rows += compare_pairs(part, "scaled", "model", keys, seed, "layer_weights", "model")
    for name in dict.fromkeys(mcog["technique"]):
        level = f"model:{name}"
        part = mcog[mcog["technique"] == name]
        found = compare_pairs(part, "mcog", "model", ["task"], seed, "mcog", level)
        rows += found + mean_of_pairs(found, level)
    return rows


def correlations(
    weights: pd.DataFrame,
    mcog: pd.DataFrame,
    seed: int,
    events: pd.DataFrame | None = None,
    generalisation: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The correlations table of the summary's frames; events and generalisation may be missing.

    Binarised variants of tasks enter nothing but their comparison with the tasks they come from.
    """
    tasks = main_tasks(mcog["task"])
    main = {"weights": weights, "mcog": mcog}
    main = {name: frame[frame["task"].isin(tasks)] for name, frame in main.items()}
    rows = agreement(**main, seed=seed)
    rows += depth_rows(weights, mcog, events, generalisation, seed)
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    for family, part in table.groupby("family"):
        if family:
            table.loc[part.index, "p_holm"] = holm(part["p"])
    numbers = [name for name in COLUMNS if "difference" in name or "rho" in name or name[0] == "p"]
    return table.astype(dict.fromkeys(numbers, float))


def write_correlations(
    layer_weights: str | Path,
    mcog: str | Path,
    output: str | Path,
    seed: int,
    events: str | Path | None = None,
    generalisation: str | Path | None = None,
) -> None:
    """Write summary/correlations.tsv from the summary's tables; the last two may be missing."""
    others = [read_tsv(path) if path else None for path in (events, generalisation)]
    table = correlations(read_tsv(layer_weights), read_tsv(mcog), seed, *others)
    write_tsv(table, output, COLUMNS)
