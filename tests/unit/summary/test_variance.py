"""Variance of M-CoG by task, data seed and model seed, against what was put in and two oracles."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from memloc.localise.found import Outcome
from memloc.summary.runs import Run
from memloc.summary.variance import centres, components, freedom, reml

ALL = ["task", "data_seed", "model_seed"]


def frame(values):
    """Runs of an array of M-CoGs (tasks, data seeds, model seeds)."""
    places = itertools.product(*map(range, values.shape))
    rows = [(f"t{t}", str(d), str(s), values[t, d, s]) for t, d, s in places]
    return pd.DataFrame(rows, columns=[*ALL, "mcog"])


def drawn(shape, variances, seed=0):
    """M-CoGs with known variances of task, data seed, model seed and the rest."""
    task, data, model, rest = np.sqrt(variances)
    draw = np.random.default_rng(seed).standard_normal
    n_tasks, n_data, n_model = shape
    values = task * draw((n_tasks, 1, 1)) + data * draw((n_tasks, n_data, 1))
    return 6 + values + model * draw((n_tasks, 1, n_model)) + rest * draw(shape)


def by_hand(values):
    """Estimates of a balanced analysis of variance, by component: expected mean squares solved."""
    n_tasks, n_data, n_model = values.shape
    tasks, data, model = values.mean((1, 2)), values.mean(2), values.mean(1)
    squares = n_model * ((data - tasks[:, None]) ** 2).sum() / (n_tasks * (n_data - 1))
    squares_model = n_data * ((model - tasks[:, None]) ** 2).sum() / (n_tasks * (n_model - 1))
    rest = values - data[:, :, None] - model[:, None, :] + tasks[:, None, None]
    residual = (rest**2).sum() / (n_tasks * (n_data - 1) * (n_model - 1))
    found = {"data_seed": (squares - residual) / n_model, "residual": residual}
    found["model_seed"] = (squares_model - residual) / n_data
    if n_tasks > 1:
        of_tasks = n_data * n_model * tasks.var(ddof=1)
        found["task"] = (of_tasks - squares - squares_model + residual) / (n_data * n_model)
    return found


def restricted_likelihood(runs):
    """-2 log restricted likelihood of variances [task, data_seed, model_seed, residual]."""
    same = {name: np.equal.outer(runs[name].to_numpy(), runs[name].to_numpy()) for name in ALL}
    blocks = [same["task"], same["task"] & same["data_seed"], same["task"] & same["model_seed"]]
    y, ones = runs["mcog"].to_numpy(), np.ones(len(runs))

    def value(variances):
        both = sum(v * block for v, block in zip(variances, blocks, strict=False))
        both = both + variances[3] * np.eye(len(y))
        inverse = np.linalg.inv(both)
        weight = ones @ inverse @ ones
        left = y - (ones @ inverse @ y) / weight
        return np.linalg.slogdet(both)[1] + np.log(weight) + left @ inverse @ left

    return value


def found_in(values):
    return {row["component"]: row["variance"] for row in components(frame(values))}


@pytest.mark.parametrize("shape", [(12, 3, 3), (4, 2, 3), (1, 4, 3), (2, 2, 2)])
def test_balanced_runs_get_the_estimates_of_an_analysis_of_variance(shape):
    for seed in range(20):
        values = drawn(shape, (1, 0.3, 0.2, 0.05), seed)
        expected = by_hand(values)
        if min(expected.values()) > 0.01:  # where these two must agree
            break
    found = found_in(values)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=2e-3)


def test_known_variances_are_found():
    """As closely as 20 tasks tell: the standard error of the first is a third of it."""
    put_in = (1, 0.5, 0.25, 0.1)
    found = found_in(drawn((20, 4, 4), put_in))
    assert [found[name] for name in (*ALL, "residual")] == pytest.approx(put_in, rel=0.4)


@pytest.mark.parametrize(
    ("shape", "variances", "seed"),
    [
        ((6, 3, 3), (1, 0, 0.1, 0.05), 3),
        ((6, 3, 3), (0, 0.2, 0, 0.1), 3),
        ((6, 3, 3), (0, 0, 0, 0.1), 3),
        ((4, 2, 2), (0, 0.01, 0.01, 0.001), 9),  # where a search along axes stops short
        ((3, 3, 3), (1, 0.1, 1, 0.001), 7),  # where one from a single start gets stuck at 0
        ((12, 3, 3), (0.1, 0.1, 0.01, 0.001), 20),
    ],
)
def test_no_point_is_more_likely_also_where_variances_are_0(shape, variances, seed):
    """The maximum over variances of 0 or more, found by another optimiser on the plain formula."""
    values = drawn(shape, variances, seed)
    runs = frame(values)
    value = restricted_likelihood(runs)
    found = reml(runs, ALL)
    ours = np.array([found[name] for name in (*ALL, "residual")])
    assert (ours >= 0).all()
    size, ends = values.var(), [(0, None)] * 3 + [(1e-6, None)]
    other = minimize(
        lambda scaled: value(scaled * size), np.full(4, 0.25), bounds=ends, method="L-BFGS-B",
        options={"ftol": 1e-14},
    )  # fmt: skip
    assert value(ours) <= other.fun + 1e-3
    assert ours == pytest.approx(size * other.x, abs=5e-3 * size)


def test_shares_do_not_hang_on_the_unit():
    values = drawn((5, 3, 2), (1, 0.3, 0.2, 0.05))
    small, large = (pd.DataFrame(components(frame(v))) for v in (values, 1000 * values + 7))
    assert small["share"].to_numpy() == pytest.approx(large["share"].to_numpy(), abs=1e-3)
    assert small["share"].sum() == pytest.approx(1)
    assert small["sd"].to_numpy() ** 2 == pytest.approx(small["variance"].to_numpy())


@pytest.mark.parametrize(
    ("shape", "without", "whole"),
    [
        ((1, 3, 3), {"task"}, None),
        ((5, 1, 3), {"data_seed", "residual"}, "model_seed"),
        ((5, 3, 1), {"model_seed", "residual"}, "data_seed"),
        ((5, 1, 1), {"data_seed", "model_seed", "residual"}, "task"),
        ((1, 1, 3), {"task", "data_seed", "residual"}, "model_seed"),
        ((1, 1, 1), {*ALL, "residual"}, None),
    ],
)
def test_too_few_levels_are_said_rather_than_guessed(shape, without, whole):
    values = drawn(shape, (1, 0.3, 0.2, 0.05), seed=1)
    rows = {row["component"]: row for row in components(frame(values))}
    assert {name for name, row in rows.items() if np.isnan(row["variance"])} == without
    assert all(rows[name]["note"] for name in without)
    if whole:
        assert "holds what else differs" in rows[whole]["note"]
        assert rows["residual"]["note"] == f"counted with {whole}"
    if shape == (1, 1, 3):  # plain variance of three runs
        assert rows["model_seed"]["variance"] == pytest.approx(values.var(ddof=1))
        assert "rough: 2 degrees" in rows["model_seed"]["note"]


def test_runs_without_a_centre_are_counted_and_left_out():
    runs = frame(drawn((4, 3, 3), (1, 0.3, 0.2, 0.05)))
    runs.loc[[0, 20], "mcog"] = np.nan
    found = pd.DataFrame(components(runs))
    kept = pd.DataFrame(components(runs.dropna()))
    assert (found["n_runs"] == 34).all() and (found["n_left_out"] == 2).all()
    assert found["variance"].tolist() == kept["variance"].tolist()
    nothing = components(runs.assign(mcog=np.nan))
    assert all(np.isnan(row["variance"]) and row["note"] for row in nothing)


def test_degrees_of_freedom_are_those_of_the_design():
    assert freedom(frame(np.zeros((12, 3, 2)))) == {
        "task": 11, "data_seed": 24, "model_seed": 12, "residual": 24,
    }  # fmt: skip


@pytest.mark.parametrize("centre", [6.5, 0.7])  # the mean of numbers like .7 is none of them
def test_runs_that_are_all_alike_vary_by_nothing(centre):
    rows = components(frame(np.full((3, 2, 2), centre)))
    assert [row["variance"] for row in rows] == [0.0] * 4
    assert all(np.isnan(row["share"]) for row in rows)


def test_runs_without_any_rest_give_no_number():
    """Seeds that explain every run exactly: the likelihood has no maximum."""
    rows = components(frame(drawn((1, 3, 3), (0, 0.3, 0.2, 0))))
    assert all(np.isnan(row["variance"]) for row in rows)
    assert {row["note"] for row in rows[1:]} == {"the fit did not converge"}


def swap_table(errors):
    """Windows of two layers: errors of 1-1, 1-2 and 2-2."""
    found = pd.DataFrame({"start": [1, 1, 2], "end": [1, 2, 2], "noisy_error": errors})
    return found.assign(n_noisy=100, noisy_error_normalised=found["noisy_error"] / errors[1])


def test_centres_are_those_of_single_runs_named_by_task_and_data_seed():
    """Weights of layers 1 and 2 are half of their own window and of both layers'."""
    found = centres(
        [
            Run("swapping", "a", "bert", 1, swap_table([0.5, 1, 0])),
            Run("swapping", "a@7", "bert", 1, swap_table([0, 1, 0.5])),
            Run("swapping", "a@7", "bert", 2, swap_table([0, 1, 0])),
            Run("swapping", "b", "bert", 1, swap_table([0, 0.01, 0]), outcome=Outcome(0.9)),
        ]
    )
    assert found["task"].tolist() == ["a", "a", "a", "b"]
    assert found["data_seed"].tolist() == ["first", "7", "7", "first"]
    expected = [(0.75 + 2 * 0.5) / 1.25, (0.5 + 2 * 0.75) / 1.25, 1.5]
    assert found["mcog"].tolist()[:3] == pytest.approx(expected)
    assert np.isnan(found["mcog"].iloc[3]), "in b nothing was found"
