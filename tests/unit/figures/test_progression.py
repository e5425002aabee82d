"""Depth by epoch: a panel per quantity that there is."""

import pandas as pd

from memloc.figures.progression import progression
from memloc.summary.progression import ACCURACY, COLUMNS, EVENT, MCOG


def test_the_figure_has_a_panel_per_quantity():
    names = {MCOG: "swapping", EVENT: "crossing", ACCURACY: "noisy_accuracy"}
    rows = [
        ("a", "m", epoch, measure, name, value, 0.1, 2, 0, "")
        for measure, name in names.items()
        for epoch, value in ((1, 1.0), (4, 4.0 if measure == EVENT else 3.0))
    ]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    tasks = {"a": {"label": "A", "category": "nlu"}}
    figure = progression(frame, tasks, {"m": {"label": "M"}}, "m", 3)
    panels = [axes for axes in figure.axes if axes.get_visible()]
    titles = ["Accuracy in training", "M-CoG: Layer swapping", "Crossing"]
    assert [axes.get_title() for axes in panels] == titles
    ticks = [[label.get_text() for label in axes.get_yticklabels()] for axes in panels[1:]]
    assert ticks == [["1", "2", "3"], ["1", "2", "3", "never"]]  # where an event never happens
    assert panels[2].get_ylim()[1] > 4
