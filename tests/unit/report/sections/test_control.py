"""What the page says in words about techniques where the right layers are known."""

import numpy as np
import pandas as pd

from memloc.control.scores import aggregate
from memloc.report.sections.control import reading, unlike_rates


def test_one_sentence_says_which_techniques_found_the_layers():
    rows = [
        dict(role="test", model="m", technique=name, k=2, accuracy=value, chance=1 / 3)
        for name, values in {
            "swapping": (1, 1), "retraining": (1, 0.9), "gradients": (0.5, 0.6), "probing": (0, 0),
            "rewinding-memorised": (np.nan, np.nan),
        }.items()
        for value in values
    ]  # fmt: skip
    assert reading(aggregate(pd.DataFrame(rows), ["technique"])) == (
        "Layer swapping and layer retraining found the two layers nearly always; forgetting "
        "gradients did better than guessing, but not reliably; probing did not do clearly better "
        "than guessing; rewinding to memorised said nothing (all scores are undefined) "
        "(accuracy@2; a random guess gets 0.33)."
    )


def test_runs_whose_models_took_different_learning_rates_are_named():
    def run(pair, labels, rate):
        return {"task": "rte", "model": "m", "pair": pair, "labels": labels, "learning_rate": rate}

    rows = [run("1-2", "original", 1e-5), run("1-2", "perturbed", 2e-5)]
    rows += [run("6-7", labels, 1e-5) for labels in ("original", "perturbed")]
    assert unlike_rates(pd.DataFrame(rows)) == ["rte with m, layers 1-2"]
