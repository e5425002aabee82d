"""What the data sets are like: their sizes, noise, duplicates and lengths (results/tasks.tsv)."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from memloc.data.perturb import describe
from memloc.data.tokens import encode_texts, load_tokenizer
from memloc.store.columns import text_names
from memloc.store.files import read_json
from memloc.store.tables import read_parquet, write_tsv

TASK_COLUMNS = [
    *("task", "label", "category", "model", "classes", "train", "validation", "test"),
    *("noisy", "clean", "noisy_uncorrected", "dropped", "dropped_empty"),
    *("train_repeats", "heldout_in_train", "conflicting", "conflicting_before"),
    *("tokens_median", "tokens_p95", "share_cut", "n_cut"),
]


def write_task_table(
    perturbed: list[str],
    manifests: list[str],
    models: list[str],
    output: str | Path,
    *,
    tasks: dict[str, dict[str, Any]],
    separators: dict[str, str | None],
    max_length: int,
) -> None:
    """Write one row per task and model; lengths are in tokens of the model, training rows only.

    `tasks`: name -> {label, category, labels} and `separators`: model -> separator, both in
    the order of `perturbed` (and `manifests`) and of `models`.
    """
    tokenizers = {
        name: load_tokenizer(folder) for name, folder in zip(separators, models, strict=True)
    }
    rows = []
    for (name, about), path, manifest in zip(tasks.items(), perturbed, manifests, strict=True):
        frame = read_parquet(path)
        facts = task_facts(name, about, frame, read_json(manifest))
        for model, tokenizer in tokenizers.items():
            lengths = token_lengths(frame, tokenizer, separators[model])
            rows.append(facts | {"model": model} | length_facts(lengths, max_length))
    write_tsv(pd.DataFrame(rows), output, TASK_COLUMNS)


def task_facts(
    name: str, about: dict[str, Any], frame: pd.DataFrame, manifest: dict[str, Any]
) -> dict[str, Any]:
    """The columns that are the same for every model's tokenizer."""
    facts = describe(frame, about["labels"])
    dropped = manifest["rows_dropped"]
    return {
        "task": name,
        "label": about["label"],
        "category": about["category"],
        "classes": len(about["labels"]),
        **facts["rows"],
        **{key: facts[key] for key in TASK_COLUMNS if key in facts},
        "dropped": sum(dropped.values()),
        "dropped_empty": dropped.get("empty text", 0),
    }


def token_lengths(frame: pd.DataFrame, tokenizer: Any, separator: str | None) -> np.ndarray:
    """Tokens of each training row, special tokens included, before any cut; shape (rows,)."""
    texts = text_names(frame)
    rows = frame.loc[frame["split"] == "train", texts].itertuples(index=False, name=None)
    ids, _ = encode_texts(tokenizer, list(rows), separator, sys.maxsize)
    return np.array([len(row) for row in ids])


def length_facts(lengths: np.ndarray, max_length: int) -> dict[str, float]:
    """Median and 95th percentile of the whole lengths, and how many rows are cut."""
    cut = lengths > max_length
    return {
        "tokens_median": float(np.median(lengths)),
        "tokens_p95": float(np.percentile(lengths, 95)),
        "share_cut": float(cut.mean()),
        "n_cut": int(cut.sum()),
    }
