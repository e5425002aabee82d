"""From window errors to matrices, layer weights and the memorisation centre of gravity.

A swapping or retraining table has one row per window of consecutive layers. Its matrix has row x
(window length) and column y (layer): the mean error over all windows of length x that include
layer y (Figure 3). A layer's weight is its column's mean (section 4.1, Figure 5), and M-CoG is the
mean layer under those weights (Figures 6 and 7). Layers are numbered 1..L; row and column 0 of an
array are window length 1 and layer 1.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from memloc.errors import MemlocError
from memloc.store.tables import COLUMNS as TABLES

log = logging.getLogger(__name__)

COLUMNS = TABLES["windows"]
Seeds = Mapping[int, pd.DataFrame]  # a seed's weights: layer, weight and maybe weight_raw


def layer_count(windows: pd.DataFrame) -> int:
    """Number of layers L of a window table; MemlocError unless each window is there once."""
    if windows.empty:
        raise MemlocError("The window table has no rows: run its stage again.")
    n_layers = int(windows["end"].max())
    found = list(zip(windows["start"].astype(int), windows["end"].astype(int), strict=True))
    wanted = {(s, e) for s in range(1, n_layers + 1) for e in range(s, n_layers + 1)}
    missing, extra = sorted(wanted - set(found)), sorted(set(found) - wanted)
    if missing or extra or len(found) != len(wanted):
        first = (
            f"window {missing[0][0]}-{missing[0][1]} is missing"
            if missing
            else f"window {extra[0][0]}-{extra[0][1]} is out of range"
            if extra
            else "a window is there twice"
        )
        raise MemlocError(
            f"The window table of {n_layers} layers needs each of its {len(wanted)} windows once: "
            f"{first} ({len(found)} rows). Make the table again with all windows."
        )
    return n_layers


def window_matrix(windows: pd.DataFrame, column: str = "noisy_error") -> np.ndarray:
    """Matrix (L, L): [x-1, y-1] is the mean of `column` over windows of length x with layer y.

    `windows` has integer columns start and end (1-based, inclusive) and `column`. A nan error makes
    every cell whose mean it enters nan.
    """
    n_layers = layer_count(windows)
    grid = np.full((n_layers + 1, n_layers + 1), np.nan)  # [length, start]
    starts, ends = windows["start"].to_numpy(int), windows["end"].to_numpy(int)
    grid[ends - starts + 1, starts] = windows[column].to_numpy(float)
    matrix = np.empty((n_layers, n_layers))
    for length in range(1, n_layers + 1):
        for layer in range(1, n_layers + 1):
            first = max(1, layer - length + 1)
            last = min(layer, n_layers - length + 1)
            matrix[length - 1, layer - 1] = grid[length, first : last + 1].mean()
    return matrix


def whole_window(windows: pd.DataFrame) -> pd.Series:
    """The row of the window of all layers."""
    return windows.loc[(windows["end"] - windows["start"]).idxmax()]


def one_layer_errors(windows: pd.DataFrame, column: str = "noisy_error") -> np.ndarray:
    """Errors from modifying each layer alone, (L,): the first row of the matrix."""
    alone = windows[windows["start"] == windows["end"]].sort_values("start")
    return alone[column].to_numpy(float)


def normalise(windows: pd.DataFrame, column: str = "noisy_error") -> pd.Series:
    """Errors scaled so that modifying all layers has error 1.0 (section 3.1): a Series.

    With a_all the accuracy after modifying all layers, 1 - (a - a_all) / (1 - a_all), which is the
    error over the error of that window. Undefined (all nan) when that window's error is 0.
    """
    layer_count(windows)
    scale = float(whole_window(windows)[column])
    if scale == 0:
        return pd.Series(np.nan, index=windows.index, name=f"{column}_normalised")
    return (windows[column].astype(float) / scale).rename(f"{column}_normalised")


def layer_weights(matrix: np.ndarray) -> np.ndarray:
    """Layer weights (L,): the means of the matrix's columns."""
    return np.asarray(matrix, dtype=float).mean(axis=0)


def centre_of_gravity(weights: Iterable[float]) -> float:
    """M-CoG: sum of l * w_l over sum of w_l, l = 1..L. nan when a weight is nan or all are 0."""
    weights = np.asarray(list(weights), dtype=float)
    if (weights < 0).any():
        layer = int(np.argmax(weights < 0)) + 1
        raise MemlocError(
            f"Layer {layer} has weight {weights[layer - 1]:g}; M-CoG needs weights of 0 or more."
        )
    total = weights.sum()
    if not total > 0:  # 0 or nan
        return float("nan")
    return float((np.arange(1, len(weights) + 1) * weights).sum() / total)


def window_weights(windows: pd.DataFrame) -> pd.DataFrame:
    """Layer weights of one seed's window table: frame layer, weight (normalised), weight_raw."""
    scaled = windows.assign(scaled=normalise(windows))
    return pd.DataFrame(
        {
            "layer": np.arange(1, layer_count(windows) + 1),
            "weight": layer_weights(window_matrix(scaled, "scaled")),
            "weight_raw": layer_weights(window_matrix(windows, "noisy_error")),
        }
    )


def _stack(per_seed: Seeds, column: str) -> np.ndarray:
    """Array (seeds, layers) of a column of the seeds' weight frames."""
    tables = [frame.sort_values("layer") for frame in per_seed.values()]
    lengths = {len(frame) for frame in tables}
    if len(lengths) != 1:
        raise MemlocError(
            f"Seeds {list(per_seed)} have different numbers of layers: {sorted(lengths)}."
        )
    for frame in tables:
        if list(frame["layer"]) != list(range(1, len(frame) + 1)):
            raise MemlocError(
                f"Layer weights need layers 1..L once each, got {list(frame['layer'])}."
            )
    return np.array([frame[column].to_numpy(float) for frame in tables])


def _mean_sd(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sample standard deviation (nan for one seed) over the first axis."""
    mean = values.mean(axis=0) if len(values) else np.full(values.shape[1:], np.nan)
    sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], np.nan)
    return mean, sd


def _defined(per_seed: Seeds, what: str) -> np.ndarray:
    """Array (seeds, layers) of the seeds whose weights are defined; says which are left out."""
    weights = _stack(per_seed, "weight")
    kept = ~np.isnan(weights).any(axis=1)
    for seed, keep in zip(per_seed, kept, strict=True):
        if not keep:
            log.warning("%s: seed %s has undefined weights and is left out of the mean", what, seed)
    return weights[kept]


def mean_weights(per_seed: Seeds, what: str = "layer weights") -> pd.DataFrame:
    """Weights over seeds: frame layer, weight, sd, weight_raw, sd_raw, n_seeds.

    `per_seed` maps a seed to its frame (layer, weight and, if it differs, weight_raw). Seeds whose
    normalisation is undefined enter the raw columns alone; n_seeds counts those behind `weight`.
    """
    raw_name = "weight_raw" if all("weight_raw" in f for f in per_seed.values()) else "weight"
    raw, defined = _stack(per_seed, raw_name), _defined(per_seed, what)
    weight, sd = _mean_sd(defined)
    weight_raw, sd_raw = _mean_sd(raw)
    return pd.DataFrame(
        {
            "layer": np.arange(1, raw.shape[1] + 1),
            "weight": weight,
            "sd": sd,
            "weight_raw": weight_raw,
            "sd_raw": sd_raw,
            "n_seeds": len(defined),
        }
    )


def mean_mcog(per_seed: Seeds, what: str = "M-CoG") -> dict[str, float]:
    """M-CoG of the seeds' mean weights and the sd of the seeds' own: mcog, sd, n_seeds, n_zero.

    n_seeds counts the seeds behind the mean weights. Of these, n_zero have weights of 0 alone: they
    enter the mean, without moving its centre, but have no centre of their own for the sd.
    """
    defined = _defined(per_seed, what)
    mean, _ = _mean_sd(defined)
    own = np.array([centre_of_gravity(weights) for weights in defined])
    centred = own[~np.isnan(own)]
    return {
        "mcog": centre_of_gravity(mean),
        "sd": float(centred.std(ddof=1)) if len(centred) > 1 else float("nan"),
        "n_seeds": len(own),
        "n_zero": len(own) - len(centred),
    }


def mean_matrix(
    tables: Sequence[pd.DataFrame], column: str = "noisy_error_normalised"
) -> tuple[np.ndarray, int]:
    """Mean over seeds' window tables of their matrices, (L, L), and how many seeds it rests on.

    Seeds whose column is undefined are left out; without any defined seed the matrix is all nan.
    """
    matrices = [window_matrix(table, column) for table in tables]
    shapes = {m.shape for m in matrices}
    if len(shapes) != 1:
        raise MemlocError(
            f"Window tables of one task and model differ in layers: {sorted(shapes)}."
        )
    kept = [m for m in matrices if not np.isnan(m).any()]
    if not kept:
        return np.full(matrices[0].shape, np.nan), 0
    return np.mean(kept, axis=0), len(kept)


def one_layer_maximum(tables: Sequence[pd.DataFrame]) -> dict[str, float]:
    """Largest error from modifying one layer (Figure 4): dict layer, error, sd, error_raw, n_seeds.

    The maximum over layers is taken after the mean over seeds, so that seed noise doesn't raise it;
    error is normalised, over the seeds where that is defined (nan if none); error_raw is over all;
    sd is over seeds at that layer.
    """
    raw = np.array([one_layer_errors(table) for table in tables])
    scaled = np.array([one_layer_errors(table, "noisy_error_normalised") for table in tables])
    scaled = scaled[~np.isnan(scaled).any(axis=1)]
    mean, sd = _mean_sd(scaled if len(scaled) else raw)
    best = int(np.argmax(mean))
    return {
        "layer": best + 1,
        "error": float(mean[best]) if len(scaled) else float("nan"),
        "sd": float(sd[best]) if len(scaled) else float("nan"),
        "error_raw": float(raw[:, best].mean()),
        "n_seeds": len(scaled),
    }
