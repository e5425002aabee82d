"""Events: the layers at which noisy examples turn and classes come apart, over seeds (section 5).

Per run they come from centroid_events.tsv (a layer for each pair of classes) and from probes.tsv.
Imports no torch.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from memloc.explain.centroids import COLUMNS as CENTROID_COLUMNS
from memloc.explain.centroids import EVENT_COLUMNS, EVENTS, NONE
from memloc.localise.probes.weights import COLUMNS as PROBE_COLUMNS
from memloc.localise.probes.weights import f1_by_layer
from memloc.store.tables import read_tsv, write_tsv

COLUMNS = ["task", "model", "source", "event", "layer", "sd", "n", "n_none", "n_undefined"]
SOURCES = ("trained", "bottom", "top")
PROBING_MEMORISATION, PROBING_INITIATION = "probing-memorisation", "probing-initiation"
ALL_EVENTS = (*EVENTS, PROBING_MEMORISATION, PROBING_INITIATION)
MARGIN = 0.10  # of F1 by which memorisation exceeds generalisation
REACHED = 0.90  # of the way from random guesses to the best layer's F1

MEANS = [
    "clean_a_mean", "clean_a_low", "clean_a_high", "clean_b_mean", "clean_b_low", "clean_b_high",
    "noisy_mean", "noisy_low", "noisy_high",
]  # fmt: skip
CURVE_COLUMNS = ["task", "model", "source", "layer", *MEANS, "sd", "n_pairs", "n_seeds"]


def happened(column: Iterable) -> np.ndarray:
    """A column of layers as numbers: nan where the event never happened, or that can't be told."""
    values = pd.Series(list(column), dtype=object)
    return pd.to_numeric(values.mask(values.eq(NONE))).to_numpy(float)


def event_layers(column: Iterable) -> tuple[pd.Series, int, int]:
    """Layers at which an event happened; how often it never did; how often that can't be told."""
    values = pd.Series(list(column), dtype=object)
    none = values.eq(NONE)
    layers = pd.to_numeric(values.mask(none)).dropna().astype(float)
    return layers, int(none.sum()), int(len(values) - len(layers) - none.sum())


# --- Probing events ------------------------------------------------------------------------


def probing_events(
    table: pd.DataFrame, margin: float = MARGIN, reached: float = REACHED
) -> dict[str, int | float | str]:
    """Both probing events of one run's probes.tsv, from F1 averaged over probe seeds: layer 1..L.

    "none" where an event never happens; nan where there are no probes for original labels to tell
    it by. Initiation is read from the probes for original labels or, where nobody corrected the
    noise, from those for perturbed ones: on clean examples both predict the same label.
    """
    kind = "original" if table["kind"].eq("original").any() else "perturbed"
    gap = _layers(
        f1_by_layer(table, "perturbed", "noisy") - f1_by_layer(table, "original", "noisy")
    )
    clean = _layers(f1_by_layer(table, kind, "clean"))
    random = _layers(_random(table, kind, "clean"))
    scale = clean.max() - random  # of each layer; shuffled labels are the same in all
    scaled = (clean - random) / scale.where(scale > 0)
    return {
        PROBING_MEMORISATION: _first(gap > margin, gap),
        PROBING_INITIATION: _first(scaled > reached, clean),
    }


def _layers(values: pd.Series) -> pd.Series:
    """Without layer 0, the embeddings."""
    return values[values.index >= 1].sort_index()


def _random(table: pd.DataFrame, kind: str, examples: str) -> pd.Series:
    return f1_by_layer(table.assign(f1=table["f1_random"]), kind, examples)


def _first(reached: pd.Series, values: pd.Series) -> int | float | str:
    if values.isna().all():
        return np.nan
    return int(reached.idxmax()) if reached.any() else NONE


# --- Over seeds and pairs ------------------------------------------------------------------


def run_events(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns source, event, layer of one run: a centroid_events.tsv, or a probes.tsv."""
    if "event" in frame:
        return frame[["source", "event", "layer"]]
    found = probing_events(frame)
    return pd.DataFrame(
        {
            "source": SOURCES[0],
            "event": list(found),
            "layer": pd.Series(found.values(), dtype=object),
        }
    )


def summarise_events(runs: Iterable[tuple[Mapping, pd.DataFrame]]) -> pd.DataFrame:
    """Frame of COLUMNS from (task and model, frame of `run_events`) of every run.

    layer and sd: over the seeds and ordered pairs of classes in which the event happened; layer is
    "none" if it happened in none, and nan if that could be told in none. n, n_none and n_undefined
    count in how many it happened, never happened, and couldn't be told.
    """
    frames = [frame.assign(task=run["task"], model=run["model"]) for run, frame in runs]
    if not frames:
        return pd.DataFrame(columns=COLUMNS)
    rows = []
    keys = ["task", "model", "source", "event"]
    for key, part in pd.concat(frames).groupby(keys, sort=False):
        layers, n_none, n_undefined = event_layers(part["layer"])
        mean = layers.mean() if len(layers) else NONE if n_none else np.nan
        counts = {"n": len(layers), "n_none": n_none, "n_undefined": n_undefined}
        rows.append(
            dict(zip(keys, key, strict=True)) | {"layer": mean, "sd": layers.std()} | counts
        )
    found = pd.DataFrame(rows, columns=COLUMNS)
    order = {name: i for i, name in enumerate((*SOURCES, *ALL_EVENTS))}
    groups = {
        key: i
        for i, key in enumerate(dict.fromkeys(zip(found["task"], found["model"], strict=True)))
    }
    place = [
        (groups[row.task, row.model], order[row.source], order[row.event])
        for row in found.itertuples()
    ]
    return found.iloc[sorted(range(len(found)), key=place.__getitem__)].reset_index(drop=True)


def summarise_curves(runs: Iterable[tuple[Mapping, pd.DataFrame]]) -> pd.DataFrame:
    """Frame of CURVE_COLUMNS: centroids.tsv of every run, averaged over seeds and pairs of classes.

    A pair is left out at layers where its centroids coincide, and of the noisy columns where it has
    no noisy examples. n_pairs counts the pairs of all seeds in these; sd is their spread.
    """
    frames = [
        frame.assign(task=run["task"], model=run["model"], seed=run["seed"]) for run, frame in runs
    ]
    if not frames:
        return pd.DataFrame(columns=CURVE_COLUMNS)
    groups = pd.concat(frames).groupby(["task", "model", "source", "layer"], sort=False)
    found = groups[MEANS].mean()
    found["sd"] = groups["noisy_mean"].std()
    found["n_pairs"], found["n_seeds"] = groups["noisy_mean"].count(), groups["seed"].nunique()
    return found.reset_index()[CURVE_COLUMNS]


def write_events(
    centroids: list, centroid_runs: list, probes: list, probe_runs: list, output: str | Path
) -> None:
    """Write summary/events.tsv from the runs' centroid_events.tsv and probes.tsv."""
    runs = [
        (run, run_events(read_tsv(path, columns)))
        for paths, whose, columns in (
            (centroids, centroid_runs, EVENT_COLUMNS),
            (probes, probe_runs, PROBE_COLUMNS),
        )
        for path, run in zip(paths, whose, strict=True)
    ]
    write_tsv(summarise_events(runs), output, COLUMNS)


def write_curves(centroids: list, runs: list, output: str | Path) -> None:
    """Write summary/centroids.tsv from the runs' centroids.tsv."""
    frames = [read_tsv(path, CENTROID_COLUMNS) for path in centroids]
    write_tsv(summarise_curves(zip(runs, frames, strict=True)), output, CURVE_COLUMNS)
