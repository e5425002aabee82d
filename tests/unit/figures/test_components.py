"""Curves of swapped layers and of their blocks."""

import pandas as pd

from memloc.figures.components import component_curves


def test_no_curve_of_blocks_leaves_its_panel():
    """Panels share an axis: a task drawn later may lie higher than those before it."""
    rows = [
        {"task": task, "model": "m", "component": component, "layer": layer,
         "weight_raw": height, "sd_raw": 0.01, "weight": height, "sd": 0.01}
        for task, height in (("a", 0.1), ("b", 0.9))
        for component in ("layer", "attention", "mlp")
        for layer in (1, 2)
    ]  # fmt: skip
    tasks = {name: {"label": name, "category": "nlu"} for name in "ab"}
    figure = component_curves(pd.DataFrame(rows), tasks, {}, "m")
    for axes in figure.axes:
        low, high = axes.get_ylim()
        for line in axes.get_lines():
            assert low <= min(line.get_ydata()) and max(line.get_ydata()) <= high
