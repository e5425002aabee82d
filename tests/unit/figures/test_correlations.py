"""Maps of correlations: an empty cell says why it is empty."""

import matplotlib.pyplot as plt

import synthetic
from memloc.figures.correlations import correlation_maps
from memloc.summary.correlations import correlations
from memloc.summary.weights import summarise_runs


def test_empty_cells_of_correlations_say_why():
    frames = summarise_runs(
        synthetic.runs(synthetic.OWN, {"mini": {}}, (1,), ("swapping", "gradients", "probing"), 6)
    )
    table = correlations(frames["layer_weights"], frames["mcog"], seed=0)
    figure = correlation_maps(table, "mcog", {"mini": {}})
    assert len(figure.axes) == 1  # one model: nothing to compare between models
    said = [" ".join(text.get_text().split()) for text in figure.axes[0].texts]
    assert said.count("n too small") == 6
    plt.close(figure)
    whole = correlation_maps(table, "layer_weights", {"mini": {}})
    assert not any("small" in text.get_text() for text in whole.axes[0].texts)
    plt.close(whole)


def test_a_study_that_found_nothing_has_a_figure_that_says_so():
    frames = summarise_runs(synthetic.runs(synthetic.OWN, {"mini": {}}, (1,), ("swapping",), 6))
    table = correlations(frames["layer_weights"], frames["mcog"].assign(found="no"), seed=0)
    figure = correlation_maps(table, "mcog", {"mini": {}})
    assert "no technique found anything" in figure.texts[0].get_text()
    plt.close(figure)
