"""Per-run tables gathered into the tables of a whole study.

Each technique of `memloc.techniques` says which table of a run it reads and how that becomes layer
weights: windows go through their matrix, other techniques give a weight per layer themselves.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from memloc.errors import MemlocError
from memloc.localise.probes.weights import MEMORISED, f1_by_layer
from memloc.localise.weights import mean_mcog, mean_weights, one_layer_maximum
from memloc.store.files import read_json
from memloc.store.tables import COLUMNS as TABLES
from memloc.store.tables import read_tsv, write_tsv
from memloc.study.techniques import TECHNIQUES, known, with_options

COLUMNS = {
    "layer_weights": [
        "task", "model", "technique", "layer", "weight", "sd", "weight_raw", "sd_raw", "n_seeds",
    ],
    "mcog": ["task", "model", "technique", "mcog", "sd", "n_seeds", "n_zero"],
    "one_layer": ["task", "model", "technique", "layer", "error", "sd", "error_raw", "n_seeds"],
    "probe_f1": ["task", "model", "layer", "f1", "sd", "f1_random", "n_seeds"],
    "label_f1": ["task", "model", "labels", "examples", "layer", "f1", "sd", "n_seeds"],
    "training": [
        "task", "model", "seed", "labels", "n_train", "n_noisy", "epochs", "memorised_epoch",
        "noisy_accuracy",
        "clean_accuracy", "validation_accuracy", "validation_macro_f1", "seconds",
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One seed's table of one technique for one task and model."""

    technique: str
    task: str
    model: str
    seed: int
    frame: pd.DataFrame


def read_runs(paths: Iterable[str | Path], runs: Iterable[Mapping], techniques=TECHNIQUES):
    """Runs from their files: `runs` says technique, task, model, seed of each path, in order."""
    found = []
    for path, run in zip(paths, runs, strict=True):
        frame = read_tsv(path, known(run["technique"], techniques).columns)
        found.append(Run(run["technique"], run["task"], run["model"], run["seed"], frame))
    return found


def grouped(runs: Iterable[Run]):
    """{(task, model, technique): {seed: frame}}, in order of appearance."""
    groups = {}
    for run in runs:
        seeds = groups.setdefault((run.task, run.model, run.technique), {})
        if run.seed in seeds:
            raise MemlocError(
                f"{run.task}/{run.model}: two {run.technique} tables of seed {run.seed}."
            )
        seeds[run.seed] = run.frame
    return groups


def noise_f1(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over probe seeds of one run's noise probes of theta_M2: f1 and f1_random by layer."""
    chosen = table["kind"].eq("noise") & table["examples"].eq("all")
    chosen &= table["source"].eq(MEMORISED)
    return table[chosen].groupby("layer")[["f1", "f1_random"]].mean()


def summarise_probes(groups):
    """Frame probe_f1 of the groups' probing runs: layers 0..L, mean and sd over model seeds."""
    frames = []
    for (task, model, name), seeds in groups.items():
        if name != "probing":
            continue
        layers = pd.concat([noise_f1(frame) for frame in seeds.values()]).groupby("layer")
        mean = layers.mean().assign(sd=layers["f1"].std(), n_seeds=layers.size())
        frames.append(mean.reset_index().assign(task=task, model=model))
    found = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return found.reindex(columns=COLUMNS["probe_f1"])


LABEL_PROBES = (("perturbed", "noisy"), ("original", "noisy"), ("original", "clean"))  # Figure 14


def summarise_label_probes(groups):
    """Frame label_f1: F1 of probes for perturbed and for original labels, by layer 0..L.

    Mean and sd over model seeds of the mean over probe seeds, of theta_M2.
    """
    frames = []
    for (task, model, name), seeds in groups.items():
        for labels, examples in LABEL_PROBES if name == "probing" else ():
            found = pd.concat([f1_by_layer(frame, labels, examples) for frame in seeds.values()])
            layers = found.groupby(level="layer")
            mean = pd.DataFrame({"f1": layers.mean(), "sd": layers.std(), "n_seeds": layers.size()})
            facts = dict(task=task, model=model, labels=labels, examples=examples)
            frames.append(mean.reset_index().assign(**facts))
    found = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return found.reindex(columns=COLUMNS["label_f1"])


def summarise_runs(runs: Iterable[Run], techniques=TECHNIQUES):
    """Frames layer_weights, mcog, one_layer (of windows), probe_f1 and label_f1 of all runs."""
    groups = grouped(runs)
    rows = {"layer_weights": [], "mcog": [], "one_layer": []}
    for (task, model, name), seeds in groups.items():
        key = {"task": task, "model": model, "technique": name}
        what = f"{task}/{model}, {name}"
        weights = {seed: techniques[name].weights(frame) for seed, frame in seeds.items()}
        rows["layer_weights"].append(mean_weights(weights, what).assign(**key))
        rows["mcog"].append(key | mean_mcog(weights, what))
        if techniques[name].windows:
            rows["one_layer"].append(key | one_layer_maximum(list(seeds.values())))
    weights = rows["layer_weights"]
    frames = {
        "layer_weights": pd.concat(weights, ignore_index=True) if weights else pd.DataFrame(),
        "mcog": pd.DataFrame(rows["mcog"]),
        "one_layer": pd.DataFrame(rows["one_layer"]),
        "probe_f1": summarise_probes(groups),
        "label_f1": summarise_label_probes(groups),
    }
    return {name: frame.reindex(columns=COLUMNS[name]) for name, frame in frames.items()}


def training_row(history, record, run):
    """Outcome of one training run: its last epoch and, from its record, what was trained on.

    `record` is the checkpoint's provenance; without an epoch above the threshold (theta_M1,
    section 3) memorised_epoch is "none"; where none was looked for (theta_O), nan.
    """
    last = history.sort_values("epoch").iloc[-1]
    outcome = {name: last[name] for name in COLUMNS["training"] if name in history}
    reached = record.get("memorised_epoch", math.nan)
    return (
        {name: run[name] for name in ("task", "model", "seed", "labels")}
        | outcome
        | {
            "n_train": record["n_train"],
            "n_noisy": record["n_noisy"],
            "epochs": int(last["epoch"]),
            "memorised_epoch": "none" if reached is None else reached,
            "seconds": history["seconds"].sum(),
        }
    )


def summarise_training(histories, records, runs):
    """Frame training: a row per run; all three arguments have one entry per run, in order."""
    rows = [training_row(*entry) for entry in zip(histories, records, runs, strict=True)]
    frame = pd.DataFrame(rows, columns=COLUMNS["training"])
    # whole numbers stay whole beside the words and the missing ones
    reached = [row["memorised_epoch"] for row in rows]
    return frame.assign(memorised_epoch=pd.Series(reached, dtype=object))


def read_histories(paths, runs):
    """The runs' history tables as one frame with columns task, model, seed and labels."""
    names = ("task", "model", "seed", "labels")
    frames = [
        read_tsv(path, TABLES["history"]).assign(**{name: run[name] for name in names})
        for path, run in zip(paths, runs, strict=True)
    ]
    return pd.concat(frames, ignore_index=True)


def write_training(histories, records, runs, output):
    """Write summary/training.tsv from the runs' history tables and provenance records."""
    tables = [read_tsv(path, TABLES["history"]) for path in histories]
    facts = [read_json(path) for path in records]
    write_tsv(summarise_training(tables, facts, runs), output, COLUMNS["training"])


def summarise(paths, runs, outputs: Mapping[str, str], techniques=TECHNIQUES, options=None):
    """Read the runs' tables and write those of `outputs` (frames of summarise_runs).

    `options` maps a technique to keywords of its weights, such as a post-processing variant.
    """
    techniques = with_options(techniques, options or {})
    frames = summarise_runs(read_runs(paths, runs, techniques), techniques)
    for name, path in outputs.items():
        write_tsv(frames[name], path, COLUMNS[name])
