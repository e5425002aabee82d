"""Synthetic tables of a whole study, shaped like real ones, for tests of summaries and figures."""

import numpy as np
import pandas as pd

from memloc.weights import normalise
from memloc.windows import all_windows

TASKS = {
    "wic": {"category": "nlu", "label": "WiC"},
    "rte": {"category": "nlu", "label": "RTE"},
    "mrpc": {"category": "nlu", "label": "MRPC"},
    "cola": {"category": "nlu", "label": "CoLA"},
    "boolq": {"category": "nlu", "label": "BoolQ"},
    "sst2": {"category": "sentiment", "label": "SST-2"},
    "sst5": {"category": "sentiment", "label": "SST-5"},
    "emotion": {"category": "sentiment", "label": "Emotion"},
    "implicithate": {"category": "hate", "label": "ImplicitHate"},
    "stormfront": {"category": "hate", "label": "Stormfront"},
    "reuters": {"category": "topic", "label": "Reuters"},
    "trec": {"category": "topic", "label": "TREC"},
}
MODELS = {
    "bert": {"label": "BERT"},
    "opt": {"label": "OPT"},
    "gpt-neo": {"label": "GPT-N"},
    "pythia": {"label": "Pythia"},
}


def windows(task_no=0, seed=1, n_layers=12):
    """A window table: longer windows err more, `task_no` moves the centre towards the top."""
    rng = np.random.default_rng([task_no, seed])
    strength = np.exp(-np.linspace(0, 2.2 - 0.25 * task_no, n_layers)) + 0.02 * rng.random(n_layers)
    strength *= 4 / strength.sum()
    rows = [
        (s, e, round((1 - np.exp(-strength[s - 1 : e].sum())) * 200) / 200, 0.003 * rng.random())
        for s, e in all_windows(n_layers)
    ]
    frame = pd.DataFrame(rows, columns=["start", "end", "noisy_error", "clean_error"])
    frame["n_noisy"], frame["n_clean"] = 200, 1000
    frame["noisy_error_normalised"] = normalise(frame)
    return frame


def given(task_no=0, seed=1, n_layers=12):
    """A table with one weight per layer."""
    rng = np.random.default_rng([7, task_no, seed])
    weight = (
        1 / n_layers + 0.02 * rng.random(n_layers) + np.linspace(0.05, 0.01 * task_no, n_layers)
    )
    return pd.DataFrame({"layer": np.arange(1, n_layers + 1), "weight": weight / weight.sum()})


def history(task_no=0, seed=1, epochs=12):
    """A perturbed run's history: clean accuracy first, noisy later; even tasks reach theta_M1."""
    rng = np.random.default_rng([9, task_no, seed])
    epoch = np.arange(1, epochs + 1)
    reach = 1.0 if task_no % 2 == 0 else 0.9
    noisy = reach / (1 + np.exp(-(epoch - 6 - rng.random())))
    noisy[-1] = reach
    clean = np.minimum(1.0, 0.6 + 0.1 * epoch)
    return pd.DataFrame(
        {
            "epoch": epoch,
            "train_loss": 1 / epoch,
            "clean_accuracy": clean,
            "noisy_accuracy": noisy,
            "validation_accuracy": 0.7 + 0.01 * epoch - 0.002 * epoch**2 / 2,
            "validation_macro_f1": 0.65 + 0.01 * epoch,
            "seconds": 10.0,
        }
    )
