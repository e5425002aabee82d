"""Agreement between techniques and between models on M-CoG and on layer weights (Figures 8, 9)."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pandas as pd

from memloc.seeds import derive
from memloc.study.published import RETRAINING_MODELS
from memloc.study.techniques import papers
from memloc.summary.spearman import average, correlate

VALUES = {"mcog": "mcog", "layer_weights": "weight"}  # the column that a measure compares


def min_max(values: pd.Series) -> pd.Series:
    """A Series scaled to 0..1; a constant one becomes 0."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else values * 0.0


def compare_pairs(
    frame: pd.DataFrame, measure: str, by: str, over: str, seed: int, level: str
) -> list[dict]:
    """Rows for every pair of the entries of column `by`: over tasks, within each entry of `over`.

    Layer weights are compared over the layers of each task instead.
    """
    rows, of_layers = [], measure == "layer_weights"
    keys = ["task", over, *(["layer"] if of_layers else [])]
    entries = list(dict.fromkeys(frame[by]))
    for a, b in combinations(entries, 2):
        left, right = (
            frame.loc[frame[by] == name, [*keys, VALUES[measure]]].set_axis([*keys, new], axis=1)
            for name, new in ((a, "x"), (b, "y"))
        )
        pairs = left.merge(right, on=keys).rename(columns={over: "stratum"})
        of = measure, level, a, b
        found = average(pairs) if of_layers else correlate(pairs, derive(seed, *of))
        where = dict(zip(("measure", "level", "a", "b"), of, strict=True))
        rows.append(where | {"family": f"{measure}:{level}"} | found)
    return rows


def mean_of_pairs(rows: Iterable[dict], level: str) -> list[dict]:
    """The mean of pairwise rhos as a row of its own: the paper gives it for retraining (4.1)."""
    told = [row for row in rows if not np.isnan(row["rho"])]
    if not told:
        return []
    row = {"measure": "mcog", "level": level, "a": "mean", "b": "all pairs", "family": ""}
    paper = {"paper_rho": RETRAINING_MODELS} if level == "model:retraining" else {}
    numbers = {
        "rho": float(np.mean([row["rho"] for row in told])),
        "n": min(row["n"] for row in told),
        "n_pairs": len(told),
        "note": f"mean of {len(told)} pairwise rho, no test",
    }
    return [row | paper | numbers]


def agreement(weights: pd.DataFrame, mcog: pd.DataFrame, seed: int) -> list[dict]:
    """Rows between techniques and between models.

    Level "technique" compares techniques over tasks, within each model. Level "model" compares
    models over tasks, within each of the paper's techniques (all, where none of these was run);
    its rho_pooled pools these techniques as the paper does, with weights scaled to 0..1. Level
    "model:NAME" compares models on M-CoG within the technique NAME; the paper's 0.85 is the mean
    of these for retraining. Layer weights of models with different numbers of layers aren't
    compared.
    """
    rows = compare_pairs(mcog, "mcog", "technique", "model", seed, "technique")
    theirs = mcog[mcog["technique"].isin(papers(mcog["technique"]))]
    rows += compare_pairs(theirs, "mcog", "model", "technique", seed, "model")
    rows += compare_pairs(weights, "layer_weights", "technique", "model", seed, "technique")
    scaled = weights[weights["technique"].isin(set(theirs["technique"]))]
    scaled = scaled.assign(weight=scaled.groupby("technique")["weight"].transform(min_max))
    depth = weights.groupby("model")["layer"].max()
    for layers in sorted(depth.unique()):
        part = scaled[scaled["model"].map(depth) == layers]
        rows += compare_pairs(part, "layer_weights", "model", "technique", seed, "model")
    for name in dict.fromkeys(mcog["technique"]):
        level, part = f"model:{name}", mcog[mcog["technique"] == name]
        found = compare_pairs(part, "mcog", "model", "technique", seed, level)
        rows += found + mean_of_pairs(found, level)
    return rows
