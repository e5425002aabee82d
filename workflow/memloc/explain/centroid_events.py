"""Events of the centroid analysis: where noisy examples cross, and where classes come apart.

They are told for each ordered pair of classes, and for the examples of all pairs pooled, which is
what the paper's authors do (section 5). Imports no torch.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

CROSSING, LAST_CROSSING, INITIATION = "crossing", "crossing-last", "initiation"
EVENTS = (CROSSING, LAST_CROSSING, INITIATION)
COLUMNS = [
    "source", "class_a", "class_b", "event", "layer", "n_layers", "n_noisy", "reason",
]  # fmt: skip
NONE = "none"  # an event that never happens
# Examples that a pair of classes needs: three quarters of them lie between the percentiles, and an
# eighth of fewer is less than one example.
LEAST = 8


def ranked(layers: Iterable, n_layers: int | pd.Series) -> np.ndarray:
    """A column of events' layers as numbers to order and to average by.

    An event that never happens ("none") ranks after layer L, as L + 1; nan stays, which is what
    can't be told. `n_layers`: L, of all or of each.
    """
    values = pd.Series(list(layers), dtype=object)
    never = values.eq(NONE).to_numpy()
    after = np.broadcast_to(np.asarray(n_layers, dtype=float) + 1, len(values))
    return np.where(never, after, pd.to_numeric(values.mask(never)).to_numpy(float))


def crossing(means: Sequence[float], place: float = 0.5) -> int | None:
    """First layer whose noisy mean (of layers 1..L) is nearer to a, or below another `place`; None
    if there is none."""
    return next((layer for layer, mean in enumerate(means, start=1) if mean < place), None)


def last_crossing(means: Sequence[float]) -> int | None:
    """The last layer at which the noisy mean comes over to a: the authors' code's crossing.

    Layers without a mean are passed over; a mean that begins nearer to a has crossed at its layer.
    """
    found, nearer_b = None, True
    for layer, mean in enumerate(means, start=1):
        if np.isnan(mean):
            continue
        if mean < 0.5 and nearer_b:
            found = layer
        nearer_b = mean >= 0.5
    return found


def initiation(highs_of_a: Sequence[float], lows_of_b: Sequence[float]) -> int | None:
    """First layer from which on, to the last, clean a's upper percentile is below b's lower one."""
    apart = np.asarray(highs_of_a) < np.asarray(lows_of_b)  # nan is not apart
    overlap = np.flatnonzero(~apart)
    first = int(overlap[-1]) + 2 if len(overlap) else 1
    return first if first <= len(apart) else None


def centroid_events(table: pd.DataFrame) -> pd.DataFrame:
    """Frame of COLUMNS: a row per source, pair (and all pooled) and event of a centroids.tsv.

    layer: 1..L, "none" where the event never happens, nan where that can't be told: crossings need
    noisy examples of the pair, and classes come apart only where both have clean ones. reason: why
    it can't be told, or that it rests on fewer than LEAST examples; else empty.
    """
    rows = []
    for (source, a, b), part in table.groupby(["source", "class_a", "class_b"], sort=False):
        part = part.sort_values("layer")
        means = part["noisy_mean"].to_numpy(float)
        highs, lows = part["clean_a_high"].to_numpy(float), part["clean_b_low"].to_numpy(float)
        noisy, clean = part["n_noisy"].max(), part[["n_clean_a", "n_clean_b"]].max().min()
        key = {"source": source, "class_a": a, "class_b": b, "n_layers": len(part)}
        for event, layer, numbers, count, kind in (
            (CROSSING, crossing(means), means, noisy, "noisy"),
            (LAST_CROSSING, last_crossing(means), means, noisy, "noisy"),
            (INITIATION, initiation(highs, lows), highs, clean, "clean"),
        ):
            told = not np.isnan(numbers).all()
            found = (NONE if layer is None else layer) if told else np.nan
            reason = _reason(int(count), kind, told)
            facts = {"event": event, "layer": found, "n_noisy": noisy, "reason": reason}
            rows.append(key | facts)
    return pd.DataFrame(rows, columns=COLUMNS)


def _reason(count: int, kind: str, told: bool) -> str:
    """What is wrong with an event of so many examples of a kind; empty if nothing is."""
    if count == 0:
        return f"no {kind} example"
    if not told:
        return "no line between the classes' centroids"
    few = f"{count} {kind} example" + ("s" if count > 1 else "")
    return f"{few}, fewer than {LEAST}" if count < LEAST else ""
