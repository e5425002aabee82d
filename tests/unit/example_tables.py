"""Synthetic tables of where single noisy examples sit."""

import numpy as np
import pandas as pd

from memloc.store.tables import write_tsv
from memloc.summary.examples import COLUMNS, locate, summarise_locations
from memloc.windows import all_windows, window_name

TASKS = {"rte": {"category": "nlu", "label": "RTE"}, "trec": {"category": "topic", "label": "TREC"}}
MODELS = {"bert": {"label": "BERT"}}
N_LAYERS = 3
NAMES = [window_name(window) for window in all_windows(N_LAYERS)]


def tables(reverting, memorised=None):
    """swap_examples and swap_memorised of examples given by the windows that revert each."""
    index = [10 + 3 * i for i in range(len(reverting))]
    rows = [{"index": i} | {n: n not in found for n in NAMES}
            for i, found in zip(index, reverting, strict=True)]  # fmt: skip
    known = [True] * len(index) if memorised is None else memorised
    return pd.DataFrame(rows), pd.DataFrame({"index": index, "memorised": known})


def study(folder):
    """Summary tables of two tasks, and a perturbed.parquet with a text that must be escaped."""
    draw = np.random.default_rng(3)
    paths, runs = [], []
    for task in ("rte", "trec"):
        for seed in (1, 2):
            reverting = [{n for n in NAMES if draw.random() < 0.25} for _ in range(30)]
            paths.append(folder / f"{task}{seed}.tsv")
            write_tsv(locate(*tables(reverting)), paths[-1])
            runs.append({"task": task, "model": "bert", "seed": seed})
    outputs = {name: folder / f"{name}.tsv" for name in COLUMNS}
    summarise_locations(paths, runs, outputs)
    index = [10 + 3 * i for i in range(30)]
    data = pd.DataFrame({"split": "train", "index": index, "noisy": True, "label": "<yes>"})
    data["original_label"] = "no"
    data["premise"] = [f"<script>alert({i})</script> & so on" for i in index]
    data["hypothesis"] = "long " * 100
    data.to_parquet(folder / "rte.parquet")
    return outputs
