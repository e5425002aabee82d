"""Depth in a larger model (Appendix B) and in binarised tasks (Appendix C), as correlations.

Frames are the `depths` of `memloc.summary.depth`, indexed by task and model.
"""

import numpy as np
import pandas as pd

from memloc.study import published
from memloc.summary.depth import BINARY, CENTROID_EVENTS, depth_row

OTHERS = "mean of others"


def larger_models(
    frame: pd.DataFrame, layers: pd.Series, peers: list[str], seed: int
) -> list[dict]:
    """Models with more layers than `peers`, against each of these and against their mean."""
    rows = []
    quantities = [n for n in frame if n.startswith("mcog:") or n in CENTROID_EVENTS]
    deepest = layers[peers].max() if peers else 0
    for large in [m for m in layers.index if layers[m] > deepest]:
        for name in quantities:
            wide = frame[name].unstack("model")
            wide[OTHERS] = wide[peers].mean(axis=1, skipna=False)
            for other in [*peers, OTHERS]:
                paper = published.LARGER.get((name, other), np.nan)
                facts = dict(measure="larger", level=name, a=large, b=other)
                paper = paper if large == "opt-1.3b" else np.nan
                rows.append(depth_row(wide, large, other, seed, **facts, paper=paper))
    return rows


def binarised_rows(frame: pd.DataFrame, seed: int) -> list[dict]:
    """Multi-class tasks against their binarised variants, with mean differences.

    M-CoGs pair every task and model, events the tasks' means over models, as in the paper.
    """
    rows = []
    tasks = frame.index.get_level_values("task")
    pairs = [t for t in dict.fromkeys(tasks) if f"{t}{BINARY}" in set(tasks)]
    for name in [n for n in frame if n.startswith("mcog:") or n in CENTROID_EVENTS]:
        column = frame[[name]].rename(columns={name: "whole"})
        halves = column[tasks.str.endswith(BINARY)].rename(
            index=lambda task: task.removesuffix(BINARY), level="task"
        )
        both = column.loc[column.index.isin(pairs, level="task")].join(
            halves.rename(columns={"whole": "two"}), how="inner"
        )
        if name in CENTROID_EVENTS:
            both = both.groupby(level="task", sort=False).mean()
        if both.empty:
            continue
        change = (both["two"] - both["whole"]).dropna()
        rho, mean, absolute = published.BINARISED.get(name, (np.nan, None, None))
        facts = dict(measure="binarised", level=name, a="multi-class", b="binarised")
        rows.append(
            depth_row(both, "whole", "two", seed, **facts, paper=rho)
            | {
                "mean_difference": change.mean(),
                "mean_absolute_difference": change.abs().mean(),
                "paper_mean_difference": mean,
                "paper_mean_absolute_difference": absolute,
            }
        )
    return rows
