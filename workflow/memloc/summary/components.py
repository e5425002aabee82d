"""Layer weights of swapped attention and feed-forward blocks, over seeds, beside whole layers'."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.localise.weights import mean_mcog, mean_weights, whole_window, window_weights
from memloc.store.tables import COLUMNS as TABLES
from memloc.store.tables import read_tsv, write_tsv

COLUMNS = {
    "components": [
        "task", "model", "component", "layer", "weight", "sd", "weight_raw", "sd_raw", "n_seeds",
    ],
    "component_mcog": [
        "task", "model", "component", "mcog", "sd", "n_seeds", "n_zero", "error_all", "clean_error",
    ],
}  # fmt: skip


def summarise_components(
    paths: Iterable[str | Path], runs: Iterable[Mapping[str, Any]], outputs: Mapping[str, str]
) -> None:
    """Write both tables from the runs' window tables; `runs` says task, model, seed, component.

    error_all: mean over seeds of the noisy error when the component is swapped in all layers, not
    normalised; clean_error: mean over seeds and windows.
    """
    groups: dict[tuple, dict[int, pd.DataFrame]] = {}
    for path, run in zip(paths, runs, strict=True):
        key = run["task"], run["model"], run["component"]
        groups.setdefault(key, {})[run["seed"]] = read_tsv(path, TABLES["windows"])
    weights, centres = [], []
    for key, tables in groups.items():
        named = dict(zip(("task", "model", "component"), key, strict=True))
        what = "/".join(key)
        by_seed = {seed: window_weights(table) for seed, table in tables.items()}
        weights.append(mean_weights(by_seed, what).assign(**named))
        whole = [whole_window(table) for table in tables.values()]
        errors = {
            "error_all": sum(row["noisy_error"] for row in whole) / len(whole),
            "clean_error": sum(t["clean_error"].mean() for t in tables.values()) / len(tables),
        }
        centres.append(named | mean_mcog(by_seed, what) | errors)
    made = {"components": pd.concat(weights), "component_mcog": pd.DataFrame(centres)}
    for name, path in outputs.items():
        write_tsv(made[name], path, COLUMNS[name])
