"""The tiny study's files as a notebook would hold them: models, a tokenizer and lists."""

import pandas as pd
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tiny_study import CLASSES, READING

OPTIONS = dict(max_length=READING.max_length)


def models(folder):
    """theta_M2, and whatever other model a technique reads."""
    return [
        AutoModelForSequenceClassification.from_pretrained(folder / name)
        for name in ("memorised", "frozen")
    ]


def tokenizer(folder):
    return AutoTokenizer.from_pretrained(folder / "memorised")


def frame(folder, split="train"):
    rows = pd.read_parquet(folder / "perturbed.parquet")
    return rows[rows["split"] == split]


def ids(names):
    return [CLASSES.index(name) for name in names]


def data(folder):
    """texts, labels and noisy, as positional arguments."""
    rows = frame(folder)
    return list(rows["text"]), ids(rows["label"]), list(rows["noisy"])


def original(folder):
    return ids(frame(folder)["original_label"])


def validation(folder):
    rows = frame(folder, "validation")
    return list(rows["text"]), ids(rows["label"])
