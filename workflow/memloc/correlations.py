"""Spearman's rank correlations between techniques and between models (Figures 8 and 9).

Rows pair the values that two techniques (or models) give for the same task, model (or technique)
and, for layer weights, layer. Intervals resample tasks, the unit that a new study would draw anew;
p-values treat rows as independent, which the layers of one task are not: read the intervals.
"""

from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from memloc.seeds import derive
from memloc.tables import read_tsv, write_tsv

COLUMNS = ["measure", "level", "a", "b", "rho", "p", "ci_low", "ci_high", "n", "note"]
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


def task_interval(x, y, tasks, seed, resamples=RESAMPLES):
    """Percentile bootstrap interval of rho over tasks: (low, high, undefined resamples).

    `x`, `y`, `tasks` have one entry per pair. Tasks are drawn with replacement, each with all of
    its pairs; resamples without a rho (constant) are left out and counted. nan below 3 tasks.
    """
    names = sorted(set(tasks))
    if len(names) < LEAST:
        return float("nan"), float("nan"), 0
    members = [np.flatnonzero(np.asarray(tasks) == name) for name in names]
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
    result = dict.fromkeys(("rho", "p", "ci_low", "ci_high"), float("nan"))
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


def min_max(values: pd.Series) -> pd.Series:
    """A Series scaled to 0..1; a constant one becomes 0."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else values * 0.0


def compare(frame, value, by, keys, seed, measure, level):
    """Rows for every pair of the entries of column `by`, joined on `keys` (task among them)."""
    rows = []
    entries = list(dict.fromkeys(frame[by]))
    for a, b in combinations(entries, 2):
        left, right = (
            frame.loc[frame[by] == name, [*keys, value]].rename(columns={value: new})
            for name, new in ((a, "x"), (b, "y"))
        )
        found = correlate(left.merge(right, on=keys), derive(seed, measure, level, a, b))
        rows.append({"measure": measure, "level": level, "a": a, "b": b} | found)
    return rows


def correlations(weights: pd.DataFrame, mcog: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The correlations table of the summary's layer_weights and mcog frames.

    Levels: "technique" (pairs over tasks and models), "model" (over tasks and techniques; weights
    scaled to 0..1 per technique, as their units differ) and, with a technique's name, "model:NAME"
    (between models within that technique: the paper's 0.85 is the mean of M-CoG's for retraining).
    Layer weights of models with different numbers of layers aren't compared.
    """
    rows = []
    scaled = weights.assign(scaled=weights.groupby("technique")["weight"].transform(min_max))
    rows += compare(mcog, "mcog", "technique", ["task", "model"], seed, "mcog", "technique")
    rows += compare(mcog, "mcog", "model", ["task", "technique"], seed, "mcog", "model")
    keys = ["task", "model", "layer"]
    rows += compare(weights, "weight", "technique", keys, seed, "layer_weights", "technique")
    keys = ["task", "technique", "layer"]
    depth = weights.groupby("model")["layer"].max()
    same_depth = [scaled[scaled["model"].map(depth) == d] for d in sorted(depth.unique())]
    for part in same_depth:
        rows += compare(part, "scaled", "model", keys, seed, "layer_weights", "model")
    for name in dict.fromkeys(mcog["technique"]):
        level = f"model:{name}"
        part = mcog[mcog["technique"] == name]
        rows += compare(part, "mcog", "model", ["task"], seed, "mcog", level)
    return pd.DataFrame(rows, columns=COLUMNS)


def write_correlations(layer_weights, mcog, output, seed):
    """Read the two summary tables and write summary/correlations.tsv."""
    write_tsv(correlations(read_tsv(layer_weights), read_tsv(mcog), seed), output, COLUMNS)
