"""Tables of the control setup over tasks and models, with the paper's Table 4 beside ours."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.control.scores import ONE_LAYER, Scored, hits, own_pairs, scores_by_kind, scores_of
from memloc.localise.gradients.variants import COLUMNS as GRADIENTS
from memloc.localise.gradients.variants import VARIANTS, gradient_weights
from memloc.store.files import read_json
from memloc.store.tables import read_tsv, write_tsv
from memloc.study.control import NEIGHBOURS
from memloc.study.published import TABLE_4, TABLE_4_STEPS, TABLE_4_TASKS
from memloc.study.techniques import TECHNIQUES, with_options
from memloc.summary.pointing import NUMBERS, claimed, over_tasks

RUN = ("task", "model", "role")  # of a run: what scores of its control models are grouped by
COLUMNS = {
    "control_accuracy": [
        "task", "model", "technique", "scores", "pair", "design", "k", "accuracy", "chance",
        "shuffled", "role", "n_layers",
    ],
    "control_techniques": [
        "role", "model", "technique", "scores", "design", "k", *NUMBERS, "p", "p_holm", "claim",
        "decided",
    ],
    "control_weights": [
        "task", "model", "technique", "pair", "layer", "weight", "weight_raw", "one_layer", "role",
    ],
    "gradient_variants": [
        "role", "model", "variant", "norm", "clean", "frozen", "design", "k", *NUMBERS, "paper",
    ],
}  # fmt: skip
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


def control_frames(
    frames: Iterable[pd.DataFrame],
    runs: Iterable[Mapping[str, Any]],
    techniques: Mapping[str, Any],
    seed: int,
) -> dict[str, pd.DataFrame]:
    """Frames control_accuracy, control_weights and control_techniques of all control models.

    `runs` says technique, task, model, pair and role of each table of `frames`; role is
    "validation" for tasks that choose how a technique is post-processed, else "test". `seed`: of
    the shuffles that decide what is claimed.
    """
    scored, weights = [], []
    for frame, run in zip(frames, runs, strict=True):
        technique = techniques[run["technique"]]
        found, scores = technique.weights(frame), scores_by_kind(technique, frame)
        raw, alone = found.get("weight_raw", found["weight"]), scores.get(ONE_LAYER, math.nan)
        key = {name: run[name] for name in (*RUN, "technique")}
        weights.append(found.assign(weight_raw=raw, one_layer=alone, pair=run["pair"], **key))
        scored += [Scored(key | {"scores": k}, run["pair"], s) for k, s in scores.items()]
    every = hits(scored)
    found = {
        "control_accuracy": _own(every),
        "control_weights": pd.concat(weights, ignore_index=True) if weights else pd.DataFrame(),
        "control_techniques": claimed(every, ["technique", "scores"], seed),
    }
    return {name: frame.reindex(columns=COLUMNS[name]) for name, frame in found.items()}


def _own(every: pd.DataFrame) -> pd.DataFrame:
    """Each control model's accuracy, with the mean that its pair gets from all of its task."""
    if every.empty:
        return every
    same = [*RUN, "technique", "scores", "judged", "k"]
    means = every.groupby(same)["accuracy"].transform("mean")
    return own_pairs(every.assign(shuffled=means))


def write_accuracy(
    paths: Sequence[str | Path],
    runs: Sequence[Mapping[str, Any]],
    options: Mapping[str, Mapping[str, Any]],
    seed: int,
    outputs: Mapping[str, str],
) -> None:
    """Write the frames of control_frames that `outputs` names, from techniques' tables."""
    techniques = with_options(TECHNIQUES, options)
    tables = [
        read_tsv(path, techniques[run["technique"]].columns)
        for path, run in zip(paths, runs, strict=True)
    ]
    frames = control_frames(tables, runs, techniques, seed)
    for name, path in outputs.items():
        write_tsv(frames[name], path, COLUMNS[name])


def variant_frame(
    frames: Iterable[pd.DataFrame],
    runs: Iterable[Mapping[str, Any]],
    paper: Mapping[str, Mapping[str, float]],
) -> pd.DataFrame:
    """Frame gradient_variants (Table 4): accuracy of every post-processing on validation tasks.

    `frames` are gradients.tsv of control models; `paper` holds what the paper reports for
    accuracy@2, by model and variant, for those models and tasks that are the paper's.
    """
    scored = [
        Scored(
            {name: run[name] for name in RUN}
            | dict(zip(("variant", "norm", "clean", "frozen"), (variant, *chosen), strict=True)),
            run["pair"],
            scores_of(gradient_weights(frame, variant)),
        )
        for frame, run in zip(frames, runs, strict=True)
        for variant, chosen in VARIANTS.items()
    ]
    table = over_tasks(hits(scored), ["variant", "norm", "clean", "frozen"])
    if not table.empty:
        table["paper"] = [
            paper.get(row.model, {}).get(row.variant, math.nan)
            if row.k == 2 and row.design == NEIGHBOURS
            else math.nan
            for row in table.itertuples()
        ]
    return table.reindex(columns=COLUMNS["gradient_variants"])


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
