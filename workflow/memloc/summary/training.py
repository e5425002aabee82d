"""How training went: the outcome of every run, and the histories of several as one frame."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.store.files import read_json
from memloc.store.tables import COLUMNS as TABLES
from memloc.store.tables import read_tsv, write_tsv

COLUMNS = [
    "task", "model", "seed", "labels", "n_train", "n_noisy", "epochs", "memorised_epoch",
    "noisy_accuracy", "clean_accuracy", "validation_accuracy", "validation_macro_f1", "seconds",
]  # fmt: skip
RUN = ("task", "model", "seed", "labels")


def outcome_of(
    history: pd.DataFrame, record: Mapping[str, Any], run: Mapping[str, Any]
) -> dict[str, Any]:
    """Row of one training run: its last epoch and, from its record, what was trained on.

    `record` is the checkpoint's provenance. memorised_epoch is the epoch of theta_M1 (section 3):
    "none" where no epoch exceeded its threshold, and nan where it isn't looked for (theta_O, a
    given checkpoint, of which epochs and seconds are unknown too).
    """
    last = history.sort_values("epoch").iloc[-1]
    outcome = {name: last[name] for name in COLUMNS if name in history}
    reached = record.get("memorised_epoch", math.nan)
    return (
        {name: run[name] for name in RUN}
        | outcome
        | {
            "n_train": record["n_train"],
            "n_noisy": record["n_noisy"],
            "epochs": last["epoch"],
            "memorised_epoch": "none" if reached is None else reached,
            "seconds": history["seconds"].sum(min_count=1),
        }
    )


def summarise_training(
    histories: Iterable[pd.DataFrame],
    records: Iterable[Mapping[str, Any]],
    runs: Iterable[Mapping[str, Any]],
) -> pd.DataFrame:
    """Frame training: a row per run; all three arguments have one entry per run, in order."""
    rows = [outcome_of(*entry) for entry in zip(histories, records, runs, strict=True)]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    # so that whole numbers stay whole beside "none" and nan
    reached = pd.Series([row["memorised_epoch"] for row in rows], dtype=object)
    return frame.assign(memorised_epoch=reached, epochs=frame["epochs"].astype("Int64"))


def read_histories(paths: Iterable[str | Path], runs: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The runs' history tables as one frame with columns task, model, seed and labels."""
    frames = [
        read_tsv(path, TABLES["history"]).assign(**{name: run[name] for name in RUN})
        for path, run in zip(paths, runs, strict=True)
    ]
    return pd.concat(frames, ignore_index=True)


def write_training(
    histories: Sequence[str | Path],
    records: Sequence[str | Path],
    runs: Sequence[Mapping[str, Any]],
    output: str | Path,
) -> None:
    """Write summary/training.tsv from the runs' history tables and provenance records."""
    tables = [read_tsv(path, TABLES["history"]) for path in histories]
    facts = [read_json(path) for path in records]
    write_tsv(summarise_training(tables, facts, runs), output, COLUMNS)
