"""A figure made to fit a page of a paper: its width, its legends, the numbers of its layers.

Drawers size a figure by what it holds. What is wider than the page's text is made as narrow as it:
its panels shrink and its text doesn't. Then legends take fewer columns, and of numbers of layers
that would touch each other every second one, or third, is left out.
"""

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.figure import Figure
from matplotlib.text import Text

WIDTH = 7.0  # inches of a page's text
GAP = 1.0  # pixels between numbers of an axis


def fit(figure: Figure) -> None:
    """Have a figure fit the width of a page. Its height is what it holds."""
    wide, high = figure.get_size_inches()
    figure.set_size_inches(min(wide, WIDTH), high)
    _legends(figure)
    figure.canvas.draw()
    for axes in figure.axes:
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            thin([label for label in labels if label.get_visible()])


def _legends(figure: Figure) -> None:
    """Legends no wider than the figure, by fewer columns."""
    figure.canvas.draw()
    for legend in [*figure.legends, *(a.get_legend() for a in figure.axes if a.get_legend())]:
        columns = legend._ncols
        while columns > 1 and legend.get_window_extent().width > figure.bbox.width:
            columns -= 1
            legend.set_ncols(columns)
            figure.canvas.draw()


def thin(labels: Sequence[Text]) -> None:
    """Of labels that are numbers leave out every second, or more, until none touches."""
    numbers = [label for label in labels if label.get_text().isdigit()]
    if len(numbers) < 3:
        return
    step = 1
    while step < len(numbers) and _touch(numbers[::step]):
        step += 1
    for i, label in enumerate(numbers):
        if i % step:
            label.set_visible(False)


def _touch(numbers: Sequence[Text]) -> bool:
    boxes = [label.get_window_extent().padded(GAP / 2) for label in numbers]
    return any(one.overlaps(other) for one, other in pairwise(boxes))
