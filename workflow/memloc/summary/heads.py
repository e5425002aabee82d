"""Errors when single attention heads are swapped, over seeds: a map of layers and heads."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.store.tables import COLUMNS as TABLES
from memloc.store.tables import read_tsv, write_tsv

COLUMNS = [
    "task", "model", "layer", "head", "noisy_error", "sd", "clean_error", "noise_minus_clean",
    "to_original", "validation_error", "n_seeds",
]  # fmt: skip
KEY = ["task", "model", "layer", "head"]
MEANS = ["noisy_error", "clean_error", "noise_minus_clean", "to_original", "validation_error"]


def mean_heads(tables: Iterable[tuple[Mapping[str, Any], pd.DataFrame]]) -> pd.DataFrame:
    """A row per task, model, layer and head: means over seeds; sd is that of noisy_error.

    All seeds start from the same pre-trained weights, so that a head is the same one in each.
    """
    each = [table.assign(task=run["task"], model=run["model"]) for run, table in tables]
    heads = pd.concat(each).groupby(KEY, sort=False)
    found = heads[MEANS].mean().assign(sd=heads["noisy_error"].std(), n_seeds=heads.size())
    return found.reset_index()[COLUMNS]


def write_heads(
    paths: Iterable[str | Path], runs: Iterable[Mapping[str, Any]], output: str | Path
) -> None:
    """Write summary/heads.tsv from the runs' tables of heads."""
    tables = (read_tsv(path, TABLES["heads"]) for path in paths)
    write_tsv(mean_heads(zip(runs, tables, strict=True)), output, COLUMNS)
