"""summary/correlations.tsv: every rank correlation of the study, with the paper's beside it.

Its rows come from `memloc.summary.agreement` (between techniques and between models), `depth` (with
generalisation, between events) and `appendices`. Techniques that found nothing in a task and model
are left out; where that leaves out any, rows whose column `included` is "all" have the paper's
inclusive figures beside, without a test. Holm's adjustment is made within a family of tests, which
is what one table or panel shows together: column `family`.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from memloc.store.tables import read_tsv, write_tsv
from memloc.summary.agreement import agreement
from memloc.summary.appendices import binarised_rows, larger_models
from memloc.summary.depth import PARTIAL, commonest, depth_rows, depths, main_tasks
from memloc.summary.spearman import holm

COLUMNS = [
    "family", "measure", "level", "a", "b", "included", "rho", "ci_low", "ci_high", "n", "p",
    "p_holm", "claim", "decided", "rho_pooled", "n_pairs", "mean_difference",
    "mean_absolute_difference", "paper_rho", "paper_mean_difference",
    "paper_mean_absolute_difference", "note",
]  # fmt: skip
FOUND, ALL = "found", "all"  # what `included` says: techniques that found something, or all
UNTESTED = {
    "family": "", "p": np.nan, "ci_low": np.nan, "ci_high": np.nan, "claim": "none", "decided": "",
}  # fmt: skip


def found_alone(weights: pd.DataFrame, mcog: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both frames without the tasks and models in which a technique found nothing."""
    keys = ["task", "model", "technique"]
    kept = mcog[mcog["found"].eq("yes")]
    return weights.merge(kept[keys], on=keys), kept


def all_rows(
    weights: pd.DataFrame,
    mcog: pd.DataFrame,
    events: pd.DataFrame | None,
    generalisation: pd.DataFrame | None,
    seed: int,
) -> pd.DataFrame:
    """Rows of agreement, of depth and of the appendices.

    Binarised tasks enter nothing but their comparison with the tasks they come from.
    """
    tasks = main_tasks(mcog["task"])
    main = {"weights": weights, "mcog": mcog}
    main = {name: frame[frame["task"].isin(tasks)] for name, frame in main.items()}
    rows = agreement(**main, seed=seed)
    found = depths(mcog, events)
    layers = weights.groupby("model", sort=False)["layer"].max()
    peers, whole = commonest(layers), found[found.index.isin(tasks, level="task")]
    rows += depth_rows(whole, peers, generalisation, seed)
    rows += larger_models(whole, layers, peers, seed)
    return pd.DataFrame(rows + binarised_rows(found, seed), columns=COLUMNS)


def changed(inclusive: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The inclusive rows whose figures differ from those of `table`, as effects alone."""
    keys, figures = ["measure", "level", "a", "b"], ["rho", "rho_pooled", "n_pairs"]
    shown = inclusive[inclusive["measure"] != PARTIAL]
    ours = table.set_index(keys)[figures].reindex(pd.MultiIndex.from_frame(shown[keys]))
    same = np.isclose(shown[figures].astype(float), ours.astype(float), equal_nan=True).all(axis=1)
    return shown[~same].assign(included=ALL, **UNTESTED)


def correlations(
    weights: pd.DataFrame,
    mcog: pd.DataFrame,
    seed: int,
    events: pd.DataFrame | None = None,
    generalisation: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The correlations table of the summary's frames; events and generalisation may be missing."""
    others: Any = events, generalisation, seed
    table = all_rows(*found_alone(weights, mcog), *others).assign(included=FOUND)
    if mcog["found"].ne("yes").any():
        table = pd.concat(
            [table, changed(all_rows(weights, mcog, *others), table)], ignore_index=True
        )
    table = table.reindex(columns=COLUMNS)
    for family, part in table.groupby("family"):
        if family:
            table.loc[part.index, "p_holm"] = holm(part["p"])
    words = {name: table[name].fillna("") for name in ("claim", "decided", "note")}
    numbers = [name for name in COLUMNS if "difference" in name or "rho" in name or name[0] == "p"]
    return table.assign(**words).astype(dict.fromkeys(numbers, float))


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
