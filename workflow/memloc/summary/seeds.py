"""The seeds' window tables by task, model and technique, and how each seed's training ended."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.store.tables import COLUMNS, read_tsv

KEYS = ["task", "model", "technique"]
Run = Mapping[str, Any]  # task, model, seed and, of a window table, technique
Tables = Sequence[tuple[Run, pd.DataFrame]]
Ends = Mapping[tuple, pd.Series]  # a run's last row of history, by task, model and seed


def read_runs(
    paths: Sequence[str | Path],
    runs: Sequence[Run],
    histories: Sequence[str | Path],
    history_runs: Sequence[Run],
) -> tuple[Tables, Ends]:
    """Window tables with their runs, and what theta_M2's history says after the last epoch."""
    ends = {
        (run["task"], run["model"], run["seed"]): read_tsv(path, COLUMNS["history"])
        .sort_values("epoch")
        .iloc[-1]
        for path, run in zip(histories, history_runs, strict=True)
    }
    tables = [read_tsv(path, COLUMNS["windows"]) for path in paths]
    return list(zip(runs, tables, strict=True)), ends


def by_setting(
    tables: Iterable[tuple[Run, pd.DataFrame]], own: Mapping[tuple, float]
) -> dict[tuple, tuple[list[pd.DataFrame], list[float]]]:
    """By the values of KEYS, the seeds' tables and what `own` holds of each seed's run."""
    groups: dict[tuple, tuple[list[pd.DataFrame], list[float]]] = {}
    for run, table in tables:
        found = groups.setdefault(tuple(run[key] for key in KEYS), ([], []))
        found[0].append(table)
        found[1].append(own[run["task"], run["model"], run["seed"]])
    return groups
