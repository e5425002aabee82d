"""Per-run tables of techniques gathered into the study's layer weights and what follows from them.

Each technique of `memloc.study.techniques` says which table of a run it reads and how that becomes
layer weights: windows go through their matrix, other techniques give a weight per layer themselves.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.localise.probes.weights import THETA_M2, f1_by_layer
from memloc.localise.weights import mean_weights, one_layer_maximum
from memloc.store.tables import read_tsv, write_tsv
from memloc.study.techniques import TECHNIQUES, Technique, with_options
from memloc.summary import centres
from memloc.summary.runs import Groups, Run, grouped, read_runs, tables_of
from memloc.summary.training import COLUMNS as TRAINING

COLUMNS = {
    "layer_weights": [
        "task", "model", "technique", "layer", "weight", "sd", "weight_raw", "sd_raw", "n_seeds",
    ],
    "mcog": centres.COLUMNS,
    "one_layer": ["task", "model", "technique", "layer", "error", "sd", "error_raw", "n_seeds"],
    "probe_f1": ["task", "model", "layer", "f1", "sd", "f1_random", "n_seeds"],
    "label_f1": ["task", "model", "labels", "examples", "layer", "f1", "sd", "n_seeds"],
}  # fmt: skip
LABEL_PROBES = (("perturbed", "noisy"), ("original", "noisy"), ("original", "clean"))  # Figure 14


def noise_f1(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over probe seeds of one run's noise probes of theta_M2: f1 and f1_random by layer."""
    chosen = table["kind"].eq("noise") & table["examples"].eq("all")
    chosen &= table["source"].eq(THETA_M2)
    return table[chosen].groupby("layer")[["f1", "f1_random"]].mean()


def noise_probe_f1(groups: Groups) -> pd.DataFrame:
    """Frame probe_f1 of the groups' probing runs: layers 0..L, mean and sd over model seeds."""
    frames = []
    for (task, model, name), seeds in groups.items():
        if name != "probing":
            continue
        layers = pd.concat([noise_f1(run.frame) for run in seeds.values()]).groupby("layer")
        mean = layers.mean().assign(sd=layers["f1"].std(), n_seeds=layers.size())
        frames.append(mean.reset_index().assign(task=task, model=model))
    found = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return found.reindex(columns=COLUMNS["probe_f1"])


def label_probe_f1(groups: Groups) -> pd.DataFrame:
    """Frame label_f1: F1 of probes for perturbed and for original labels, by layer 0..L.

    Mean and sd over model seeds of the mean over probe seeds, of theta_M2.
    """
    frames = []
    for (task, model, name), seeds in groups.items():
        for labels, examples in LABEL_PROBES if name == "probing" else ():
            of_seeds = [f1_by_layer(run.frame, labels, examples) for run in seeds.values()]
            found = pd.concat(of_seeds)
            layers = found.groupby(level="layer")
            mean = pd.DataFrame({"f1": layers.mean(), "sd": layers.std(), "n_seeds": layers.size()})
            facts = dict(task=task, model=model, labels=labels, examples=examples)
            frames.append(mean.reset_index().assign(**facts))
    found = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return found.reindex(columns=COLUMNS["label_f1"])


def summarise_runs(
    runs: Iterable[Run], techniques: Mapping[str, Technique] = TECHNIQUES
) -> dict[str, pd.DataFrame]:
    """Frames layer_weights, mcog, one_layer (of windows), probe_f1 and label_f1 of all runs."""
    groups = grouped(runs)
    n_tasks = len({task for task, *_ in groups})
    by_layer: list[pd.DataFrame] = []
    rows: dict[str, list] = {"mcog": [], "one_layer": []}
    for (task, model, name), seeds in groups.items():
        key = {"task": task, "model": model, "technique": name}
        what = f"{task}/{model}, {name}"
        technique, tables = techniques[name], tables_of(seeds)
        weights = {seed: technique.weights(frame) for seed, frame in tables.items()}
        by_layer.append(mean_weights(weights, what).assign(**key))
        rows["mcog"].append(key | centres.centre_row(technique, seeds, weights, n_tasks, what))
        if technique.windows:
            rows["one_layer"].append(key | one_layer_maximum(list(tables.values())))
    frames = {
        "layer_weights": pd.concat(by_layer, ignore_index=True) if by_layer else pd.DataFrame(),
        "mcog": pd.DataFrame(rows["mcog"]),
        "one_layer": pd.DataFrame(rows["one_layer"]),
        "probe_f1": noise_probe_f1(groups),
        "label_f1": label_probe_f1(groups),
    }
    return {name: frame.reindex(columns=COLUMNS[name]) for name, frame in frames.items()}


def summarise_weights(
    paths: Iterable[str | Path],
    runs: Iterable[Mapping[str, Any]],
    outputs: Mapping[str, str],
    training: str | Path,
    examples: Iterable[str | Path] = (),
    techniques: Mapping[str, Technique] = TECHNIQUES,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Read the runs' tables (see `read_runs`) and write those of `outputs` (summarise_runs).

    `options` maps a technique to keywords of its weights, such as a post-processing variant.
    """
    techniques = with_options(techniques, options or {})
    found = read_runs(paths, runs, read_tsv(training, TRAINING), examples, techniques)
    frames = summarise_runs(found, techniques)
    for name, path in outputs.items():
        write_tsv(frames[name], path, COLUMNS[name])
