"""A figure made to fit its page: as wide as its panels need, and no larger than the page.

Drawers say how large the panels of a figure should be (Sheet). What is around them (titles, labels,
legends) takes the room that it needs; where the page is too small for both, panels shrink and text
doesn't. Titles and labels that are longer than their panel are broken into lines, and of
numbers of layers that would touch each other every second one, or third, is left out.
"""

import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator

from memloc.figures.page import page

SAME = 0.001  # inches between sizes that are one
GAP = 1.0  # pixels between names and numbers of an axis
NARROW = 9  # letters; titles are turned upright where one panel is narrower than this
ROOM = 1.25  # of a panel's width, that a word above or below it has
LEAST = 0.1  # inches; a panel that is narrower or lower shows nothing any more
UPRIGHT = 1.1  # inches that a turned title takes at most
CELL = "cell"  # gid of values in the cells of a map
FULL = 0.9  # of a cell's width, that its value may have: beyond, one number runs into the next
NOTE = "note"  # gid of words within a panel


class Sheet(Figure):
    """A figure that knows how large all its panels together should be, in inches.

    square: panels that can't be as wide as they should are as much lower, so that cells and scales
    of both axes stay alike where the page's height allows.
    """

    panels: tuple[float, float] = (0.0, 0.0)
    square: bool = False


def fit(figure: Figure) -> bool:
    """Size a figure, and break and thin out its text; whether all of it then stands on the page."""
    room = page()
    wide, high = figure.get_size_inches()
    figure.set_size_inches(min(wide, room.width), min(high, room.height))
    # Lines are broken before the height is known, and labels beside panels again once it is.
    changed = True
    for step in (_widen, _break_lines, _resize, _break_lines):
        if changed:
            _lay_out(figure)
        changed = step(figure)
    if changed:
        _lay_out(figure)
    with rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)  # all has its place; with "none", files are drawn twice
    named = [a for a in figure.axes if isinstance(a.yaxis.get_major_locator(), FixedLocator)]
    squeezed = [_squeeze(axes.get_yticklabels()) for axes in named]
    for axes in figure.axes:
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            thin([label for label in labels if label.get_visible()])
    _clear_cells(figure)
    return _inside(figure) and not any(squeezed) and not _vanished(figure)


def _lay_out(figure: Figure) -> None:
    """Give panels their places, which is a small part of drawing them."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)


def _widen(figure: Figure) -> bool:
    """Give a figure the width that it will have, and leave it high; whether it had another."""
    return _resize(figure, figure.get_figheight())


def _resize(figure: Figure, high: float | None = None) -> bool:
    """Give a figure the size of its panels and of what is around them, as far as the page goes.

    high: its height, where that is given. Returns whether it had another size.
    """
    room, size = page(), figure.get_size_inches()
    if not isinstance(figure, Sheet):
        return False
    inner, least = _inner(figure), 0.1 + sum(_width(legend) for legend in figure.legends)
    around = size[0] - inner[0], size[1] - inner[1]
    wide = min(room.width, max(figure.panels[0] + around[0], least))
    share = min(1.0, (wide - around[0]) / figure.panels[0]) if figure.square else 1.0
    figure.set_size_inches(wide, high or min(room.height, share * figure.panels[1] + around[1]))
    return bool(abs(figure.get_size_inches() - size).max() > SAME)


def _width(artist: object) -> float:
    """Inches that a legend takes from side to side."""
    return artist.get_window_extent().width / artist.get_figure().dpi  # type: ignore[attr-defined]


def _inner(figure: Sheet) -> tuple[float, float]:
    """Inches that the panels of a row take together, and those of a column."""
    wide: dict[int, float] = {}
    high: dict[int, float] = {}
    size = figure.get_size_inches()
    for axes in _panels(figure):
        place, spec = axes.get_position(original=True), axes.get_subplotspec()
        if spec is not None:
            wide[spec.colspan.start] = place.width * size[0]
            high[spec.rowspan.start] = place.height * size[1]
    return sum(wide.values()), sum(high.values())


def _panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_subplotspec() is not None]


def _break_lines(figure: Figure) -> bool:
    """Break what is longer than its panel, or than the figure, at its spaces; whether any is."""
    whole = figure.bbox
    own = (figure._suptitle, figure._supxlabel)  # type: ignore[attr-defined]
    changed = [_break(text, whole.width) for text in own if text is not None]
    if (label := figure._supylabel) is not None:  # type: ignore[attr-defined]
        changed.append(_break(label, whole.height, upright=True))
    panels = _panels(figure)
    turned = any(_too_narrow(axes) for axes in figure.axes)
    for axes in figure.axes:
        width, height = axes.bbox.width, axes.bbox.height
        if turned:
            changed.append(_turn([axes.title], rotation=90, va="bottom"))
        changed.append(_break(axes.title, UPRIGHT * figure.dpi if turned else width, turned))
        if isinstance(axes.xaxis.get_major_locator(), FixedLocator):
            changed.append(_slant([label for label in axes.get_xticklabels() if label.get_text()]))
        changed.append(_break(axes.xaxis.label, max(width, 0.5 * figure.dpi)))
        beside = 0.0 if axes in panels else 0.5 * figure.bbox.height  # nothing is near a scale's
        changed.append(_break(axes.yaxis.label, max(height, 0.5 * figure.dpi), True, beside))
        for note in [text for text in axes.texts if text.get_gid() == NOTE]:
            changed.append(note.get_in_layout())
            note.set_in_layout(False)  # or its panel would stand apart from the next
            _break(note, width)
    return any(changed)


def _letters(text: Text, pixels: float, upright: bool) -> int:
    """How many letters of a text, of its mean width, stand in so many pixels."""
    box = text.get_window_extent()
    longest = max(map(len, text.get_text().split("\n")))
    return int(pixels * longest / max(1.0, box.height if upright else box.width))


def _break(text: Text, pixels: float, upright: bool = False, word: float = 0.0) -> bool:
    """Break a text into lines that are so long at most; whether it isn't as it was.

    A single word may be longer by a little (ROOM), and up to `word` pixels.
    """
    before = text.get_text()
    lines = before.split("\n")
    if not any(lines):
        return False
    letters = max(1, _letters(text, pixels, upright))
    if max(map(len, lines)) > letters:
        longest = max(map(len, re.split(r"[\s-]", before)))
        most = max(ROOM * letters, _letters(text, word, upright))
        letters = longest if letters < longest <= most else letters
        broken = [part for line in lines for part in textwrap.wrap(line, letters)]
        text.set_text("\n".join(broken))
    return bool(text.get_text() != before)


def _too_narrow(axes: Axes) -> bool:
    """Whether a panel has no room for the longest word of its title, nor for NARROW letters."""
    longest = max(map(len, axes.get_title().split() or [""]))
    return _letters(axes.title, ROOM * axes.bbox.width, False) < min(longest, NARROW)


def _slant(labels: Sequence[Text]) -> bool:
    """Slant the names on an x-axis where one touches the next; whether they weren't slanted."""
    if any(label.get_text().isdigit() for label in labels) or not _touch(labels):
        return False
    return _turn(labels, rotation=40, ha="right", rotation_mode="anchor")


def _turn(texts: Sequence[Text], rotation: float, **how: str) -> bool:
    """Turn texts; whether one wasn't turned so."""
    changed = any(text.get_rotation() != rotation for text in texts)
    for text in texts:
        text.set(rotation=rotation, **how)
    return changed


def _squeeze(labels: Sequence[Text]) -> bool:
    """Make names that stand below each other smaller where they touch; whether they did."""
    names = [label for label in labels if label.get_visible() and label.get_text()]
    if not names or any(name.get_text().isdigit() for name in names) or not _touch(names, 0):
        return False
    boxes = sorted((name.get_window_extent() for name in names), key=lambda box: float(box.y0))
    share = min((two.y0 - one.y0) / one.height for one, two in pairwise(boxes))
    for name in names:
        name.set_fontsize(max(0.1, share) * name.get_fontsize())
    return True


def thin(labels: Sequence[Text]) -> None:
    """Of labels that are numbers leave out every second, or more, until none touches another."""
    shown = [label for label in labels if label.get_text()]
    numbers = [label for label in shown if label.get_text().isdigit()]
    if len(numbers) < 3:
        return
    step = 1
    while step < len(numbers) and _touch(numbers[::step]):
        step += 1
    for i, label in enumerate(numbers):
        label.set_visible(i % step == 0)
    for words in [label for label in shown if label not in numbers]:  # "never" beside the last
        for number in numbers:
            if number.get_visible() and _touch([number, words]):
                number.set_visible(False)


def _touch(labels: Sequence[Text], gap: float = GAP) -> bool:
    boxes = [label.get_window_extent().padded(gap / 2) for label in labels]
    return any(one.overlaps(other) for one, other in pairwise(boxes))


def _clear_cells(figure: Figure) -> None:
    """Leave out the values in all cells of a figure's maps where one has no room in its cell."""
    found = [
        (axes, [text for text in axes.texts if text.get_gid() == CELL]) for axes in figure.axes
    ]
    for axes, values in found:
        origin, corner = axes.transData.transform([(0, 0), (1, 1)])
        cell = abs(corner - origin)
        boxes = [value.get_window_extent() for value in values if value.get_text()]
        if any(box.width > FULL * cell[0] or box.height > cell[1] for box in boxes):
            for _, others in found:
                for value in others:
                    value.set_visible(False)
            return


def _inside(figure: Figure) -> bool:
    """Whether nothing that is drawn reaches over the edge."""
    box, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
    return bool(min(box.x0, box.y0) > -0.01 and box.x1 < wide + 0.01 and box.y1 < high + 0.01)


def _vanished(figure: Figure) -> bool:
    """Whether titles and labels have left a panel no room."""
    shown = [axes.bbox for axes in _panels(figure) if axes.get_visible()]
    return any(min(box.width, box.height) < LEAST * figure.dpi for box in shown)
