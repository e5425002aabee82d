"""Progression: how memorisation moves through the layers while a model memorises.

Beyond the paper: techniques and centroid analysis at the checkpoints of chosen epochs (and at the
end of training), summarised as they are for finished models. Layers are 1..L.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from memloc.explain.centroid_events import COLUMNS as EVENT_COLUMNS
from memloc.explain.events import COLUMNS as EVENT_SUMMARY
from memloc.explain.events import SOURCES, summarise_events
from memloc.localise.found import Outcome, nothing_found
from memloc.localise.weights import mean_mcog
from memloc.store.tables import COLUMNS as TABLES
from memloc.store.tables import read_tsv, write_tsv
from memloc.study.techniques import TECHNIQUES, Technique
from memloc.summary.runs import outcomes
from memloc.summary.training import COLUMNS as TRAINING

COLUMNS = ["task", "model", "epoch", "measure", "name", "value", "sd", "n", "n_none", "reason"]
MCOG, EVENT, ACCURACY = "mcog", "event", "accuracy"
ACCURACIES = ("noisy_accuracy", "clean_accuracy", "validation_accuracy")
# What a table is of (task, model, seed and, where it has them, epoch and name), and the table.
RunTable = tuple[Mapping[str, Any], pd.DataFrame]
RunKey = tuple[str, str, int]  # task, model, seed
Ends = Mapping[RunKey, Outcome]


def _groups(entries: Iterable[RunTable], *keys: str) -> dict[tuple, dict[int, pd.DataFrame]]:
    """{values of keys: {seed: frame}}, in order of appearance."""
    groups: dict[tuple, dict[int, pd.DataFrame]] = {}
    for facts, frame in entries:
        groups.setdefault(tuple(facts[key] for key in keys), {})[facts["seed"]] = frame
    return groups


def outcomes_at(
    epoch: int, runs: Iterable[RunKey], histories: Iterable[RunTable], ends: Ends
) -> dict[int, Outcome]:
    """How far training had gone after an epoch, by seed of the runs of one task and model."""
    wanted, found = set(runs), {}
    for facts, history in histories:
        key = facts["task"], facts["model"], facts["seed"]
        if key in wanted:
            noisy = history.loc[history["epoch"] == epoch, "noisy_accuracy"].iloc[0]
            found[key[2]] = replace(ends[key], noisy_accuracy=float(noisy))
    return found


def mcog_rows(
    entries: Iterable[RunTable],
    histories: Sequence[RunTable],
    ends: Ends,
    techniques: Mapping[str, Technique] = TECHNIQUES,
) -> list[dict]:
    """M-CoG of the seeds' mean weights by task, model, epoch and technique; n counts seeds.

    Where the technique found nothing yet, there is none, and reason says why.
    """
    rows = []
    for key, seeds in _groups(entries, "task", "model", "epoch", "name").items():
        task, model, epoch, name = key
        weights = {seed: techniques[name].weights(frame) for seed, frame in seeds.items()}
        found = mean_mcog(weights, f"{task}/{model}, {name}, epoch {epoch}")
        went = outcomes_at(epoch, [(task, model, s) for s in seeds], histories, ends)
        reason = nothing_found(techniques[name], seeds, went)
        numbers = {"value": found["mcog"], "sd": found["sd"]}
        rows.append(
            dict(task=task, model=model, epoch=epoch, measure=MCOG, name=name, reason=reason)
            | (dict.fromkeys(numbers, np.nan) if reason else numbers)
            | dict(n=found["n_seeds"], n_none=0)
        )
    return rows


def event_rows(entries: Iterable[RunTable]) -> list[dict]:
    """Mean layer of each centroid event, without swapped layers, as in summary/events.tsv."""
    by_epoch: dict[int, list[RunTable]] = {}
    for facts, frame in entries:
        chosen = frame.loc[frame["source"] == SOURCES[0], EVENT_COLUMNS]
        by_epoch.setdefault(facts["epoch"], []).append((facts, chosen))
    rows = []
    for epoch, runs in by_epoch.items():
        found = summarise_events(runs)[EVENT_SUMMARY].rename(
            columns={"event": "name", "layer": "value"}
        )
        found = found.assign(epoch=epoch, measure=EVENT)
        rows += found.reindex(columns=COLUMNS).to_dict("records")
    return rows


def accuracy_rows(entries: Iterable[RunTable], epochs: Iterable[int]) -> list[dict]:
    """Accuracies after those epochs, mean and sd over seeds, from the runs' histories.

    A model's own last epoch counts among them.
    """
    rows = []
    for (task, model), seeds in _groups(entries, "task", "model").items():
        whole = pd.concat(seeds.values())
        wanted = {*epochs, int(whole["epoch"].max())}
        for epoch, part in whole[whole["epoch"].isin(wanted)].groupby("epoch"):
            for name in ACCURACIES:
                rows.append(
                    dict(
                        task=task,
                        model=model,
                        epoch=int(epoch),
                        measure=ACCURACY,
                        name=name,
                        reason="",
                    )
                    | dict(value=part[name].mean(), sd=part[name].std(), n=len(part), n_none=0)
                )
    return rows


def progression_table(
    techniques: Iterable[RunTable],
    events: Iterable[RunTable],
    histories: Iterable[RunTable],
    ends: Ends,
) -> pd.DataFrame:
    """The frame of COLUMNS: a row per task, model, epoch and quantity, epochs in order.

    `ends`: how far each run's training went in the end, by task, model and seed.
    Of measure mcog, name is a technique and n counts seeds. Of event, name is a centroid event of
    the examples of all pairs of classes pooled; n counts the seeds in which it happened and n_none
    those in which it never does, which is layer L + 1 in the mean. Of accuracy, n counts seeds.
    """
    techniques, events, histories = list(techniques), list(events), list(histories)
    epochs = {facts["epoch"] for facts, _ in (*techniques, *events)}
    rows = [
        *mcog_rows(techniques, histories, ends),
        *event_rows(events),
        *accuracy_rows(histories, epochs),
    ]
    found = pd.DataFrame(rows, columns=COLUMNS)
    order = {name: i for i, name in enumerate((MCOG, EVENT, ACCURACY))}
    return found.sort_values(
        ["task", "model", "measure", "name", "epoch"],
        key=lambda column: column.map(order) if column.name == "measure" else column,
        kind="stable",
    ).reset_index(drop=True)


def write_progression(
    tables: Sequence[str | Path], table_runs: Sequence[Mapping[str, Any]],
    events: Sequence[str | Path], event_runs: Sequence[Mapping[str, Any]],
    histories: Sequence[str | Path], history_runs: Sequence[Mapping[str, Any]],
    training: str | Path, output: str | Path,
) -> None:  # fmt: skip
    """Write summary/progression.tsv; each list of runs says what the tables of its paths are of."""
    techniques = [
        (run, read_tsv(path, TECHNIQUES[run["name"]].columns))
        for path, run in zip(tables, table_runs, strict=True)
    ]
    crossings = [
        (run, read_tsv(path, EVENT_COLUMNS)) for path, run in zip(events, event_runs, strict=True)
    ]
    trained = [
        (run, read_tsv(path, TABLES["history"]))
        for path, run in zip(histories, history_runs, strict=True)
    ]
    ends = outcomes(read_tsv(training, TRAINING))
    write_tsv(progression_table(techniques, crossings, trained, ends), output, COLUMNS)
