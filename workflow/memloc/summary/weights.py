"""Per-run tables of techniques gathered into the study's layer weights and what follows from them.

Each technique of `memloc.study.techniques` says which table of a run it reads and how that becomes
layer weights: windows go through their matrix, other techniques give a weight per layer themselves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.errors import MemlocError
from memloc.localise.probes.weights import THETA_M2, f1_by_layer
from memloc.localise.weights import mean_mcog, mean_weights, one_layer_maximum
from memloc.store.tables import read_tsv, write_tsv
from memloc.study.techniques import TECHNIQUES, Technique, known, with_options

COLUMNS = {
    "layer_weights": [
        "task", "model", "technique", "layer", "weight", "sd", "weight_raw", "sd_raw", "n_seeds",
    ],
    "mcog": ["task", "model", "technique", "mcog", "sd", "n_seeds", "n_zero"],
    "one_layer": ["task", "model", "technique", "layer", "error", "sd", "error_raw", "n_seeds"],
    "probe_f1": ["task", "model", "layer", "f1", "sd", "f1_random", "n_seeds"],
    "label_f1": ["task", "model", "labels", "examples", "layer", "f1", "sd", "n_seeds"],
}  # fmt: skip
LABEL_PROBES = (("perturbed", "noisy"), ("original", "noisy"), ("original", "clean"))  # Figure 14
Groups = dict[tuple[str, str, str], dict[int, pd.DataFrame]]  # by task, model, technique; by seed


@dataclass(frozen=True)
class Run:
    """One seed's table of one technique for one task and model."""

    technique: str
    task: str
    model: str
    seed: int
    frame: pd.DataFrame


def read_runs(
    paths: Iterable[str | Path],
    runs: Iterable[Mapping[str, Any]],
    techniques: Mapping[str, Technique] = TECHNIQUES,
) -> list[Run]:
    """Runs from their files: `runs` says technique, task, model, seed of each path, in order."""
    found = []
    for path, run in zip(paths, runs, strict=True):
        frame = read_tsv(path, known(run["technique"], techniques).columns)
        found.append(Run(run["technique"], run["task"], run["model"], run["seed"], frame))
    return found


def grouped(runs: Iterable[Run]) -> Groups:
    """Runs by what they are of, in order of appearance; MemlocError for two of one seed."""
    groups: Groups = {}
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
    chosen &= table["source"].eq(THETA_M2)
    return table[chosen].groupby("layer")[["f1", "f1_random"]].mean()


def noise_probe_f1(groups: Groups) -> pd.DataFrame:
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


def label_probe_f1(groups: Groups) -> pd.DataFrame:
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


def summarise_runs(
    runs: Iterable[Run], techniques: Mapping[str, Technique] = TECHNIQUES
) -> dict[str, pd.DataFrame]:
    """Frames layer_weights, mcog, one_layer (of windows), probe_f1 and label_f1 of all runs."""
    groups = grouped(runs)
    by_layer: list[pd.DataFrame] = []
    rows: dict[str, list] = {"mcog": [], "one_layer": []}
    for (task, model, name), seeds in groups.items():
        key = {"task": task, "model": model, "technique": name}
        what = f"{task}/{model}, {name}"
        weights = {seed: techniques[name].weights(frame) for seed, frame in seeds.items()}
        by_layer.append(mean_weights(weights, what).assign(**key))
        rows["mcog"].append(key | mean_mcog(weights, what))
        if techniques[name].windows:
            rows["one_layer"].append(key | one_layer_maximum(list(seeds.values())))
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
    techniques: Mapping[str, Technique] = TECHNIQUES,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Read the runs' tables and write those of `outputs` (frames of summarise_runs).

    `options` maps a technique to keywords of its weights, such as a post-processing variant.
    """
    techniques = with_options(techniques, options or {})
    frames = summarise_runs(read_runs(paths, runs, techniques), techniques)
    for name, path in outputs.items():
        write_tsv(frames[name], path, COLUMNS[name])
