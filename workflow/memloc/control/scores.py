"""How often a technique points at the layers in which memorisation was forced (section 3.2).

accuracy@k is the share of the k highest-scoring layers that are among the pair's two; a random
guess gets 2 / L of them right. Among layers with equal scores, the accuracy is the mean over all
orders of them: a technique that scores all layers alike is as good as chance. Undefined scores
have no accuracy (nan) and are counted apart.

Techniques are judged by accuracy@1. accuracy@2, which the paper has beside it, favours windows: a
layer's weight is a mean over windows that cover its neighbours too, so that the neighbour of a
layer that holds everything comes second.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from memloc.localise.weights import one_layer_errors
from memloc.study.control import design_of, pair_of
from memloc.study.techniques import Technique

KS = (1, 2)
JUDGED_BY = 1  # k of the accuracy that claims rest on
WEIGHTS, ONE_LAYER = "weights", "one-layer"  # what layers are scored by
HITS = ["pair", "judged", "design", "k", "accuracy", "chance", "n_layers"]


class Scored(NamedTuple):
    """Scores (L,) of a control model's layers: whose they are, and the pair that memorised."""

    key: dict[str, Any]
    pair: str
    scores: np.ndarray


def accuracy_at(scores: Sequence[float] | np.ndarray, right: Collection[int], k: int) -> float:
    """accuracy@k of scores of layers 1..L, `right` being the numbers of the right ones."""
    values = np.asarray(scores, dtype=float)
    if np.isnan(values).any():
        return float("nan")
    hits = np.array([layer in right for layer in range(1, len(values) + 1)])
    last = np.sort(values)[-k]
    above, tied = values > last, values == last
    places = k - above.sum()
    return float((hits[above].sum() + places * hits[tied].mean()) / k)


def scores_of(weights: pd.DataFrame) -> np.ndarray:
    """Scores of layers 1..L: raw weights where there are any, for normalising can undefine them.

    Normalising scales all layers alike, so both rank them alike.
    """
    column = "weight_raw" if "weight_raw" in weights else "weight"
    return weights.sort_values("layer")[column].to_numpy(float)


def scores_by_kind(technique: Technique, table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Scores of layers 1..L by the technique's layer weights and, of windows, by single layers.

    `table`: the technique's table of one control model. A single layer's score is the error from
    modifying it alone: no neighbour has a part in it.
    """
    found = {WEIGHTS: scores_of(technique.weights(table))}
    return found | ({ONE_LAYER: one_layer_errors(table)} if technique.windows else {})


def hits(scored: Iterable[Scored]) -> pd.DataFrame:
    """accuracy@k of all scores against every pair of the same key: a frame of the keys and HITS.

    `pair` is the one that memorised, `judged` the one whose layers count as right. Rows in which
    these are equal are the accuracies; the others say what the same scores get by always pointing
    at the same layers, whichever pair memorised.
    """
    given = list(scored)
    pairs: dict[tuple, list[str]] = {}
    for one in given:
        pairs.setdefault(tuple(one.key.values()), []).append(one.pair)
    return pd.DataFrame(
        [
            one.key | _hit(one, judged, k)
            for one in given
            for judged in pairs[tuple(one.key.values())]
            for k in KS
        ]
    )


def _hit(one: Scored, judged: str, k: int) -> dict[str, Any]:
    right, n_layers = pair_of(judged), len(one.scores)
    accuracy, chance = accuracy_at(one.scores, right, k), len(right) / n_layers
    values = (one.pair, judged, design_of(judged), k, accuracy, chance, n_layers)
    return dict(zip(HITS, values, strict=True))


def own_pairs(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `hits` whose scores are judged by the pair that memorised."""
    return frame[frame["pair"] == frame["judged"]]
