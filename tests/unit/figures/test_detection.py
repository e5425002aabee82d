"""The figure of how well noise is found."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import synthetic
from figure_checks import check_texts, fitted
from memloc.figures.detection import detection


@pytest.mark.parametrize("only", [None, 1])
def test_every_method_of_every_task_stands_in_its_models_column(only):
    tasks = dict(list(synthetic.TASKS.items())[: only and 2])
    models = dict(list(synthetic.MODELS.items())[:only])
    frame = synthetic.detection_scores(tasks, models)
    figure = detection(frame, tasks, models)
    check_texts({"detection": fitted(figure)})
    shown = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in shown] == [m["label"] for m in models.values()]
    for axes, model in zip(shown, models, strict=True):
        dots = [line for line in axes.lines if len(np.atleast_1d(line.get_xdata())) == 1]
        drawn = sorted(float(np.atleast_1d(line.get_xdata())[0]) for line in dots)
        wanted = frame.loc[frame["model"] == model, "auroc"].tolist() + [0.5] * len(tasks)
        assert drawn == pytest.approx(sorted(wanted))
    plt.close("all")


def test_a_perfect_order_has_no_bar():
    frame = synthetic.detection_scores(["rte"], ["bert"]).assign(auroc=1.0, ci_low=np.nan)
    figure = detection(frame, {"rte": synthetic.TASKS["rte"]}, {"bert": {"label": "BERT"}})
    check_texts({"detection": fitted(figure)})
    plt.close("all")
