"""From probes' F1 to layer weights (section 3.1).

Imports no torch, so that summaries over runs stay light.
"""

import numpy as np
import pandas as pd

from memloc.errors import MemlocError

KINDS = ("noise", "perturbed", "original")
THETA_M2, THETA_F = "theta_M2", "theta_F"
COLUMNS = [
    "kind", "examples", "source", "probe_seed", "layer", "f1", "f1_random", "best_epoch",
    "validation_f1", "n_examples", "n_classes",
]  # fmt: skip


def f1_by_layer(
    table: pd.DataFrame, kind: str, examples: str = "all", source: str = THETA_M2
) -> pd.Series:
    """Mean F1 over probe seeds by layer, of one kind of probe on one part of the test examples."""
    chosen = table["kind"].eq(kind) & table["examples"].eq(examples) & table["source"].eq(source)
    return table[chosen].groupby("layer")["f1"].mean()


def probe_weights(table: pd.DataFrame) -> pd.DataFrame:
    """Layer weights of a probes.tsv: frame layer (1..L), weight.

    The weight of layer l is how much the noise probes' F1, averaged over probe seeds, rises from
    layer l - 1 to l, floored at 0; layer 1 is compared with layer 1 of theta_F. The mean is
    taken before flooring: to floor each seed's rises would turn their noise into weight.
    """
    ours = f1_by_layer(table, "noise")
    frozen = f1_by_layer(table, "noise", source=THETA_F)
    n_layers = int(ours.index.max()) if len(ours) else 0
    if n_layers < 1 or list(ours.index) != list(range(n_layers + 1)) or 1 not in frozen.index:
        raise MemlocError(
            "the table of probes needs noise probes of layers 0..L of theta_M2 and of layer 1 of "
            f"theta_F; it has {list(ours.index)} and {list(frozen.index)}"
        )
    levels = np.concatenate([[frozen.loc[1]], ours.to_numpy(float)[1:]])
    rises = np.maximum(np.diff(levels), 0.0)
    return pd.DataFrame({"layer": np.arange(1, n_layers + 1), "weight": rises})
