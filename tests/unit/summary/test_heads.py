"""Means over seeds of single heads, by hand, and their map."""

import pandas as pd
import pytest

from figure_checks import check_texts, visible_axes
from memloc.figures.heads import head_maps
from memloc.summary.heads import MEANS, mean_heads


def table(errors):
    frame = pd.DataFrame([(1, 1), (1, 2), (2, 1), (2, 2)], columns=["layer", "head"])
    return frame.assign(**dict.fromkeys(MEANS, 0.5)).assign(noisy_error=errors)


def test_means_over_seeds_by_hand():
    runs = [({"task": task, "model": "m", "seed": s}, table([0.0, 0.1 * s, 0.2, 0.4 * s]))
            for task in "ab" for s in (1, 2)]  # fmt: skip
    found = mean_heads(runs)
    assert found["noisy_error"].tolist() == pytest.approx([0.0, 0.15, 0.2, 0.6] * 2)
    assert found["sd"].tolist() == pytest.approx([0.0, 0.1 / 2**0.5, 0.0, 0.4 / 2**0.5] * 2)
    assert (found["n_seeds"] == 2).all() and (found["to_original"] == 0.5).all()
    tasks = {name: {"label": name, "category": "nlu"} for name in "ab"}
    figure = head_maps(found, tasks, {}, "m")
    figure.canvas.draw()
    assert len(visible_axes(figure)) == 2 + 1  # maps and the scale of both
    check_texts({"heads": figure})
