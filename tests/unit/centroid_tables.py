"""Synthetic tables of the centroid analysis of a whole study."""

from functools import cache

import numpy as np
import pandas as pd

from memloc.explain.centroid_events import centroid_events
from memloc.explain.centroids import COLUMNS, POOLED
from memloc.explain.events import run_events, summarise_curves, summarise_events
from memloc.store.tables import write_tsv
from synthetic import MODELS, TASKS


def centroids(number=0, seed=1, n_layers=12, classes=("a", "b", "c")):
    """A centroids.tsv: noisy examples of later tasks move later; one pair has none.

    Pairs that have some have as many, so that all pooled lie at the mean of pairs.
    """
    rng = np.random.default_rng([number, seed])
    rows = []
    for source in ("trained", "bottom", "top"):
        for a, b in [(a, b) for a in classes for b in classes if a != b]:
            moves = 3 + 0.6 * number + rng.normal(0, 0.6)
            for layer in range(1, n_layers + 1):
                place = 1 / (1 + np.exp(layer - moves))
                place = {"trained": place, "bottom": 0.8 + 0.2 * place, "top": max(place, 0.3)}
                spread = 0.9 * 0.8**layer
                mean = place[source] if (a, b) != ("c", "a") else np.nan
                rows.append(
                    dict(
                        source=source, class_a=a, class_b=b, layer=layer, noisy_mean=mean,
                        noisy_low=mean - spread, noisy_high=mean + spread, clean_a_mean=0.0,
                        clean_a_low=-spread, clean_a_high=spread, clean_b_mean=1.0,
                        clean_b_low=1 - spread, clean_b_high=1 + spread, distance=1.0,
                        n_clean_a=50, n_clean_b=50, n_noisy=0 if np.isnan(mean) else 9,
                    )
                )  # fmt: skip
    table = pd.DataFrame(rows)
    groups = table.groupby(["source", "layer"], sort=False)
    numbers = table.columns.difference(["source", "class_a", "class_b", "layer"])
    counts = [name for name in numbers if name.startswith("n_")]
    pooled = groups[list(numbers)].mean().assign(distance=np.nan, **groups[counts].sum())
    pooled = pooled.reset_index().assign(class_a=POOLED, class_b=POOLED)
    return pd.concat([table, pooled], ignore_index=True)[COLUMNS]


def unknown_noise():
    """A centroids.tsv whose noisy examples have unknown true labels: none lies between classes."""
    table = centroids()
    table[["noisy_mean", "noisy_low", "noisy_high"]], table["n_noisy"] = np.nan, 0
    return table


def probing(number):
    """Events of probes of one run."""
    names = ["probing-memorisation", "probing-initiation"]
    layers = pd.Series([3 + number * 0.6 // 1, "none" if number % 3 == 0 else 4], dtype=object)
    frame = pd.DataFrame({"event": names, "layer": layers, "n_layers": 12, "n_noisy": 40})
    return frame.assign(source="trained", class_a=POOLED, class_b=POOLED, reason="")


@cache
def whole_study():
    """Events and curves of a study, and the runs' tables by (task, model): made once."""
    runs, curves, tables = [], [], {}
    for number, task in enumerate(TASKS):
        for shift, model in enumerate(MODELS):
            for seed in (1, 2):
                run = {"task": task, "model": model, "seed": seed}
                table = centroids(number, seed + 10 * shift)
                tables.setdefault((task, model), []).append(table)
                curves.append((run, table))
                runs += [(run, run_events(centroid_events(table))), (run, probing(number))]
    return summarise_events(runs), summarise_curves(curves), tables


def study(folder):
    """Tables below a folder, {name: path}, and the runs' centroids.tsv by (task, model)."""
    events, curves, tables = whole_study()
    paths = {}
    for (task, model), of_seeds in tables.items():
        paths[task, model] = [folder / f"{task}_{model}_{n}.tsv" for n, _ in enumerate(of_seeds, 1)]
        for path, table in zip(paths[task, model], of_seeds, strict=True):
            write_tsv(table, path)
    summaries = {"events": folder / "events.tsv", "centroids": folder / "centroids.tsv"}
    write_tsv(events, summaries["events"])
    write_tsv(curves, summaries["centroids"])
    return summaries, paths


def of_one_run(table, folder):
    """Summary tables of a study of a single run: {name: path}, and its events and curves."""
    run = {"task": "trec", "model": "opt", "seed": 1}
    curves = summarise_curves([(run, table)])
    events = summarise_events([(run, run_events(centroid_events(table)))])
    paths = {"events": folder / "events.tsv", "centroids": folder / "centroids.tsv"}
    write_tsv(events, paths["events"])
    write_tsv(curves, paths["centroids"])
    return paths, events, curves
