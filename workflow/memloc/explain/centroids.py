"""Centroid analysis: where noisy examples leave their own class for the perturbed one (section 5).

For an ordered pair of classes (a, b), noisy examples of original class b and perturbed label a are
projected on the line through the centroids of the clean examples of a and of b, layer by layer:
0 at centroid a, 1 at centroid b. Rows named "all" pool the examples of all pairs, as the authors'
code does, so that each noisy example counts once. Layers are 1..L, as in the paper's figures. The
embeddings have no row: the token that an encoder pools has the same one in every text. Imports no
torch.
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
POOLED = "all"  # class_a and class_b of the rows that pool the examples of all pairs


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


def is_pooled(table: pd.DataFrame) -> pd.Series:
    """Whether each row pools all pairs: no pair of different classes has the same name twice."""
    return table["class_a"].eq(table["class_b"])


def layer_rows(states: np.ndarray, classes: Classes) -> Iterator[dict]:
    """A row of COLUMNS, but for source and layer, for every pair in one layer's states (n, width),
    and a last one that pools the examples of all pairs.

    A pair without noisy examples, or of a class without clean ones, has counts of 0 and nan for
    what they would give. Where two centroids coincide, the distance is 0 and places are nan; they
    are not pooled. A clean example is pooled once for each pair that its class is part of.
    """
    projector = Projector(states, classes)
    pooled: dict[str, list[np.ndarray]] = {group: [] for group in GROUPS}
    for a, b in classes.pairs():
        members = (projector.members[a], projector.members[b], np.flatnonzero(classes.moved(a, b)))
        places = [projector.places(a, b, rows) for rows in members]
        for group, found in zip(GROUPS, places, strict=True):
            pooled[group].append(found[~np.isnan(found)])
        yield _row(classes.names[a], classes.names[b], places, projector.distance(a, b))
    yield _row(POOLED, POOLED, [np.concatenate(found) for found in pooled.values()], np.nan)


def _row(a: str, b: str, places: Sequence[np.ndarray], distance: float) -> dict[str, Any]:
    """A row of COLUMNS, but for source and layer, from the places of each of GROUPS."""
    found: dict[str, Any] = {"class_a": a, "class_b": b, "distance": distance}
    for group, of in zip(GROUPS, places, strict=True):
        low, high = np.percentile(of, PERCENTILES) if len(of) else (np.nan, np.nan)
        found |= {f"{group}_mean": of.mean() if len(of) else np.nan, f"n_{group}": len(of)}
        found |= {f"{group}_low": low, f"{group}_high": high}
    return found


def centroid_table(source: str, states: Sequence[np.ndarray], classes: Classes) -> pd.DataFrame:
    """Frame of COLUMNS from the states (n, width) of layers 1..L."""
    layers = [layer_rows(layer_states, classes) for layer_states in states]
    rows = [
        row | {"source": source, "layer": layer}
        for of_pair in zip(*layers, strict=True)
        for layer, row in enumerate(of_pair, start=1)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)
