"""What no model is needed for: the scores of guessing by the labels' shares, and by the commonest.

A random guess, 1 / classes, is easily beaten where classes are unequal: whoever gives every label
its share in training exceeds it for all examples of common labels. Scores beside these baselines
say what is left.
"""

import numpy as np
import pandas as pd

COLUMNS = [
    "n_classes", "balance", "score_prior", "score_above_prior", "majority",
    "validation_above_majority",
]  # fmt: skip


def scaled(accuracy: float, baseline: float) -> float:
    """Accuracy scaled by a baseline: 0 at the baseline, 1 at best; nan where that is 1."""
    return (accuracy - baseline) / (1 - baseline) if baseline < 1 else float("nan")


def balance(shares: pd.Series, n_classes: int) -> float:
    """Evenness of labels' shares: their entropy over that of equal shares, 0 (one label) to 1."""
    known = shares[shares > 0]
    return float(-(known * np.log(known)).sum() / np.log(n_classes))


def baselines(
    examples: pd.DataFrame, data: pd.DataFrame, column: str, accuracy: float, n_classes: int
) -> dict[str, float]:
    """COLUMNS of one task and model.

    `examples`: rows of generalisation.tsv; `data`: the task's perturbed table (split, index, label
    and `column`, the labels trained on); `accuracy`: on validation, against its true labels.
    """
    train = data[data["split"] == "train"].set_index("index")[column]
    shares = train.loc[examples["index"]].value_counts(normalize=True)
    prior = examples["index"].map(train).map(shares)
    counted = examples["n_heldout"] > 0
    above = examples["generalisation"] > prior
    validation = data.loc[data["split"] == "validation", "label"]
    majority = float((validation == shares.idxmax()).mean())
    return {
        "n_classes": n_classes,
        "balance": balance(shares, n_classes),
        "score_prior": float((prior[counted] > 1 / n_classes).mean()),
        "score_above_prior": float(above[counted].mean()),
        "majority": majority,
        "validation_above_majority": scaled(accuracy, majority),
    }
