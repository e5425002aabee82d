"""How far an M-CoG can move, by brute force, and how sure it is, by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from memloc.errors import MemlocError
from memloc.localise.centre import (
    Spread,
    attainable,
    example_error,
    leaning,
    rescaled,
    spread_of,
    window_parts,
)  # fmt: skip
from memloc.localise.weights import centre_of_gravity, window_weights
from memloc.windows import all_windows, window_name


def table_of(reverts, windows):
    """A table of windows that revert a share of the examples each."""
    frame = pd.DataFrame(windows, columns=["start", "end"])
    return frame.assign(noisy_error=np.asarray(reverts, float))


def first_ends(n_layers, start=1, least=1):
    """Every way in which larger windows revert whenever smaller ones do.

    As, for each start, the end from which on windows revert (L + 1: none does).
    """
    if start > n_layers:
        yield ()
        return
    for end in range(max(start, least), n_layers + 2):
        yield from ((end, *rest) for rest in first_ends(n_layers, start + 1, end))


@pytest.mark.parametrize("n_layers", [2, 3, 4, 5, 6])
def test_no_pattern_of_windows_goes_beyond_the_attainable_range(n_layers):
    windows = all_windows(n_layers)
    centres = [
        centre_of_gravity(window_weights(table_of([e >= ends[s - 1] for s, e in windows], windows))
                          ["weight"])
        for ends in first_ends(n_layers) if ends[0] <= n_layers
    ]  # fmt: skip
    assert (min(centres), max(centres)) == pytest.approx(attainable(n_layers))


def test_twelve_layers_as_by_hand_and_one_layer():
    assert attainable(12) == pytest.approx((4.29, 8.71), abs=0.005)
    assert attainable(1) == (1, 1) and rescaled(1, 1, 1, 1) == 1
    low, high = attainable(12)
    for centre, wanted in ((low, 1), (6.5, 6.5), (high, 12)):
        assert rescaled(centre, low, high, 12) == pytest.approx(wanted)


def test_parts_of_windows_add_up_to_the_weights():
    rng, windows = np.random.default_rng(0), all_windows(5)
    table = table_of(rng.random(len(windows)), windows)
    mass, moment = window_parts(windows, 5).T @ table["noisy_error"]
    centre = centre_of_gravity(window_weights(table)["weight"])
    assert moment / mass == pytest.approx(centre)


def kept(reverts, windows):
    frame = pd.DataFrame(~reverts, columns=[window_name(window) for window in windows])
    return frame.assign(index=range(10, 10 + len(frame)))


def test_the_error_over_examples_is_the_jackknife_by_a_loop():
    rng, windows = np.random.default_rng(1), all_windows(4)
    seeds = {s: rng.random((9, len(windows))) < 0.6 for s in (1, 2)}
    for reverts in seeds.values():
        reverts[:, windows.index((1, 4))] = True
    wholes = {1: 1.0, 2: 0.5}

    def centre(rows):
        weights = sum(
            window_weights(table_of(seeds[s][rows].mean(axis=0), windows))["weight_raw"] / wholes[s]
            for s in seeds
        )
        return centre_of_gravity(weights)

    without = np.array([centre([j for j in range(9) if j != i]) for i in range(9)])
    wanted = math.sqrt(8 / 9 * ((without - without.mean()) ** 2).sum())
    tables = {s: kept(reverts, windows) for s, reverts in seeds.items()}
    shuffled = tables | {2: tables[2].sample(frac=1, random_state=0)}
    assert example_error(tables, wholes) == pytest.approx(wanted)
    assert example_error(shuffled, wholes) == pytest.approx(wanted)
    with pytest.raises(MemlocError, match=r"seed 2: .* other noisy examples"):
        example_error(tables | {2: tables[2].assign(index=range(9))}, wholes)


def test_both_sources_add_up():
    # variances .09 and .16 / 4: .13; freedom .13^2 / (.09^2 / 99 + .04^2 / 3)
    both = spread_of(0.3, 100, 0.4, 4)
    assert both.error == pytest.approx(math.sqrt(0.13)) and both.basis == "examples and seeds"
    assert both.freedom == pytest.approx(0.13**2 / (0.09**2 / 99 + 0.04**2 / 3))
    assert spread_of(0.3, 100, math.nan, 1).freedom == 99
    assert spread_of(math.nan, 0, 0.4, 4).basis == "seeds"
    assert math.isnan(spread_of(math.nan, 0, math.nan, 1).margin())


def test_leaning_takes_more_where_more_tasks_are_judged():
    spread = Spread(1.0, 50, "seeds")
    one, twelve = (stats.t.ppf(1 - 0.025 / n, 50) for n in (1, 12))
    assert leaning(6.5 - one - 0.01, 12, spread, 1) == "lower"
    assert leaning(6.5 - one - 0.01, 12, spread, 12) == "open"
    assert leaning(6.5 + twelve + 0.01, 12, spread, 12) == "upper"
    assert leaning(1.0, 12, Spread(), 1) == "open"
