"""The study whose page the tests look at: two models that differ in depth, with single examples."""

import numpy as np
import pandas as pd

import synthetic
from memloc.store.tables import write_tsv
from memloc.summary.examples import COLUMNS, locate, summarise_locations
from memloc.windows import all_windows, window_name

TASKS = {name: synthetic.TASKS[name] for name in ("trec", "rte", "sst2", "wic")}
MODELS = {"bert": {"label": "BERT"}, "mini": {"label": "MiniLM <6>", "note": "a small model"}}
LAYERS = {"bert": 12, "mini": 6}
TECHNIQUES = ("swapping", "retraining", "gradients")
SEEDS = (1, 2)
NOISY = 30  # examples of a task
ABSENT = {
    "events": {
        "target": "results/summary/events.tsv",
        "command": "snakemake --config 'stages=[centroids]' -- report",
    }
}


def page(folder):
    """The page, its tables and its texts below a folder; the page's path."""
    tables, data = examples(folder)
    return synthetic.study(
        folder, TASKS, MODELS, SEEDS, TECHNIQUES, n_layers=LAYERS, absent=ABSENT, tables=tables,
        data=data,
    )  # fmt: skip


def examples(folder):
    """Tables of single examples, and a perturbed.parquet per task.

    An example is reverted by the windows that hold all layers it needs; a few aren't memorised.
    """
    draw = np.random.default_rng(3)
    runs = [{"task": t, "model": m, "seed": s} for t in TASKS for m in MODELS for s in SEEDS]
    paths = [folder / "runs" / f"examples_{number}.tsv" for number in range(len(runs))]
    index = [10 + 3 * i for i in range(NOISY)]
    for run, path in zip(runs, paths, strict=True):
        windows = list(all_windows(LAYERS[run["model"]]))
        first = draw.integers(1, LAYERS[run["model"]] + 1, NOISY)
        last = np.minimum(first + draw.integers(0, 3, NOISY), LAYERS[run["model"]])
        kept = {window_name(w): ~((w[0] <= first) & (w[1] >= last)) for w in windows}
        known = pd.DataFrame({"index": index, "memorised": draw.random(NOISY) < 0.9})
        write_tsv(locate(pd.DataFrame({"index": index, **kept}), known), path)
    tables = {name: folder / "summary" / f"{name}.tsv" for name in COLUMNS}
    summarise_locations(paths, runs, tables)
    data = {}
    for task in TASKS:
        frame = pd.DataFrame({"split": "train", "index": index, "noisy": True, "label": "<yes>"})
        frame = frame.assign(original_label="no", text=[f"{task} <b>no. {i}</b>" for i in index])
        data[task] = str(folder / f"{task}.parquet")
        frame.to_parquet(data[task])
    return tables, data
