"""A figure made to fit a page of a paper: its width, and the numbers of its layers.

Drawers size a figure by what it holds. What is wider than the page's text is made as narrow as it:
its panels shrink and its text doesn't. Of numbers of layers that would then touch each other every
second one, or third, is left out.
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
    figure.canvas.draw()
    for axes in figure.axes:
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            thin([label for label in labels if label.get_visible()])


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
