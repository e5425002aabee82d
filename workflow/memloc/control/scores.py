"""How often a technique points at the layers in which memorisation was forced (section 3.2).

accuracy@k is the share of the k highest-scoring layers that are among the pair's two; a random
guess gets 2 / L of them right. Layers with equal scores share their places: the accuracy is the
expected one over all orders of theirs, so that a technique that says nothing scores chance. Scores
that are undefined have no accuracy (nan) and are counted apart.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from memloc.localise.gradients.variants import VARIANTS, gradient_weights
from memloc.study.control import pair_of

KS = (1, 2)
COLUMNS = {
    "control_accuracy": [
        "task", "model", "technique", "pair", "k", "accuracy", "chance", "role", "n_layers",
    ],
    "control_techniques": [
        "role", "model", "technique", "k", "accuracy", "sd", "chance", "n", "n_none",
    ],
    "control_weights": [
        "task", "model", "technique", "pair", "layer", "weight", "weight_raw", "role",
    ],
    "gradient_variants": [
        "model", "variant", "norm", "clean", "frozen", "k", "accuracy", "sd", "chance", "n",
        "n_none", "paper",
    ],
}  # fmt: skip
ALL = "all"  # models


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


def control_frames(
    frames: Iterable[pd.DataFrame], runs: Iterable[Mapping[str, Any]], techniques: Mapping[str, Any]
) -> dict[str, pd.DataFrame]:
    """Frames control_accuracy, control_weights and control_techniques of all control models.

    `runs` says technique, task, model, pair and role of each table of `frames`; role is
    "validation" for tasks that choose how a technique is post-processed, else "test".
    """
    accuracies, weights = [], []
    for frame, run in zip(frames, runs, strict=True):
        found = techniques[run["technique"]].weights(frame)
        key = {name: run[name] for name in ("task", "model", "technique", "pair", "role")}
        weights.append(
            found.assign(**{"weight_raw": found.get("weight_raw", found["weight"])}, **key)
        )
        accuracies += [key | row for row in _accuracies(scores_of(found), run["pair"])]
    found = {
        "control_accuracy": pd.DataFrame(accuracies),
        "control_weights": pd.concat(weights, ignore_index=True) if weights else pd.DataFrame(),
    }
    found["control_techniques"] = aggregate(found["control_accuracy"], ["technique"])
    return {name: frame.reindex(columns=COLUMNS[name]) for name, frame in found.items()}


def _accuracies(scores: np.ndarray, pair: str) -> list[dict[str, Any]]:
    right = pair_of(pair)
    return [
        {
            "k": k,
            "accuracy": accuracy_at(scores, right, k),
            "chance": len(right) / len(scores),
            "n_layers": len(scores),
        }
        for k in KS
        if k <= len(scores)
    ]


def aggregate(accuracies: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Mean accuracy over tasks and pairs by role, model (and all models), `keys` and k.

    n counts the tables behind a mean, n_none those whose scores are undefined.
    """
    if accuracies.empty:
        return pd.DataFrame()
    both = pd.concat([accuracies.assign(model=ALL), accuracies])
    if accuracies["model"].nunique() == 1:
        both = accuracies
    groups = both.groupby(["role", "model", *keys, "k"], sort=False)
    return groups.agg(
        accuracy=("accuracy", "mean"),
        sd=("accuracy", "std"),
        chance=("chance", "mean"),
        n=("accuracy", "count"),
        n_none=("accuracy", lambda values: int(values.isna().sum())),
    ).reset_index()


def variant_frame(
    frames: Iterable[pd.DataFrame],
    runs: Iterable[Mapping[str, Any]],
    paper: Mapping[str, Mapping[str, float]],
) -> pd.DataFrame:
    """Frame gradient_variants (Table 4): accuracy of every post-processing on validation tasks.

    `frames` are gradients.tsv of control models; `paper` holds what the paper reports for
    accuracy@2, by model and variant, for those models and tasks that are the paper's.
    """
    rows = []
    for frame, run in zip(frames, runs, strict=True):
        for variant, chosen in VARIANTS.items():
            scores = scores_of(gradient_weights(frame, variant))
            named = dict(zip(("norm", "clean", "frozen"), chosen, strict=True))
            key = {name: run[name] for name in ("model", "role")} | {"variant": variant} | named
            rows += [key | row for row in _accuracies(scores, run["pair"])]
    table = aggregate(pd.DataFrame(rows), ["variant", "norm", "clean", "frozen"])
    if not table.empty:
        table["paper"] = [
            paper.get(row.model, {}).get(row.variant, float("nan")) if row.k == 2 else float("nan")
            for row in table.itertuples()
        ]
    return table.reindex(columns=COLUMNS["gradient_variants"])
