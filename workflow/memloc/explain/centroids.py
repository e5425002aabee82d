"""Centroid analysis: where noisy examples leave their own class for the perturbed one (section 5).

For an ordered pair of classes (a, b), noisy examples of original class b and perturbed label a are
projected on the line through the centroids of the clean examples of a and of b, layer by layer:
0 at centroid a, 1 at centroid b. Layers are 1..L, as in the paper's figures. The embeddings have no
row: the token that an encoder pools has the same one in every text. Imports no torch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

PERCENTILES = (12.5, 87.5)  # three quarters of the examples lie between them
# Two centroids count as one when they are closer than this share of the states' root mean square
# norm: states in float32 can't be told apart any better.
COINCIDE = 3e-7
GROUPS = ("clean_a", "clean_b", "noisy")
COLUMNS = [
    "source", "class_a", "class_b", "layer",
    *(f"{group}_{what}" for group in GROUPS for what in ("mean", "low", "high")),
    "distance", "n_clean_a", "n_clean_b", "n_noisy",
]  # fmt: skip
CROSSING, LAST_CROSSING, INITIATION = "crossing", "crossing-last", "initiation"
EVENTS = (CROSSING, LAST_CROSSING, INITIATION)
EVENT_COLUMNS = ["source", "class_a", "class_b", "event", "layer", "n_noisy"]
NONE = "none"  # an event that never happens


@dataclass(frozen=True)
class Classes:
    """Class ids of n training examples: `labels` trained on; `original`, negative if unknown."""

    names: Sequence[str]
    labels: np.ndarray
    original: np.ndarray
    noisy: np.ndarray

    def clean(self, number: int) -> np.ndarray:
        """Whether each example is a clean one of this class."""
        return ~self.noisy & (self.labels == number)

    def moved(self, a: int, b: int) -> np.ndarray:
        """Whether each example is noisy, of original class b and perturbed label a."""
        return self.noisy & (self.original == b) & (self.labels == a)

    def pairs(self) -> list[tuple[int, int]]:
        """All ordered pairs of different classes."""
        numbers = range(len(self.names))
        return [(a, b) for a in numbers for b in numbers if a != b]


class Projector:
    """Projections on the lines through all pairs of centroids of one layer's states (n, width)."""

    def __init__(self, states: np.ndarray, classes: Classes):
        states = np.asarray(states, dtype=np.float64)
        self.norm = np.sqrt(np.square(states).sum(1).mean())
        states = states - states.mean(0)  # a far-off origin would cost digits
        self.members = [np.flatnonzero(classes.clean(c)) for c in range(len(classes.names))]
        centroids = np.stack(
            [states[m].mean(0) if len(m) else np.full(states.shape[1], np.nan)
             for m in self.members]
        )  # fmt: skip
        self.along = states @ centroids.T  # (n, classes)
        self.products = centroids @ centroids.T

    def distance(self, a: int, b: int) -> float:
        """Between two centroids; 0 where they are one, nan where a class has no clean example."""
        products = self.products
        square = products[a, a] - 2 * products[a, b] + products[b, b]
        found = float(np.sqrt(np.maximum(square, 0.0)))
        return 0.0 if found <= COINCIDE * self.norm else found

    def places(self, a: int, b: int, rows: np.ndarray) -> np.ndarray:
        """Where `rows` lie on the line: 0 at centroid a, 1 at b; nan without such a line."""
        distance = self.distance(a, b)
        if not distance > 0:
            return np.full(len(rows), np.nan)
        start = self.products[a, b] - self.products[a, a]
        return (self.along[rows, b] - self.along[rows, a] - start) / distance**2


def layer_rows(states: np.ndarray, classes: Classes) -> Iterator[dict]:
    """A row of COLUMNS, but for source and layer, for every pair in one layer's states (n, width).

    A pair without noisy examples, or of a class without clean ones, has counts of 0 and nan for
    what they would give. Where two centroids coincide, the distance is 0 and places are nan.
    """
    projector = Projector(states, classes)
    for a, b in classes.pairs():
        rows = {
            "clean_a": projector.members[a],
            "clean_b": projector.members[b],
            "noisy": np.flatnonzero(classes.moved(a, b)),
        }
        found: dict[str, Any] = {"class_a": classes.names[a], "class_b": classes.names[b]}
        for group, members in rows.items():
            places = projector.places(a, b, members)
            numbers = (
                (places.mean(), *np.percentile(places, PERCENTILES))
                if len(places)
                else [np.nan] * 3
            )
            found |= dict(
                zip((f"{group}_{w}" for w in ("mean", "low", "high")), numbers, strict=True)
            )
            found[f"n_{group}"] = len(members)
        yield found | {"distance": projector.distance(a, b)}


def centroid_table(source: str, states: Sequence[np.ndarray], classes: Classes) -> pd.DataFrame:
    """Frame of COLUMNS from the states (n, width) of layers 1..L."""
    rows = [
        row | {"source": source, "layer": layer}
        for layer, layer_states in enumerate(states, start=1)
        for row in layer_rows(layer_states, classes)
    ]
    order = {pair: i for i, pair in enumerate(classes.pairs())}
    numbers = {name: i for i, name in enumerate(classes.names)}
    rows.sort(key=lambda r: (order[numbers[r["class_a"]], numbers[r["class_b"]]], r["layer"]))
    return pd.DataFrame(rows, columns=COLUMNS)


# --- Events ------------------------------------------------------------------------------


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
    """Frame of EVENT_COLUMNS: a row per source, pair and event of a centroids.tsv.

    layer: 1..L, "none" where the event never happens, nan where that can't be told: crossings need
    noisy examples of the pair, and classes come apart only where both have clean ones.
    """
    rows = []
    for (source, a, b), part in table.groupby(["source", "class_a", "class_b"], sort=False):
        part = part.sort_values("layer")
        means = part["noisy_mean"].to_numpy(float)
        highs, lows = part["clean_a_high"].to_numpy(float), part["clean_b_low"].to_numpy(float)
        layers = {
            CROSSING: _event(crossing(means), means),
            LAST_CROSSING: _event(last_crossing(means), means),
            INITIATION: _event(initiation(highs, lows), highs),
        }
        key = {"source": source, "class_a": a, "class_b": b, "n_noisy": part["n_noisy"].iloc[0]}
        rows += [key | {"event": event, "layer": layer} for event, layer in layers.items()]
    return pd.DataFrame(rows, columns=EVENT_COLUMNS)


def _event(layer: int | None, numbers: np.ndarray) -> int | float | str:
    if np.isnan(numbers).all():
        return np.nan
    return NONE if layer is None else layer
