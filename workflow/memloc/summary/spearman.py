"""Spearman's rank correlation with n, p and a bootstrap interval over tasks; Holm's adjustment.

Intervals resample tasks, since a new study would draw new tasks. p-values treat rows as
independent, which the layers or models of one task are not: trust the intervals.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy import stats

LEAST = 3  # fewer pairs (or tasks, for an interval) give no number
RESAMPLES = 1000
CONFIDENCE = 0.95
TOO_SMALL = "n too small"


def row_wise_rho(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman's rho of each row of two arrays (m, n): (m,), nan where a row is constant."""
    rx = stats.rankdata(x, axis=1)
    ry = stats.rankdata(y, axis=1)
    rx, ry = rx - rx.mean(axis=1, keepdims=True), ry - ry.mean(axis=1, keepdims=True)
    scale = np.sqrt((rx**2).sum(axis=1) * (ry**2).sum(axis=1))
    products = (rx * ry).sum(axis=1)
    return np.divide(products, scale, out=np.full(len(products), np.nan), where=scale > 0)


def task_interval(
    x: np.ndarray, y: np.ndarray, tasks: Iterable[str], seed: int, resamples: int = RESAMPLES
) -> tuple[float, float, int]:
    """Percentile bootstrap interval of rho over tasks: (low, high, undefined resamples).

    `x`, `y`, `tasks` have one entry per pair. Tasks are drawn with replacement, each with all of
    its pairs; resamples without a rho (constant) are left out and counted. nan below 3 tasks.
    """
    tasks = np.asarray(tasks)
    names = sorted(set(tasks))
    if len(names) < LEAST:
        return float("nan"), float("nan"), 0
    members = [np.flatnonzero(tasks == name) for name in names]
    draws = np.random.default_rng(seed).integers(len(names), size=(resamples, len(names)))
    if len({len(m) for m in members}) == 1:
        rows = np.array(members)[draws].reshape(resamples, -1)
        values = row_wise_rho(x[rows], y[rows])
    else:  # tasks with different numbers of pairs: resamples differ in length
        picks = [np.concatenate([members[i] for i in draw]) for draw in draws]
        values = np.array([row_wise_rho(x[None, p], y[None, p])[0] for p in picks])
    defined = values[~np.isnan(values)]
    if not len(defined):
        return float("nan"), float("nan"), resamples
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high), resamples - len(defined)


def correlate(pairs: pd.DataFrame, seed: int) -> dict:
    """rho, p, ci_low, ci_high, n, note of a frame with columns x, y and task (one row a pair)."""
    pairs = pairs.dropna(subset=["x", "y"])
    x, y = pairs["x"].to_numpy(float), pairs["y"].to_numpy(float)
    result: dict = dict.fromkeys(("rho", "p", "ci_low", "ci_high"), float("nan"))
    result |= {"n": len(pairs), "note": ""}
    if len(pairs) < LEAST:
        return result | {"note": TOO_SMALL}
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return result | {"note": "undefined: constant values"}
    rho, p = stats.spearmanr(x, y)
    low, high, undefined = task_interval(x, y, pairs["task"].to_numpy(), seed)
    if np.isnan(low):
        result["note"] = f"no interval: {pairs['task'].nunique()} tasks"
    elif undefined:
        result["note"] = f"{undefined} of {RESAMPLES} resamples undefined"
    return result | {"rho": float(rho), "p": float(p), "ci_low": low, "ci_high": high}


def holm(p_values: Iterable[float]) -> np.ndarray:
    """Holm's adjusted p-values of one family of tests; nan (no test) stays and doesn't count.

    The smallest of m p-values is multiplied by m, the next one by m - 1, and so on. An adjusted
    value is never smaller than the one before it, and never larger than 1.
    """
    p = np.asarray(p_values, dtype=float)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted = np.full(len(p), np.nan)
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * factors))
    return adjusted
