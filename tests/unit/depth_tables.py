"""Tables that depth of memorisation is compared in."""

import numpy as np
import pandas as pd

TASKS = ("wic", "rte", "sst5", "emotion", "trec")
LAYERS = {"bert": 4, "opt": 4, "opt-1.3b": 8}


def tables(tasks=TASKS, models=tuple(LAYERS), techniques=("swapping", "retraining")):
    """Frames weights, mcog, events and generalisation of random numbers."""
    rng = np.random.default_rng(1)
    keys = pd.MultiIndex.from_product([tasks, models], names=["task", "model"]).to_frame(
        index=False
    )
    mcog = keys.merge(pd.DataFrame({"technique": techniques}), how="cross")
    mcog["mcog"], mcog["found"] = 1 + 3 * rng.random(len(mcog)), "yes"
    weights = pd.concat(
        mcog[mcog["model"] == model].merge(pd.DataFrame({"layer": range(1, n + 1)}), how="cross")
        for model, n in LAYERS.items()
    )
    weights["weight"] = rng.random(len(weights))
    names = ["crossing", "initiation", "probing-memorisation", "probing-initiation"]
    events = keys.merge(pd.DataFrame({"event": names}), how="cross").assign(source="trained")
    events["layer"] = 1 + 3 * rng.random(len(events))
    halves = events[events["event"] == "crossing"].assign(source="bottom", layer=5.0)
    names = ("score", "validation_scaled", "score_above_prior", "validation_above_majority")
    scores = keys.assign(**{name: rng.random(len(keys)) for name in names})
    order = keys["task"].map({task: i for i, task in enumerate(tasks)})
    scores = scores.assign(n_classes=2 + order % 3, balance=1 / (1 + order))
    return weights, mcog, pd.concat([events, halves]), scores
