"""How depths move with choices of the analysis, against hand-computed values."""

import numpy as np
import pandas as pd
import pytest

from memloc.explain.centroids import POOLED
from memloc.summary.runs import Run, grouped
from memloc.summary.sensitivity import COLUMNS, sensitivity
from memloc.windows import all_windows

LAYERS = 2
# M-CoG of a table of 2 layers: weights are (w1 + w12) / 2 and (w2 + w12) / 2.


def window_table(one, two, both, clean=(0.0, 0.0, 0.0)):
    frame = pd.DataFrame(all_windows(LAYERS), columns=["start", "end"])
    errors = {(1, 1): one, (2, 2): two, (1, 2): both}
    losses = dict(zip(errors, clean, strict=True))
    windows = list(zip(frame["start"], frame["end"], strict=True))
    frame["noisy_error"] = [errors[window] for window in windows]
    frame["clean_error"] = [losses[window] for window in windows]
    return frame


def swapped(task, seed, *errors, clean=(0.0, 0.0, 0.0)):
    return Run("swapping", task, "m", seed, window_table(*errors, clean=clean))


def rows_of(frame, quantity, choice):
    assert list(frame) == COLUMNS
    chosen = frame[frame["quantity"].eq(quantity) & frame["choice"].eq(choice)]
    return chosen.set_index("variant")


def test_seeds_are_left_out_one_at_a_time():
    runs = [swapped("a", 1, 1.0, 0.0, 1.0), swapped("a", 2, 0.0, 1.0, 1.0)]
    found = rows_of(sensitivity(grouped(runs)), "swapping", "seeds")
    # by default both layers weigh alike (1.5); a seed alone has weights 1, .5 or .5, 1
    assert found["mean_change"].to_dict() == pytest.approx(
        {"without 1": 5 / 3 - 1.5, "without 2": 4 / 3 - 1.5}
    )
    assert (found["n_tasks"] == 1).all() and found["rho"].isna().all()


def test_raw_errors_weigh_seeds_by_how_much_they_undo():
    runs = [swapped("a", 1, 0.8, 0.0, 0.8), swapped("a", 2, 0.0, 0.2, 0.2)]
    found = rows_of(sensitivity(grouped(runs)), "swapping", "normalisation").loc["raw errors"]
    # normalised, the seeds cancel out; raw, the weights are (.8 + .1, .4 + .2) / 2
    assert found["mean_change"] == pytest.approx((0.9 * 1 + 0.6 * 2) / 1.5 - 1.5)


def test_clean_errors_are_taken_off():
    runs = [swapped("a", 1, 0.5, 0.5, 1.0, clean=(0.5, 0.0, 0.2))]
    found = rows_of(sensitivity(grouped(runs)), "swapping", "errors").loc["noisy minus clean"]
    # errors (0, .5, .8): weights .4 and .65
    assert found["mean_change"] == pytest.approx((0.4 + 2 * 0.65) / 1.05 - 1.5)


def test_an_order_of_tasks_that_turns_has_rho_minus_one():
    runs = []
    for task, share in (("a", 0.1), ("b", 0.5), ("c", 0.9)):
        clean = (0.0, 0.0, 0.0) if task == "b" else (share - 0.05, 1 - share - 0.05, 0.0)
        runs.append(swapped(task, 1, share, 1 - share, 1.0, clean=clean))
    found = sensitivity(grouped(runs)).set_index("variant")
    assert found.loc["raw errors", ["rho", "moved", "largest_change"]].tolist() == [1, 0, 0]
    turned = [swapped(t, s, *e) for t, s, e in [
        ("a", 1, (1, 0, 1)), ("b", 1, (1, 1, 2)), ("c", 1, (0, 1, 1)),
        ("a", 2, (0, 9, 9)), ("b", 2, (9, 9, 18)), ("c", 2, (9, 0, 9)),
    ]]  # fmt: skip
    frame = rows_of(sensitivity(grouped(turned)), "swapping", "normalisation")
    assert np.isnan(frame.loc["raw errors", "rho"]), "by default all tasks lie alike: no order"


def crossing_table(pairs):
    rows = []
    for (a, n_noisy), means in pairs.items():
        for layer, mean in enumerate(means, start=1):
            b = a if a == POOLED else "z"
            rows.append(("trained", a, b, layer, mean, n_noisy))
            rows.append(("bottom", a, b, layer, 0.0, n_noisy))
    names = ["source", "class_a", "class_b", "layer", "noisy_mean", "n_noisy"]
    return pd.DataFrame(rows, columns=names)


def test_crossings_of_all_pairs_pooled_move_with_their_place():
    """A run crosses at layer 3 (.4: 3; .6: 2), another never (.6: 3): layer 4."""
    tables = [
        crossing_table({("x", 3): [0.1, 0.1, 0.1], (POOLED, 4): means})
        for means in ([0.9, 0.55, 0.3], [0.9, 0.8, 0.55])
    ]
    runs = [({"task": "a", "model": "m"}, table) for table in tables]
    found = rows_of(sensitivity({}, runs), "crossing", "crossing at, else 0.5")
    assert found["mean_change"].to_dict() == pytest.approx({"0.4": 0.0, "0.6": -1.0})


def test_probing_events_move_with_their_cut_offs():
    rows = []
    for layer, gap in enumerate([0.0, 0.07, 0.12, 0.3]):
        for kind, f1 in (("perturbed", 0.5 + gap), ("original", 0.5)):
            rows.append((1, layer, kind, "noisy", f1, 0.1))
        clean = [0.1, 0.85, 0.93, 1.0][layer]
        rows += [(1, layer, kind, "clean", clean, 0.0) for kind in ("perturbed", "original")]
    names = ["probe_seed", "layer", "kind", "examples", "f1", "f1_random"]
    noise = [(1, layer, "noise", "all", 0.1 + 0.1 * layer, 0.1) for layer in range(4)]
    table = pd.DataFrame(rows + noise, columns=names).assign(source="theta_M2")
    frozen = table[table["layer"] == 1].assign(source="theta_F")
    runs = [Run("probing", "a", "m", 1, pd.concat([table, frozen], ignore_index=True))]
    frame = sensitivity(grouped(runs))
    memorised = frame[frame["quantity"] == "probing-memorisation"].set_index("variant")
    assert memorised["mean_change"].to_dict() == {"0.05": -1, "0.15": 1, "0.2": 1}
    initiated = frame[frame["quantity"] == "probing-initiation"].set_index("variant")
    assert initiated["mean_change"].to_dict() == {"0.8": -1, "0.95": 1}
