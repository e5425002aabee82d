"""Fronts and areas of edits: what is drawn, and that no text lies on another."""

import numpy as np
import pandas as pd
import pytest

from figure_checks import check_texts, fitted, visible_axes
from memloc.figures.edits import edit_fronts, mean_by_layer, reverted_areas
from memloc.summary.edits import edit_table
from memloc.windows import all_windows
from synthetic import MODELS, TASKS, windows


def fronts():
    runs = [
        ({"task": task, "model": "bert", "technique": technique, "seed": 1}, windows(i, 1, 6))
        for i, task in enumerate(TASKS)
        for technique in ("swapping", "retraining", "patching")
    ]
    own = {(task, "bert", 1): 0.1 for task in TASKS}
    return edit_table(runs, own)


def test_every_task_has_its_panel():
    frame = fronts()
    figure = edit_fronts(frame, TASKS, MODELS, "bert")
    assert len(visible_axes(figure)) == frame["task"].nunique()
    areas = reverted_areas({task: [windows(0, 1, 6)] for task in TASKS}, TASKS, "BERT · Swapping")
    assert len(visible_axes(areas)) == len(TASKS)
    check_texts({"edits": fitted(figure), "reverted": fitted(areas)})


def test_a_layers_share_is_the_mean_over_lengths_of_the_windows_with_it():
    frame = pd.DataFrame(all_windows(2), columns=["start", "end"])
    frame["to_original"] = [0.2, 0.6, 0.4]  # layer 1, both, layer 2
    assert mean_by_layer([frame], "to_original") == pytest.approx([0.4, 0.5])
    assert np.isnan(mean_by_layer([frame.assign(to_original=np.nan)], "to_original")).all()
