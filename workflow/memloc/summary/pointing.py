"""How often scores point at layers that are known, with the task as the unit.

Control models of one task resemble each other, so that a task counts once: by the mean over its
models and pairs of layers. Whether that is more than chance is decided against shuffled pairs: the
pairs are exchanged at random between the control models of each task (all models of a task alike).
A technique that always points at the same layers gains nothing by that, though it may be right more
often than a random guess. How often this claims what isn't there: benchmarks/null_claims.py.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from memloc.control.scores import JUDGED_BY, own_pairs
from memloc.study.control import pair_of
from memloc.summary.spearman import CLAIM_LEAST, DRAWS, FEW, INTERVAL_LEAST, LEVEL, NONE, holm

ALL = "all"  # models
NO_P = math.nan  # of accuracies that no claim rests on
ABOVE, ONE_PAIR = "above chance", "one pair of layers"  # claims, beside NONE and FEW
NUMBERS = [
    "accuracy", "ci_low", "ci_high", "sd", "chance", "shuffled", "n", "n_control", "n_none",
]  # fmt: skip


def groups(hits: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[dict, pd.DataFrame]]:
    """What stands in a row over tasks, by role, model (and all), `keys`, design and k."""
    if hits.empty:
        return
    several = [hits.assign(model=ALL)] if hits["model"].nunique() > 1 else []
    by = ["role", "model", *keys, "design", "k"]
    for frame in (*several, hits):
        parts = frame.assign(own_model=hits["model"]).groupby(by, sort=False)
        for values, part in parts:
            yield dict(zip(by, values, strict=True)), part


def over_tasks(hits: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Accuracies over tasks by role, model (and all models), `keys`, design and k: NUMBERS.

    `hits`: as from control.scores. n counts tasks, n_control the control models behind them,
    n_none those whose scores are undefined; shuffled is the accuracy that shuffled pairs get.
    """
    return pd.DataFrame([named | _numbers(part) for named, part in groups(hits, keys)])


def task_means(part: pd.DataFrame) -> pd.Series:
    """Accuracy of each task that has any: the mean over its models and pairs."""
    return own_pairs(part).groupby("task", sort=False)["accuracy"].mean().dropna()


def _numbers(part: pd.DataFrame) -> dict[str, float]:
    own, tasks = own_pairs(part), task_means(part)
    low, high = interval(tasks.to_numpy())
    # Chance is that of the models that the accuracy is of: others may have more layers.
    told = own.dropna(subset=["accuracy"])
    models = told[["task", "own_model"]].drop_duplicates()
    others = part.merge(models).groupby(["task", "own_model", "judged"])
    values = (
        tasks.mean(), low, high, tasks.std(), told.groupby("task")["chance"].mean().mean(),
        others["accuracy"].mean().groupby("task").mean().mean(),
        len(tasks), int(own["accuracy"].count()), int(own["accuracy"].isna().sum()),
    )  # fmt: skip
    return dict(zip(NUMBERS, values, strict=True))


def interval(accuracies: np.ndarray) -> tuple[float, float]:
    """95 % interval of the mean over tasks (n,): (low, high), nan of fewer than INTERVAL_LEAST.

    It is a t interval over the tasks and two more, one at 0 and one at 1 (after Agresti & Caffo
    2000): without them, tasks that all score 1 would leave no doubt at all.
    """
    n = len(accuracies)
    if n < INTERVAL_LEAST:
        return math.nan, math.nan
    more = np.append(accuracies, [0.0, 1.0])
    half = stats.t.isf(LEVEL / 2, n + 1) * more.std(ddof=1) / math.sqrt(n + 2)
    return max(0.0, float(more.mean() - half)), min(1.0, float(more.mean() + half))


def shuffled_p(part: pd.DataFrame, seed: int) -> float:
    """How often shuffled pairs are pointed at as often as the right ones; nan without two pairs.

    `part`: rows of `hits` of one technique and k, of all tasks.
    """
    part = part[part["task"].isin(task_means(part).index)]
    if part["pair"].nunique() < 2:
        return math.nan
    rng = np.random.default_rng(seed)
    draws = [_task_draws(rows, rng) for _, rows in part.groupby("task", sort=False)]
    values = np.ma.stack(draws).mean(axis=0)
    return float((values >= values[0] - 1e-9).mean())


def _task_draws(rows: pd.DataFrame, rng: np.random.Generator) -> np.ma.MaskedArray:
    """A task's accuracy as its pairs are, then for DRAWS shuffles of them: (1 + DRAWS,).

    Models whose pairs differ, for they have other numbers of layers, are shuffled by place.
    """
    keys = rng.random((DRAWS, rows["pair"].nunique()))
    found = []
    for _, one in rows.groupby("own_model", sort=False):
        table = one.pivot(index="pair", columns="judged", values="accuracy")
        pairs, judged = (sorted(names, key=pair_of) for names in (table.index, table.columns))
        orders = np.vstack([np.arange(len(pairs)), keys[:, : len(pairs)].argsort(axis=1)])
        columns = [pairs.index(name) for name in judged]
        values = table.loc[pairs, judged].to_numpy(float)
        found.append(values[orders[:, columns], np.arange(len(judged))])
    return np.ma.masked_invalid(np.hstack(found)).mean(axis=1)


def claimed(hits: pd.DataFrame, keys: Sequence[str], seed: int) -> pd.DataFrame:
    """As `over_tasks`, with p, p_holm, claim and decided where k is that which claims rest on.

    p is adjusted over the rows (techniques) of one role, model, kind of scores and design.
    """
    rows = [
        named | _numbers(part) | {"p": shuffled_p(part, seed) if named["k"] == JUDGED_BY else NO_P}
        for named, part in groups(hits, keys)
    ]
    table = pd.DataFrame(rows).assign(p_holm=math.nan, claim="", decided="")
    if not rows:
        return table
    told = table[table["k"] == JUDGED_BY]
    for _, family in told.groupby(["role", "model", "scores", "design"]):
        table.loc[family.index, "p_holm"] = holm(family["p"])
        words = f"{DRAWS:,} shuffles of each task's pairs, Holm over {family['p'].count()}"
        table.loc[family.index, "decided"] = np.where(family["p"].notna(), words, "")
    table.loc[told.index, "claim"] = table.loc[told.index].apply(_claim, axis=1)
    return table


def _claim(row: pd.Series) -> str:
    """What may be said of a row: above chance, none, or why nothing can be."""
    if row["n"] < CLAIM_LEAST:
        return FEW
    if math.isnan(row["p_holm"]):
        return ONE_PAIR
    chance = row["chance"]
    sure = row["p_holm"] < LEVEL and row["accuracy"] > chance and not row["ci_low"] <= chance
    return ABOVE if sure else NONE
