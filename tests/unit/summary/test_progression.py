"""The progression table against hand-computed values."""

import numpy as np
import pandas as pd
import pytest

from memloc.explain.centroid_events import COLUMNS as EVENT_COLUMNS
from memloc.explain.centroids import POOLED
from memloc.localise.found import Outcome
from memloc.summary.progression import progression_table
from memloc.windows import all_windows

EPOCHS = (1, 4)


def window_table(errors, n_layers=3):
    """A window's error is the sum of its layers' own, so that the whole window's is 1."""
    rows = []
    for start, end in all_windows(n_layers):
        error = sum(errors[start - 1 : end])
        rows.append((start, end, error, 0.0, 10, 10, error))
    names = ["start", "end", "noisy_error", "clean_error", "n_noisy", "n_clean"]
    return pd.DataFrame(rows, columns=[*names, "noisy_error_normalised"])


def run(epoch=None, name=None, seed=1):
    return {"task": "a", "model": "m", "seed": seed, "epoch": epoch, "name": name}


def event_table(layers):
    """All pairs pooled in the last layer given, the others of single pairs."""
    names = [*((f"x{i}", "y") for i in range(len(layers) - 1)), (POOLED, POOLED)]
    rows = [("trained", *pair, "crossing", layer, 3, 9, "")
            for pair, layer in zip(names, layers, strict=True)]  # fmt: skip
    rows.append(("bottom", POOLED, POOLED, "crossing", 1, 3, 9, ""))  # not of theta_M itself
    return pd.DataFrame(rows, columns=EVENT_COLUMNS)


def history(seed):
    return pd.DataFrame(
        {
            "epoch": [1, 2, 3, 4],
            "noisy_accuracy": [0.4, 0.4, 0.5, 0.8 + 0.2 * seed],
            "clean_accuracy": [0.5, 0.8, 0.9, 1.0],
            "validation_accuracy": [0.5, 0.7, 0.6, 0.6],
        }
    )


@pytest.fixture
def table():
    early, late = window_table([1, 0, 0]), window_table([0, 0, 1])
    return progression_table(
        [
            (run(epoch, "swapping", seed), frame)
            for epoch, frame in ((1, early), (4, late))
            for seed in (0, 1)
        ],
        [
            (run(1), event_table([1, 3, "none", 2])),
            (run(1, seed=0), event_table([3, 1])),
            (run(4), event_table([1, "none"])),
            (run(4, seed=0), event_table([3, "none"])),
        ],
        [(run(seed=seed), history(seed)) for seed in (0, 1)],
        {("a", "m", seed): Outcome(1.0, True) for seed in (0, 1)},
    )


def test_a_technique_that_undid_nothing_yet_has_no_centre():
    """After epoch 1 two fifths are memorised: an error of .62 is what was never known, or so."""
    frame = window_table([0.62, 0, 0])
    table = progression_table(
        [(run(epoch, "swapping"), frame) for epoch in EPOCHS], [], [(run(), history(1))],
        {("a", "m", 1): Outcome(1.0, True)},
    )  # fmt: skip
    early, late = (value(table, "mcog", "swapping", epoch) for epoch in EPOCHS)
    assert np.isnan(early["value"]) and "never memorised" in early["reason"]
    assert late["value"] < 2 and late["reason"] == ""


def value(table, measure, name, epoch):
    chosen = table[(table["measure"] == measure) & (table["name"] == name)]
    return chosen[chosen["epoch"] == epoch].iloc[0]


def test_mcog_moves_with_the_layers_that_matter(table):
    """Layer 1 alone matters at first, layer 3 at last: M-CoG is left, then right, of the middle."""
    early, late = (value(table, "mcog", "swapping", epoch)["value"] for epoch in EPOCHS)
    assert early < 2 < late
    assert early == pytest.approx(4 - late)
    assert value(table, "mcog", "swapping", 1)["n"] == 2


def test_events_count_those_that_never_happened(table):
    first, last = (value(table, "event", "crossing", epoch) for epoch in EPOCHS)
    assert (first["value"], first["n"], first["n_none"]) == (1.5, 2, 0)
    assert (last["value"], last["n"], last["n_none"]) == (4, 0, 2)  # layer L + 1


def test_accuracies_are_those_of_the_epochs_that_were_localised_in(table):
    rows = table[table["measure"] == "accuracy"]
    assert set(rows["epoch"]) == set(EPOCHS)
    noisy = value(table, "accuracy", "noisy_accuracy", 4)
    assert (noisy["value"], noisy["n"]) == (pytest.approx(0.9), 2)
    assert noisy["sd"] == pytest.approx(np.std([0.8, 1.0], ddof=1))


def test_epochs_are_in_order(table):
    for _, part in table.groupby(["measure", "name"]):
        assert part["epoch"].is_monotonic_increasing
