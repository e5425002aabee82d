"""Tables of the control setup from those of its models, with the paper's Table 4 beside ours."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.control.scores import COLUMNS, control_frames, variant_frame
from memloc.localise.gradients.variants import COLUMNS as GRADIENTS
from memloc.store.files import read_json
from memloc.store.tables import read_tsv, write_tsv
from memloc.study.published import TABLE_4, TABLE_4_STEPS, TABLE_4_TASKS
from memloc.study.techniques import TECHNIQUES, with_options

TRAINING = [
    "task", "model", "pair", "labels", "role", "learning_rate", "rates_tried", "training_accuracy",
    "noisy_accuracy", "clean_accuracy", "validation_accuracy",
    "auxiliary_validation_accuracy", "memorised_epoch", "epochs", "n_train", "n_noisy", "seconds",
]  # fmt: skip


def paper_accuracies(weights: Mapping[str, str], tasks: Iterable[str]) -> dict[str, dict]:
    """What Table 4 reports, by model and variant; nothing for other tasks than the paper's.

    `weights`: model -> the name of its weights on the hub.
    """
    if set(tasks) != TABLE_4_TASKS:
        return {}
    return {
        model: {
            f"{norm}{step}": value
            for step, values in zip(TABLE_4_STEPS, TABLE_4[name], strict=True)
            for norm, value in zip(("L1", "L2"), values, strict=True)
        }
        for model, name in weights.items()
        if name in TABLE_4
    }


def write_accuracy(
    paths: Sequence[str | Path],
    runs: Sequence[Mapping[str, Any]],
    options: Mapping[str, Mapping[str, Any]],
    outputs: Mapping[str, str],
) -> None:
    """Write the frames of control_frames that `outputs` names, from techniques' tables."""
    techniques = with_options(TECHNIQUES, options)
    tables = [
        read_tsv(path, techniques[run["technique"]].columns)
        for path, run in zip(paths, runs, strict=True)
    ]
    frames = control_frames(tables, runs, techniques)
    for name, path in outputs.items():
        write_tsv(frames[name], path, COLUMNS[name])


def write_variants(
    paths: Sequence[str | Path],
    runs: Sequence[Mapping[str, Any]],
    weights: Mapping[str, str],
    output: str | Path,
) -> None:
    """Write gradient_variants.tsv from the gradients.tsv of validation tasks' control models."""
    paper = paper_accuracies(weights, {run["task"] for run in runs})
    frame = variant_frame([read_tsv(path, GRADIENTS) for path in paths], runs, paper)
    write_tsv(frame, output, COLUMNS["gradient_variants"])


def control_training_row(
    history: pd.DataFrame, record: Mapping[str, Any], run: Mapping[str, Any]
) -> dict:
    """Outcome of one control model: its last epoch, and which learning rates were tried."""
    last = history.sort_values("epoch").iloc[-1]
    reached = record.get("memorised_epoch")
    return (
        {name: run[name] for name in ("task", "model", "pair", "labels", "role")}
        | {name: last[name] for name in TRAINING if name in last}
        | {name: record[name] for name in ("training_accuracy", "n_train", "n_noisy")}
        | {
            "learning_rate": record["recipe"]["learning_rate"],
            "rates_tried": len(record["learning_rates_tried"]),
            "memorised_epoch": "none" if reached is None else int(reached),
            "epochs": int(last["epoch"]),
            "seconds": history["seconds"].sum(),
        }
    )


def write_control_training(
    histories: Sequence[str | Path],
    records: Sequence[str | Path],
    runs: Sequence[Mapping[str, Any]],
    output: str | Path,
) -> None:
    """Write control_training.tsv: a row per control model, from histories and records."""
    rows = [
        control_training_row(read_tsv(history), read_json(record), run)
        for history, record, run in zip(histories, records, runs, strict=True)
    ]
    write_tsv(pd.DataFrame(rows), output, TRAINING)
