"""How the order of tasks by depth moves when a choice of the analysis is made otherwise.

Nothing is trained or read from models: every variant is computed from the tables of the runs. A
depth is a task's M-CoG under a technique, or the layer of an event; an event that never happens
counts as layer L + 1.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from memloc.explain.centroid_events import NONE, crossing
from memloc.explain.centroids import COLUMNS as CENTROID_COLUMNS
from memloc.explain.centroids import is_pooled
from memloc.explain.events import SOURCES, averaged
from memloc.explain.probing_events import (
    MARGIN,
    PROBING_INITIATION,
    PROBING_MEMORISATION,
    REACHED,
    probing_events,
)
from memloc.localise.weights import centre_of_gravity, layer_weights, mean_mcog, window_matrix
from memloc.store.tables import read_tsv, write_tsv
from memloc.study.techniques import TECHNIQUES, Technique, with_options
from memloc.summary.runs import Groups, Seeds, grouped, read_runs, tables_of
from memloc.summary.training import COLUMNS as TRAINING

COLUMNS = [
    "quantity", "model", "choice", "variant", "n_tasks", "rho", "moved", "mean_change",
    "largest_change",
]  # fmt: skip
NORMALISATION, ERRORS, SEEDS = "normalisation", "errors", "seeds"
MARGINS, SHARES, PLACES = (0.05, 0.15, 0.20), (0.80, 0.95), (0.4, 0.6)
CROSSING = "crossing"
Depths = dict[str, float]  # of one model: by task
Key = tuple[str, str, str, str]  # quantity, model, choice, variant; choice "" is the default


def sensitivity(
    groups: Groups,
    centroids: Iterable[tuple[Mapping[str, Any], pd.DataFrame]] = (),
    techniques: Mapping[str, Technique] = TECHNIQUES,
) -> pd.DataFrame:
    """Frame of COLUMNS: a row per quantity, model and variant that some task has a depth in.

    groups: the techniques' tables of all runs; centroids: (run, centroids.tsv) of all runs. rho is
    Spearman's between the tasks' depths by default and in the variant (nan below 3 tasks); moved
    counts the tasks whose rank changes; mean_change and largest_change are of depths, in layers,
    the latter without its sign.
    """
    depths: dict[Key, Depths] = {}
    for (task, model, name), seeds in groups.items():
        for choice, variant, value in _centres(techniques[name], seeds):
            depths.setdefault((name, model, choice, variant), {})[task] = value
        if name == "probing":
            for event, choice, variant, value in _probed(seeds):
                depths.setdefault((event, model, choice, variant), {})[task] = value
    for (task, model), tables in _by_pair(centroids).items():
        for choice, variant, value in _crossings(tables):
            depths.setdefault((CROSSING, model, choice, variant), {})[task] = value
    rows = [
        _compared(key, found, depths.get((*key[:2], "", ""), {}))
        for key, found in depths.items()
        if key[2]
    ]
    return pd.DataFrame([row for row in rows if row["n_tasks"]], columns=COLUMNS)


def _compared(key: Key, variant: Depths, default: Depths) -> dict[str, Any]:
    """One row: how the depths of the tasks that have both differ."""
    pairs = np.array([(default[t], variant[t]) for t in variant if t in default]).reshape(-1, 2)
    pairs = pairs[~np.isnan(pairs).any(axis=1)]
    before, after = pairs.T
    change = after - before
    ranks = stats.rankdata(before), stats.rankdata(after)
    varied = len(pairs) > 2 and len(set(before)) > 1 and len(set(after)) > 1
    return dict(zip(COLUMNS[:4], key, strict=True)) | {
        "n_tasks": len(pairs),
        "rho": stats.spearmanr(before, after).statistic if varied else np.nan,
        "moved": int((ranks[0] != ranks[1]).sum()),
        "mean_change": change.mean() if len(pairs) else np.nan,
        "largest_change": np.abs(change).max() if len(pairs) else np.nan,
    }


# --- M-CoG ---------------------------------------------------------------------------------


def _centres(technique: Technique, seeds: Seeds) -> Iterable[tuple[str, str, float]]:
    """(choice, variant, M-CoG) of one task and model; the default's choice is empty."""
    tables = tables_of(seeds)
    weights = {seed: technique.weights(frame) for seed, frame in tables.items()}
    yield "", "", mean_mcog(weights)["mcog"]
    for left_out in weights if len(weights) > 1 else ():
        rest = {seed: frame for seed, frame in weights.items() if seed != left_out}
        yield SEEDS, f"without {left_out}", mean_mcog(rest)["mcog"]
    if technique.windows:
        yield NORMALISATION, "raw errors", _centre(tables, lambda t: t["noisy_error"])
        yield ERRORS, "noisy minus clean", _centre(tables, _beyond_clean)


def _beyond_clean(table: pd.DataFrame) -> pd.Series:
    return (table["noisy_error"] - table["clean_error"]).clip(lower=0)


def _centre(
    tables: Mapping[int, pd.DataFrame], error: Callable[[pd.DataFrame], pd.Series]
) -> float:
    """M-CoG of the mean over seeds of the weights of a windows' error."""
    matrices = [
        window_matrix(table.assign(other=error(table)), "other") for table in tables.values()
    ]
    return centre_of_gravity(np.mean([layer_weights(matrix) for matrix in matrices], axis=0))


# --- Events --------------------------------------------------------------------------------


def _probed(seeds: Seeds) -> Iterable[tuple[str, str, str, float]]:
    """(event, choice, variant, mean layer over seeds) of both probing events."""
    variants: list[tuple[str, str, str, dict[str, float]]] = [
        *((event, "", "", {}) for event in (PROBING_MEMORISATION, PROBING_INITIATION)),
        *((PROBING_MEMORISATION, f"F1 margin, else {MARGIN:g}", f"{m:g}", {"margin": m})
          for m in MARGINS),
        *((PROBING_INITIATION, f"share of the best F1, else {REACHED:g}", f"{s:g}", {"reached": s})
          for s in SHARES),
    ]  # fmt: skip
    for event, choice, variant, cut in variants:
        layers = [probing_events(run.frame, **cut)[event] for run in seeds.values()]
        depths = [run.frame["layer"].max() for run in seeds.values()]
        yield event, choice, variant, _mean(layers, depths)


def _crossings(tables: list[pd.DataFrame]) -> Iterable[tuple[str, str, float]]:
    """(choice, variant, mean layer over runs) of the crossing in theta_M2, all pairs pooled."""
    curves = [
        table[table["source"].eq(SOURCES[0]) & is_pooled(table)].sort_values("layer")["noisy_mean"]
        for table in tables
    ]
    depths = [len(means) for means in curves]
    for choice, place in [("", 0.5), *(("crossing at, else 0.5", place) for place in PLACES)]:
        layers = [
            (crossing(means, place) or NONE) if means.notna().any() else np.nan for means in curves
        ]
        yield choice, f"{place:g}" if choice else "", _mean(layers, depths)


def _mean(layers: list[Any], depths: list[int]) -> float:
    """Mean layer of an event over runs of so many layers each."""
    return averaged(pd.DataFrame({"layer": layers, "n_layers": depths}, dtype=object))["layer"]


def _by_pair(
    centroids: Iterable[tuple[Mapping[str, Any], pd.DataFrame]],
) -> dict[tuple[str, str], list[pd.DataFrame]]:
    found: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for run, table in centroids:
        found.setdefault((run["task"], run["model"]), []).append(table)
    return found


def write_sensitivity(
    inputs: Mapping[str, Sequence[str]],
    runs: Sequence[Mapping[str, Any]],
    centroid_runs: Sequence[Mapping[str, Any]],
    options: Mapping[str, Mapping[str, Any]],
    output: str | Path,
) -> None:
    """Write summary/sensitivity.tsv.

    inputs: tables and examples, as `read_runs` takes them, of `runs`; training, with one path;
    centroids, of `centroid_runs`. options: keywords of the techniques' weights.
    """
    techniques = with_options(TECHNIQUES, options)
    training = read_tsv(inputs["training"][0], TRAINING)
    found = grouped(read_runs(inputs["tables"], runs, training, inputs["examples"], techniques))
    tables = [read_tsv(path, CENTROID_COLUMNS) for path in inputs["centroids"]]
    pairs = zip(centroid_runs, tables, strict=True)
    write_tsv(sensitivity(found, pairs, techniques), output, COLUMNS)
