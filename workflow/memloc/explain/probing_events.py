"""Events of probes: where they tell perturbed labels better than original ones, and classes apart.

They are told from a run's probes.tsv (section 5). Imports no torch.
"""

import numpy as np
import pandas as pd

from memloc.explain.centroid_events import COLUMNS, NONE
from memloc.explain.centroids import POOLED
from memloc.localise.probes.weights import f1_by_layer

PROBING_MEMORISATION, PROBING_INITIATION = "probing-memorisation", "probing-initiation"
PROBING_EVENTS = (PROBING_MEMORISATION, PROBING_INITIATION)
MARGIN = 0.10  # of F1 by which memorisation exceeds generalisation
REACHED = 0.90  # of the way from random guesses to the best layer's F1
NO_PROBE = "no probes to tell it by"


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


def probing_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Both events of one run's probes.tsv as rows of a centroid_events.tsv.

    Probes tell all classes at once, so that there are no pairs. n_noisy is the fewest noisy
    examples that a probe for perturbed labels was scored on.
    """
    found = probing_events(table)
    scored = table[table["kind"].eq("perturbed") & table["examples"].eq("noisy")]
    return pd.DataFrame(
        {
            "source": "trained",
            "class_a": POOLED,
            "class_b": POOLED,
            "event": list(found),
            "layer": pd.Series(found.values(), dtype=object),
            "n_layers": table["layer"].max(),
            "n_noisy": int(scored["n_examples"].min()) if len(scored) else 0,
            "reason": ["" if layer == layer else NO_PROBE for layer in found.values()],
        }
    )[COLUMNS]
