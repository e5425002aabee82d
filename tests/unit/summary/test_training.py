"""The outcome of training runs."""

import pandas as pd

import synthetic
from memloc.summary.training import COLUMNS, summarise_training


def test_training_outcomes():
    keys, histories, records = synthetic.training_runs(list(synthetic.TASKS)[:3], ["opt"], (1,))
    table = summarise_training(histories, records, keys)
    assert list(table) == COLUMNS
    assert list(table["memorised_epoch"]) == [10, "none", 10]
    del records[0]["memorised_epoch"]  # theta_O has no theta_M1
    reached = summarise_training(histories, records, keys)["memorised_epoch"]
    assert pd.isna(reached[0]) and list(reached[1:]) == ["none", 10] and type(reached[2]) is int
    assert list(table["noisy_accuracy"]) == [1.0, 0.9, 1.0] and set(table["seconds"]) == {120.0}
