"""Table 2 as a figure: every correlation, the paper's beside it, and what there is none of."""

import matplotlib.pyplot as plt
import numpy as np

import synthetic
from depth_tables import tables as depth_tables
from figure_checks import visible_axes
from memloc.figures.depth import FAMILIES, depth_correlations
from memloc.summary.correlations import correlations


def test_depth_has_a_panel_per_level_with_the_papers_mark():
    weights, mcog, events, scores = depth_tables(models=("bert", "opt"))
    table = correlations(weights, mcog, 0, events, scores)
    figure = depth_correlations(table, synthetic.MODELS)
    figure.canvas.draw()
    panels = visible_axes(figure)
    assert [axes.get_title() for axes in panels] == ["all models", "BERT", "OPT"]
    for axes, level in zip(panels, ("all", "bert", "opt"), strict=True):
        part = table[(table["level"] == level) & table["family"].isin(FAMILIES)]
        for marker, column in (("o", "rho"), ("D", "paper_rho")):
            drawn = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == marker]
            assert np.allclose(sorted(drawn), sorted(part[column].dropna()))
    plt.close(figure)


def test_depth_says_where_there_are_too_few_tasks():
    frames = depth_tables(tasks=("wic", "trec"), models=("bert",))
    table = correlations(*frames[:2], 0, *frames[2:])
    figure = depth_correlations(table, synthetic.MODELS)
    said = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert said.count("n too small") == 2 * 8
    plt.close(figure)
