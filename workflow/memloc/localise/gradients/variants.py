"""From gradient norms to layer weights: the eight post-processing variants (Table 4).

Imports no torch, so that summaries over runs stay light.
"""

import itertools
import logging

import numpy as np
import pandas as pd

from memloc.errors import MemlocError

logger = logging.getLogger(__name__)

NORMS = ("L1", "L2")
# What the mean gradient is taken over, and where: gradient_norms.tsv.
NOISY, CLEAN, DIFFERENCE = "noisy", "clean", "difference"
THETA_M1, THETA_F = "theta_M1", "theta_F"
NORM_COLUMNS = ["model", "examples", "norm", "layer", "value"]
# Best of Table 4 averaged over its models: .54 against .48 (clean), .46 (none), .44 (frozen).
DEFAULT = "L1-clean-frozen"
COLUMNS = [
    "norm", "clean", "frozen", "layer", "weight", "weight_raw", "n_noisy", "n_clean",
]  # fmt: skip


def variant_name(norm: str, clean: bool, frozen: bool) -> str:
    """How a variant is called in config and tables, e.g. "L1-clean-frozen", "L2"."""
    return "-".join([norm, *["clean"] * clean, *["frozen"] * frozen])


VARIANTS = {
    variant_name(norm, clean, frozen): (norm, clean, frozen)
    for norm, clean, frozen in itertools.product(NORMS, (False, True), (False, True))
}


def norms_of(norms: pd.DataFrame, model: str, examples: str, norm: str) -> pd.Series:
    """One series of NORM_COLUMNS: values by layer, 1..L."""
    chosen = (norms["model"] == model) & (norms["examples"] == examples) & (norms["norm"] == norm)
    return norms[chosen].set_index("layer")["value"].sort_index()


def variant_table(norms: pd.DataFrame) -> pd.DataFrame:
    """All variants from the norms of theta_M1 and theta_F: frame norm, clean, frozen, layer,
    weight, weight_raw.

    `norms` has NORM_COLUMNS; examples is what the mean gradient is of: noisy, clean, or their
    difference. weight_raw is the norm, or its ratio to theta_F's; weight is scaled so that
    layers sum to 1, and nan for all layers where that is undefined (a norm of 0 to divide by).
    """
    tables = []
    for name, (norm, clean, divided) in VARIANTS.items():
        examples = DIFFERENCE if clean else NOISY
        values = norms_of(norms, THETA_M1, examples, norm)
        raw = values.to_numpy(float)
        if divided:
            raw = _ratio(raw, norms_of(norms, THETA_F, examples, norm).to_numpy(float), name)
        table = pd.DataFrame({"layer": values.index.to_numpy(int), "weight_raw": raw})
        table["weight"] = _scaled(raw, name)
        tables.append(table.assign(norm=norm, clean=clean, frozen=divided))
    columns = ["norm", "clean", "frozen", "layer", "weight", "weight_raw"]
    return pd.concat(tables, ignore_index=True)[columns]


def _ratio(values: np.ndarray, frozen: np.ndarray, name: str) -> np.ndarray:
    zero = frozen == 0
    if zero.any():
        layers = ", ".join(str(layer) for layer in np.flatnonzero(zero) + 1)
        logger.warning("%s: theta_F has no gradient at layer(s) %s: undefined", name, layers)
    return np.divide(values, frozen, out=np.full_like(values, np.nan), where=~zero)


def _scaled(raw: np.ndarray, name: str) -> np.ndarray:
    total = raw.sum()
    if not total > 0:  # 0 or nan
        logger.warning("%s: the layers' norms sum to %s, so no weights are defined", name, total)
        return np.full_like(raw, np.nan)
    return raw / total


def gradient_weights(table: pd.DataFrame, variant: str = DEFAULT) -> pd.DataFrame:
    """Layer weights of one variant of a gradients.tsv: frame layer, weight, weight_raw."""
    if variant not in VARIANTS:
        raise MemlocError(f"gradients.variant {variant!r}: choose one of {', '.join(VARIANTS)}")
    norm, clean, frozen = VARIANTS[variant]
    chosen = (table["norm"] == norm) & (table["clean"] == clean) & (table["frozen"] == frozen)
    return table.loc[chosen, ["layer", "weight", "weight_raw"]].reset_index(drop=True)
