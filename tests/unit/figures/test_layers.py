"""Matrices, layer weights and techniques side by side: true values, and what can't be drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import synthetic
from memloc.figures.layers import layer_curves, technique_curves
from memloc.figures.matrices import matrices, short
from memloc.figures.one_layer import one_layer
from memloc.figures.panels import PALE
from memloc.figures.style import task_styles
from memloc.localise.weights import mean_matrix
from memloc.summary.weights import summarise_runs


def test_matrix_has_short_windows_on_top_and_true_values():
    windows = [synthetic.windows(0, seed, 4) for seed in (1, 2)]
    figure = matrices({"rte": windows}, synthetic.TASKS, "OPT")
    axes = figure.axes[0]
    assert axes.yaxis_inverted()
    values = axes.collections[0].get_array().reshape(4, 4)
    assert np.allclose(values, mean_matrix(windows)[0]) and np.allclose(values[-1], 1)
    assert [t.get_text() for t in axes.texts][-4:] == ["1"] * 4
    plt.close(figure)


def test_undefined_normalisation_is_said_in_the_figure():
    windows = synthetic.windows(0, 1, 3)
    windows.loc[(windows["start"] == 1) & (windows["end"] == 3), "noisy_error"] = 0.0
    windows["noisy_error_normalised"] = np.nan
    figure = matrices({"rte": [windows]}, synthetic.TASKS, "OPT")
    assert "not normalised" in figure.axes[0].get_title()
    plt.close(figure)


def test_the_title_says_what_modifying_all_layers_undoes():
    """Normalised, a technique that undoes next to nothing is as dark as one that undoes all."""
    tables = [synthetic.windows(0, seed, 3) for seed in (1, 2, 3)]
    for table, error in zip(tables, (0.02, 0.04, 0.0), strict=True):
        table["noisy_error"] *= error / table["noisy_error"].max()
        table["noisy_error_normalised"] = table["noisy_error"] / error if error else np.nan
    figure = matrices({"rte": tables}, synthetic.TASKS, "OPT")
    said = figure.axes[0].get_title().split("\n")
    assert said[1].startswith("2 seeds") and said[2] == "1 = 3% of noisy examples"
    plt.close(figure)


def test_what_found_nothing_is_pale():
    kinds = ("swapping", "gradients", "probing")
    frames = summarise_runs(synthetic.runs(synthetic.OWN, {"mini": {}}, (1, 2), kinds, 6))
    task, other = synthetic.OWN
    mcog = frames["mcog"].assign(found="yes")
    mcog.loc[mcog["task"].eq(task), "found"] = "no"
    styles, about = task_styles(synthetic.OWN), (synthetic.OWN, {"mini": {}})
    curves = layer_curves(frames["layer_weights"], frames["probe_f1"], mcog, *about, "mini")
    dots = one_layer(frames["one_layer"], mcog, *about)
    for figure in (curves, dots):
        found = [
            (line.get_color(), line.get_alpha())
            for axes in figure.axes
            for line in axes.lines
            if line.get_marker() not in ("", "None", "_")
        ]
        assert set(found) == {(styles[task].colour, PALE), (styles[other].colour, 1.0)}
        plt.close(figure)


def drawn(axes):
    """The y values of each line of axes, by line style and colour."""
    return {(line.get_linestyle(), line.get_color()): line.get_ydata() for line in axes.lines}


def test_probing_shows_f1_and_its_chance_level():
    runs = synthetic.runs(synthetic.OWN, {"mini": {}}, (1, 2), ("swapping", "probing"), 6)
    frames = summarise_runs(runs)
    f1 = frames["probe_f1"]
    about = synthetic.OWN, {"mini": {"label": "Mini"}}, "mini"
    figure = layer_curves(frames["layer_weights"], f1, frames["mcog"], *about)
    row = [axes for axes in figure.axes if axes.get_subplotspec().rowspan.start == 1]
    styles = task_styles(synthetic.OWN)
    lines = {key: values for axes in row for key, values in drawn(axes).items()}
    assert len(lines) == 2 * len(synthetic.OWN) and "F₁" in row[0].get_ylabel()
    for task in synthetic.OWN:
        wanted = f1[(f1["task"] == task) & (f1["layer"] >= 1)]
        assert np.allclose(lines["-", styles[task].colour], wanted["f1"])
        assert np.allclose(lines[":", styles[task].colour], wanted["f1_random"])
    plt.close(figure)


def test_techniques_side_by_side_all_peak_at_one():
    frames = summarise_runs(
        synthetic.runs(synthetic.OWN, {"mini": {}}, (1,), ("swapping", "gradients"), 6)
    )
    weights = frames["layer_weights"]
    spike = (weights["technique"] == "gradients") & (weights["layer"] == 2)
    weights.loc[spike, "weight"] = 50.0
    mcog = frames["mcog"].assign(found="yes")
    task = next(iter(synthetic.OWN))
    mcog.loc[mcog["task"].eq(task) & mcog["technique"].eq("swapping"), "found"] = "no"
    figure = technique_curves(weights, mcog, synthetic.OWN, {"mini": {}}, "mini")
    lines = [line.get_ydata() for axes in figure.axes for line in axes.lines]
    assert len(lines) == 4 and all(np.max(line) == 1 for line in lines)
    assert "= 1" in figure.get_supylabel()
    pale = {axes.get_title(): [line.get_alpha() for line in axes.lines] for axes in figure.axes}
    assert pale.pop(synthetic.OWN[task]["label"]) == [PALE, None], "swapping found nothing here"
    assert list(pale.values()) == [[None, None]]
    plt.close(figure)


@pytest.mark.parametrize("value,text", [(0.0, ".00"), (0.154, ".15"), (1.0, "1"), (1.26, "1.26")])
def test_short_numbers(value, text):
    assert short(value) == text
