"""Events over seeds: the layers at which noisy examples turn and classes come apart (section 5).

One rule holds wherever events are ordered or averaged. A run's event is that of the examples of all
ordered pairs of classes pooled, as in the authors' code, so that pairs count by their noisy
examples. Runs are averaged, and an event that never happens counts as layer L + 1. The mean over
pairs, which count alike, stands beside; it leaves out pairs with too few examples, and says so.
Imports no torch.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from memloc.explain.centroid_events import COLUMNS as EVENT_COLUMNS
from memloc.explain.centroid_events import EVENTS, LEAST, NONE, ranked
from memloc.explain.centroids import COLUMNS as CENTROID_COLUMNS
from memloc.explain.centroids import is_pooled
from memloc.explain.probing_events import PROBING_EVENTS, probing_rows
from memloc.localise.probes.weights import COLUMNS as PROBE_COLUMNS
from memloc.store.tables import read_tsv, write_tsv

COLUMNS = [
    "task", "model", "source", "event", "layer", "sd", "n", "n_none", "n_undefined", "n_noisy",
    "pair_mean", "pair_sd", "n_pairs", "n_pairs_none", "n_pairs_few", "few_share", "reason",
]  # fmt: skip
SOURCES = ("trained", "bottom", "top")
ALL_EVENTS = (*EVENTS, *PROBING_EVENTS)

MEANS = [
    "clean_a_mean", "clean_a_low", "clean_a_high", "clean_b_mean", "clean_b_low", "clean_b_high",
    "noisy_mean", "noisy_low", "noisy_high",
]  # fmt: skip
CURVE_COLUMNS = [
    "task", "model", "source", "layer", *MEANS, "sd", "n_noisy", "pair_mean", "n_pairs", "n_seeds",
]  # fmt: skip


def run_events(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of a centroid_events.tsv of one run: from one, or from its probes.tsv."""
    return frame if "event" in frame else probing_rows(frame)


def averaged(rows: pd.DataFrame) -> dict[str, Any]:
    """Mean and sd of the layers of rows of centroid_events.tsv, and what they count.

    layer and sd: an event that never happens counts as L + 1; nan if it can be told in no row.
    n, n_none and n_undefined: in how many it happens, never does, and can't be told.
    """
    layers = pd.Series(ranked(rows["layer"], rows["n_layers"]))
    n_none, told = int(rows["layer"].eq(NONE).sum()), int(layers.count())
    counts = {"n": told - n_none, "n_none": n_none, "n_undefined": len(rows) - told}
    return {"layer": layers.mean(), "sd": layers.std(), **counts}


def over_pairs(pairs: pd.DataFrame) -> dict[str, Any]:
    """The mean over pairs of classes and seeds that have enough examples, and what was left out.

    n_pairs and n_pairs_none: pairs that count, and those of them in which the event never happens;
    n_pairs_few: pairs left out; few_share: of all pairs' noisy examples, how many these hold.
    """
    few = pairs["reason"].ne("")
    found, noisy = averaged(pairs[~few]), pairs["n_noisy"].sum()
    return {
        "pair_mean": found["layer"],
        "pair_sd": found["sd"],
        "n_pairs": found["n"] + found["n_none"],
        "n_pairs_none": found["n_none"],
        "n_pairs_few": int(few.sum()),
        "few_share": pairs.loc[few, "n_noisy"].sum() / noisy if noisy else np.nan,
    }


def event_row(part: pd.DataFrame) -> dict[str, Any]:
    """A row of COLUMNS, but for its keys, from an event's rows of all runs of a task and model."""
    pooled, pairs = part[is_pooled(part)], part[~is_pooled(part)]
    found = averaged(pooled) | {"n_noisy": pooled["n_noisy"].min()} | over_pairs(pairs)
    reasons = list(dict.fromkeys(pooled["reason"]))
    if found["n_pairs_few"]:
        of = f"{found['n_pairs_few']} of {len(pairs)} pairs (of classes, in each run)"
        reasons.append(f"{of} have too few examples (fewer than {LEAST})")
    return found | {"reason": "; ".join(filter(None, reasons))}


def summarise_events(runs: Iterable[tuple[Mapping, pd.DataFrame]]) -> pd.DataFrame:
    """Frame of COLUMNS from (task and model, frame of `run_events`) of every run.

    layer, sd, n, n_none, n_undefined: `averaged` over runs, of all pairs' examples pooled; n_noisy
    is the fewest that a run has. The rest is `over_pairs`. reason: why the event can't be told or
    rests on few examples, and how many pairs were left out; else empty.
    """
    frames = [frame.assign(task=run["task"], model=run["model"]) for run, frame in runs]
    if not frames:
        return pd.DataFrame(columns=COLUMNS)
    keys = ["task", "model", "source", "event"]
    groups = pd.concat(frames, ignore_index=True).groupby(keys, sort=False)
    rows = [dict(zip(keys, key, strict=True)) | event_row(part) for key, part in groups]
    found = pd.DataFrame(rows, columns=COLUMNS)
    pairs = dict.fromkeys(zip(found["task"], found["model"], strict=True))
    place = {pair: number for number, pair in enumerate(pairs)}
    order = {name: number for number, name in enumerate((*SOURCES, *ALL_EVENTS))}
    places = [
        (place[row.task, row.model], order[row.source], order[row.event])
        for row in found.itertuples()
    ]
    return found.iloc[sorted(range(len(found)), key=places.__getitem__)].reset_index(drop=True)


def summarise_curves(runs: Iterable[tuple[Mapping, pd.DataFrame]]) -> pd.DataFrame:
    """Frame of CURVE_COLUMNS: the pooled rows of every run's centroids.tsv, averaged over seeds.

    sd is that of noisy_mean over seeds, n_noisy the fewest noisy examples pooled at a layer.
    pair_mean is noisy_mean averaged over the n_pairs pairs of classes, of all seeds, that have at
    least LEAST noisy examples and a place for them.
    """
    frames = [
        frame.assign(task=run["task"], model=run["model"], seed=run["seed"]) for run, frame in runs
    ]
    if not frames:
        return pd.DataFrame(columns=CURVE_COLUMNS)
    table, keys = pd.concat(frames, ignore_index=True), ["task", "model", "source", "layer"]
    groups = table[is_pooled(table)].groupby(keys, sort=False)
    found = groups[MEANS].mean()
    found["sd"], found["n_noisy"] = groups["noisy_mean"].std(), groups["n_noisy"].min()
    found["n_seeds"] = groups["seed"].nunique()
    pairs = table[~is_pooled(table) & table["n_noisy"].ge(LEAST)].groupby(keys)["noisy_mean"]
    found = found.join(pairs.agg(pair_mean="mean", n_pairs="count"))
    found["n_pairs"] = found["n_pairs"].fillna(0).astype(int)
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
