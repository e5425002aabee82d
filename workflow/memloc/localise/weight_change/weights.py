"""Weight-change norm: how far a layer's weights moved, the baseline any technique must beat.

The definition. For all parameters of layer l together, as one vector w(l), the relative distance
||w(l) - r(l)|| / ||r(l)|| (L2) between theta_M2 and a reference: theta_O, the model of the same
seed that never saw the noise, or theta_P, from which both started. A layer's weight is its relative
distance from theta_O, the reference of layer swapping too: that is the difference between a model
that memorised and one that had nothing to memorise. The distance from theta_P also counts what
training moved for the task itself. No example is looked at, so a change that carries memories can't
be told from one that doesn't: a technique that locates memorisation no better isn't worth its cost.

The source. Distances between initial and trained layers as a sign of their part are in Zhang,
Bengio and Singer (2022), Are All Layers Created Equal?, who find that they predict it badly.

Imports no torch, so that summaries over runs stay light.
"""

from typing import Any

import pandas as pd

from memloc.errors import MemlocError

ORIGINAL, PRETRAINED = "theta_O", "theta_P"
COLUMNS = ["reference", "layer", "distance", "norm", "relative_change", "n_parameters"]


def change_row(
    reference: str, layer: int, distance: float, norm: float, size: int
) -> dict[str, Any]:
    """A row with COLUMNS. Raises MemlocError for a reference layer of zeros (norm 0)."""
    if norm == 0:
        raise MemlocError(f"weight change: all weights of layer {layer} of {reference} are 0")
    row = (reference, layer, distance, norm, distance / norm, size)
    return dict(zip(COLUMNS, row, strict=True))


def change_weights(table: pd.DataFrame, reference: str = ORIGINAL) -> pd.DataFrame:
    """Layer weights of a weight_change.tsv: frame layer (1..L), weight (relative change)."""
    rows = table[table["reference"] == reference].sort_values("layer")
    if rows.empty:
        found = ", ".join(table["reference"].unique()) or "none"
        raise MemlocError(f"the table of weight changes has no {reference!r}; it has {found}")
    weights = rows[["layer", "relative_change"]].rename(columns={"relative_change": "weight"})
    return weights.reset_index(drop=True)
