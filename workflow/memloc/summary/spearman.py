"""Spearman's rank correlation with the task as the unit: effect, permutation p, interval, claim.

Values of one task (of several models, say) are no independent draws, so that they count once: the
effect is the mean over models, or other strata, of the correlation over tasks within one. p comes
from permuting tasks, with all of a task's strata kept together. Quantities of tasks can be held
fixed: ranks are then replaced by their residuals, which are permuted (Freedman & Lane 1983).
How often this claims what isn't there: benchmarks/null_claims.py.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import permutations

import numpy as np
import pandas as pd
from scipy import stats

LEAST = 3  # tasks; fewer give no number
CLAIM_LEAST, INTERVAL_LEAST = 5, 6  # tasks, and one more for every quantity that is held fixed
EXACT = 9  # tasks up to which every permutation is tried
DRAWS = 9999  # random permutations of more
LEVEL = 0.05
TOO_SMALL = "n too small"
POSITIVE, NEGATIVE, NONE, FEW = "positive", "negative", "none", "too few tasks"
NUMBERS = ("rho", "p", "ci_low", "ci_high", "rho_pooled")


def grids(pairs: pd.DataFrame, tasks: Sequence[str]) -> list[np.ndarray]:
    """x and y of a frame of pairs as arrays (strata, tasks), nan where a pair is missing."""
    wide = pairs.pivot(index="stratum", columns="task", values=["x", "y"])
    return [wide[name].reindex(columns=tasks).to_numpy(float) for name in ("x", "y")]


def residual_ranks(values: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Ranks of a vector, less what those of `held` (n, k) explain, of length 1; nan becomes 0.

    All 0 where nothing is left: the values are constant or follow from what is held.
    """
    known = ~np.isnan(values)
    found = np.zeros(len(values))
    if known.sum() < LEAST:
        return found
    ranks = stats.rankdata(values[known])
    design = np.column_stack([np.ones(known.sum()), stats.rankdata(held[known], axis=0)])
    rest = ranks - design @ np.linalg.lstsq(design, ranks, rcond=None)[0]
    length = np.linalg.norm(rest)
    if length > 1e-9 * np.linalg.norm(ranks):
        found[known] = rest / length
    return found


@cache
def every_order(n: int) -> np.ndarray:
    """All orders of n tasks, (n!, n); the first is the one they have."""
    return np.array(list(permutations(range(n))))


def orders_of(n: int, seed: int) -> np.ndarray:
    """Orders of n tasks to try, the given one first: all of few, random ones of many."""
    if n <= EXACT:
        return every_order(n)
    draws = np.random.default_rng(seed).permuted(np.tile(np.arange(n), (DRAWS, 1)), axis=1)
    return np.concatenate([[np.arange(n)], draws])


def permuted_rho(x: np.ndarray, y: np.ndarray, held: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Mean over strata of rho for every order of the tasks of y: (orders,).

    `x`, `y`: residual ranks (strata, n), from `residual_ranks`; `held`: (n, k).
    """
    n = x.shape[1]
    design = np.column_stack([np.ones(n), stats.rankdata(held, axis=0)])
    keep = np.eye(n) - design @ np.linalg.pinv(design)
    total = np.zeros(len(orders))
    for left, right in zip(x, y, strict=True):
        rest = right[orders] @ keep if held.size else right[orders]
        length = np.linalg.norm(rest, axis=1)
        total += np.divide(rest @ left, length, out=np.zeros(len(orders)), where=length > 1e-9)
    return total / len(x)


def interval(rho: float, n: int, n_held: int = 0, scale: float = 1.0) -> tuple[float, float]:
    """95 % interval of Spearman's rho of n tasks after Bonett & Wright (2000): (low, high).

    `scale`: how much less a mean over strata spreads than one stratum does. For rho at -1 or 1 it
    is the interval of half a step away, since n tasks can't tell them apart; nan for fewer than 6
    tasks and what is held fixed.
    """
    if n < INTERVAL_LEAST + n_held:
        return math.nan, math.nan
    bound = 1 - 6 / (n**3 - n)
    inner = float(np.clip(rho, -bound, bound))
    half = scale * stats.norm.isf(LEVEL / 2) * math.sqrt((1 + inner**2 / 2) / (n - n_held - 3))
    low, high = (math.tanh(math.atanh(inner) + side * half) for side in (-1, 1))
    return min(low, rho), max(high, rho)


def claimed(rho: float, p: float, low: float, high: float, n: int, n_held: int = 0) -> str:
    """What may be said: positive, negative, none or "too few tasks".

    Said are only those whose p is below .05 and whose interval, where there is one, leaves out 0.
    """
    if n < CLAIM_LEAST + n_held:
        return FEW
    if not p < LEVEL or low <= 0 <= high:
        return NONE
    return POSITIVE if rho > 0 else NEGATIVE


def correlate(pairs: pd.DataFrame, seed: int, held: Sequence[str] = ()) -> dict:
    """The NUMBERS, n (tasks), n_pairs, claim, decided and note of a frame with a row a pair.

    Columns x, y, task, maybe stratum (a model, say), and those `held` fixed, constant in a task.
    rho_pooled is that of all pairs as if they were independent, as the paper has it: no p.
    """
    pairs = pairs.dropna(subset=["x", "y", *held])
    pairs = pairs if "stratum" in pairs else pairs.assign(stratum="")
    tasks = list(dict.fromkeys(pairs["task"]))
    result: dict = dict.fromkeys(NUMBERS, math.nan)
    result |= {"n": len(tasks), "n_pairs": len(pairs), "claim": FEW, "decided": "", "note": ""}
    if len(tasks) < LEAST:
        return result | {"note": TOO_SMALL}
    fixed = np.empty((len(tasks), 0))
    if held:
        fixed = pairs.groupby("task", sort=False)[list(held)].first().loc[tasks].to_numpy(float)
        fixed = fixed[:, np.ptp(fixed, axis=0) > 0]
    x, y = (np.array([residual_ranks(row, fixed) for row in rows]) for rows in grids(pairs, tasks))
    told = x.any(axis=1) & y.any(axis=1)
    if not told.any():
        left = "constant values" + (" once these are held fixed" if len(held) else "")
        return result | {"claim": NONE, "note": f"undefined: {left}"}
    return result | _numbers(x[told], y[told], fixed, seed) | {"rho_pooled": pooled(pairs)}


def _numbers(x: np.ndarray, y: np.ndarray, held: np.ndarray, seed: int) -> dict:
    """rho, p, interval, claim and how it was decided, from residual ranks."""
    n, n_held = held.shape
    orders = orders_of(n, seed)
    values = permuted_rho(x, y, held, orders)
    rho = float(np.clip(values[0], -1, 1))
    p = float((np.abs(values) >= abs(rho) - 1e-9).mean())
    scale = min(1.0, float(values.std()) * math.sqrt(n - n_held - 1)) if len(x) > 1 else 1.0
    low, high = interval(rho, n, n_held, scale)
    of = f"all {len(orders):,}" if n <= EXACT else f"{len(orders) - 1:,} random"
    return {
        "rho": rho, "p": p, "ci_low": low, "ci_high": high,
        "claim": claimed(rho, p, low, high, n, n_held),
        "decided": f"{of} orders of {n} tasks",
        "note": "" if n >= INTERVAL_LEAST + n_held else f"no interval: {n} tasks",
    }  # fmt: skip


def pooled(pairs: pd.DataFrame) -> float:
    """Spearman's rho of all pairs, of whatever task and stratum; nan where one is constant."""
    ranks = [stats.rankdata(pairs[name].to_numpy(float)) for name in ("x", "y")]
    if any(np.ptp(each) == 0 for each in ranks):
        return math.nan
    return float(np.corrcoef(*ranks)[0, 1])


def average(pairs: pd.DataFrame) -> dict:
    """As `correlate`, where the pairs of one task are its layers: no p and no claim.

    rho is the mean over tasks of their own correlation over layers (itself a mean over strata), and
    the interval a t interval over tasks. Layers follow each other, so that none is tested.
    """
    pairs = pairs.dropna(subset=["x", "y"])
    own = pairs.groupby(["task", "stratum"]).apply(pooled)
    by_task = own.groupby(level="task").mean().dropna() if len(own) else pd.Series(dtype=float)
    n = len(by_task)
    result: dict = dict.fromkeys(NUMBERS, math.nan)
    result |= {"n": n, "n_pairs": len(pairs), "claim": NONE, "decided": "", "note": ""}
    if not n:
        return result | {"note": TOO_SMALL}
    result |= {"rho": float(by_task.mean()), "rho_pooled": pooled(pairs)}
    if n < INTERVAL_LEAST:
        return result | {"note": f"no interval: {n} tasks"}
    half = stats.t.isf(LEVEL / 2, n - 1) * by_task.std() / math.sqrt(n)
    ends = {"ci_low": max(-1, result["rho"] - half), "ci_high": min(1, result["rho"] + half)}
    return result | ends | {"decided": f"t interval over {n} tasks"}


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
