"""Matrices, layer weights and M-CoG against hand-computed cases and a slow, obvious oracle."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memloc.errors import MemlocError
from memloc.localise.weights import (
    centre_of_gravity,
    layer_weights,
    mean_matrix,
    mean_mcog,
    mean_weights,
    normalise,
    one_layer_maximum,
    window_matrix,
    window_weights,
)


def table(errors):
    """Window table from {(start, end): error}."""
    rows = [(s, e, error) for (s, e), error in errors.items()]
    frame = pd.DataFrame(rows, columns=["start", "end", "noisy_error"])
    frame["clean_error"] = 0.0
    frame["noisy_error_normalised"] = normalise(frame)
    return frame


THREE = {(1, 1): 0.1, (2, 2): 0.2, (3, 3): 0.0, (1, 2): 0.4, (2, 3): 0.3, (1, 3): 0.8}


def slow_matrix(errors, n_layers):
    matrix = np.zeros((n_layers, n_layers))
    for length in range(1, n_layers + 1):
        for layer in range(1, n_layers + 1):
            values = [
                error
                for (start, end), error in errors.items()
                if end - start + 1 == length and layer in range(start, end + 1)
            ]
            matrix[length - 1, layer - 1] = sum(values) / len(values)
    return matrix


def windows_of(n_layers):
    return [(s, e) for s in range(1, n_layers + 1) for e in range(s, n_layers + 1)]


@st.composite
def random_errors(draw, least=0.0):
    n_layers = draw(st.integers(1, 7))
    names = windows_of(n_layers)
    values = draw(arrays(float, len(names), elements=st.floats(least, 1.0)))
    return n_layers, dict(zip(names, values, strict=True))


def test_matrix_by_hand():
    # length 2: layer 1 is in window 1-2 only, layer 2 in both, layer 3 in 2-3 only
    expected = [[0.1, 0.2, 0.0], [0.4, 0.35, 0.3], [0.8, 0.8, 0.8]]
    assert np.allclose(window_matrix(table(THREE)), expected)


def test_weights_and_mcog_by_hand():
    weights = window_weights(table(THREE))
    assert np.allclose(weights["weight_raw"], [1.3 / 3, 1.35 / 3, 1.1 / 3])
    assert np.allclose(weights["weight"], np.array([1.3, 1.35, 1.1]) / 3 / 0.8)
    # (1*1.3 + 2*1.35 + 3*1.1) / (1.3 + 1.35 + 1.1) = 7.3 / 3.75
    assert math.isclose(centre_of_gravity(weights["weight"]), 7.3 / 3.75)


def test_normalisation_is_the_papers_formula():
    frame = table(THREE)
    accuracy, a_all = 1 - frame["noisy_error"], 1 - 0.8
    assert np.allclose(normalise(frame), 1 - (accuracy - a_all) / (1 - a_all))


def test_row_order_does_not_matter():
    frame = table(THREE)
    assert np.allclose(window_matrix(frame.sample(frac=1, random_state=0)), window_matrix(frame))


@settings(max_examples=60, deadline=None)
@given(random_errors())
def test_matrix_equals_oracle(case):
    n_layers, errors = case
    assert np.allclose(window_matrix(table(errors)), slow_matrix(errors, n_layers))


@settings(max_examples=60, deadline=None)
@given(random_errors(least=0.05))
def test_properties_of_a_table(case):
    n_layers, errors = case
    frame = table(errors)
    weights = window_weights(frame)
    assert np.allclose(window_matrix(frame, "noisy_error_normalised")[-1], 1.0)
    # one seed's M-CoG doesn't depend on the normalisation, and lies among the layers
    centre = centre_of_gravity(weights["weight"])
    assert math.isclose(centre, centre_of_gravity(weights["weight_raw"]), rel_tol=1e-9)
    assert 1 <= centre <= n_layers
    mirrored = table({(n_layers + 1 - e, n_layers + 1 - s): v for (s, e), v in errors.items()})
    assert math.isclose(
        centre_of_gravity(window_weights(mirrored)["weight"]), n_layers + 1 - centre, rel_tol=1e-9
    )


def test_uniform_errors_centre_in_the_middle():
    frame = table(dict.fromkeys(windows_of(12), 0.5))
    assert np.allclose(layer_weights(window_matrix(frame)), 0.5)
    assert math.isclose(centre_of_gravity(window_weights(frame)["weight"]), 6.5)


def test_all_layers_without_error_is_undefined_but_raw_is_kept():
    frame = table(THREE | {(1, 3): 0.0})
    weights = window_weights(frame)
    assert weights["weight"].isna().all() and weights["weight_raw"].notna().all()
    assert math.isnan(mean_mcog({1: weights})["mcog"])
    assert mean_mcog({1: weights})["n_seeds"] == 0
    assert math.isnan(one_layer_maximum([frame])["error"])
    assert math.isclose(one_layer_maximum([frame])["error_raw"], 0.2)
    matrix, seeds = mean_matrix([frame])
    assert seeds == 0 and np.isnan(matrix).all()


def test_undefined_seed_is_left_out_and_counted(caplog):
    good, bad = window_weights(table(THREE)), window_weights(table(THREE | {(1, 3): 0.0}))
    mean = mean_weights({1: good, 2: bad})
    assert np.allclose(mean["weight"], good["weight"]) and set(mean["n_seeds"]) == {1}
    assert np.allclose(mean["weight_raw"], (good["weight_raw"] + bad["weight_raw"]) / 2)
    assert "seed 2" in caplog.text


def test_over_seeds_by_hand():
    first = pd.DataFrame({"layer": [1, 2], "weight": [1.0, 0.0]})
    second = pd.DataFrame({"layer": [2, 1], "weight": [3.0, 0.0]})
    mean = mean_weights({1: first, 2: second})
    assert list(mean["weight"]) == [0.5, 1.5]
    assert np.allclose(mean["sd"], [math.sqrt(0.5), math.sqrt(4.5)])
    centre = mean_mcog({1: first, 2: second})
    assert math.isclose(centre["mcog"], 3.5 / 2)  # of the mean weights, not the mean of 1 and 2
    assert math.isclose(centre["sd"], math.sqrt(0.5)) and centre["n_seeds"] == 2


def test_seeds_of_zeros_enter_the_mean_and_are_counted():
    zeros = pd.DataFrame({"layer": [1, 2], "weight": [0.0, 0.0]})
    some = pd.DataFrame({"layer": [1, 2], "weight": [1.0, 3.0]})
    centre = mean_mcog({1: zeros, 2: some})
    assert math.isclose(centre["mcog"], 1.75) and math.isnan(centre["sd"])
    assert (centre["n_seeds"], centre["n_zero"]) == (2, 1)
    assert set(mean_weights({1: zeros, 2: some})["n_seeds"]) == {2}
    centre = mean_mcog({1: zeros})
    assert math.isnan(centre["mcog"]) and (centre["n_seeds"], centre["n_zero"]) == (1, 1)


def test_one_seed_has_no_spread():
    assert mean_weights({1: window_weights(table(THREE))})["sd"].isna().all()
    assert math.isnan(mean_mcog({1: window_weights(table(THREE))})["sd"])


def test_one_layer_maximum_by_hand():
    other = table(THREE | {(2, 2): 0.3, (1, 1): 0.0})
    found = one_layer_maximum([table(THREE), other])
    assert found["layer"] == 2 and found["n_seeds"] == 2
    assert math.isclose(found["error_raw"], 0.25) and math.isclose(found["error"], 0.25 / 0.8)


def test_centre_of_gravity_edges():
    assert centre_of_gravity([0, 0, 2]) == 3.0
    assert math.isnan(centre_of_gravity([0, 0]))
    assert math.isnan(centre_of_gravity([1, float("nan")]))
    with pytest.raises(MemlocError, match="Layer 2"):
        centre_of_gravity([1, -0.5])


@pytest.mark.parametrize("broken", ["missing", "twice", "empty"])
def test_incomplete_tables_are_refused(broken):
    frame = table(THREE)
    frame = {"missing": frame[1:], "twice": pd.concat([frame, frame[:1]]), "empty": frame[:0]}[
        broken
    ]
    with pytest.raises(MemlocError, match="window"):
        window_matrix(frame)


def test_seeds_of_different_depth_are_refused():
    two = pd.DataFrame({"layer": [1, 2], "weight": [1.0, 0.0]})
    with pytest.raises(MemlocError, match="different numbers of layers"):
        mean_weights({1: two, 2: two[:1]})
