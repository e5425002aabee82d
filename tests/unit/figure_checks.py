"""What every figure must keep: no text on another, and none cut."""

import re
import zlib
from contextlib import suppress
from itertools import combinations

import numpy as np
from matplotlib.text import Text
from PIL import Image

from memloc.figures.fit import fit
from memloc.figures.style import look

SHARES = (1, 0.833, 0.694)  # of the text's size: of text, numbers on axes, values in cells


def fitted(figure):
    """A figure as it is when it is saved."""
    with look():
        fit(figure)
    figure.draw_without_rendering()  # the words of a legend have no place before
    return figure


def boxes(texts):
    """Text, box, and whether it is slanted: such a box is far larger than its ink."""
    shown = [t for t in texts if t.get_visible() and t.get_text().strip()]
    return [(t.get_text(), t.get_window_extent(), t.get_rotation() % 90 > 0) for t in shown]


def visible_axes(figure):
    return [axes for axes in figure.axes if axes.get_visible()]


def in_view(axis):
    low, high = sorted(axis.get_view_interval())
    return [t.label1 for t in axis.get_major_ticks() if low - 1e-9 <= t.get_loc() <= high + 1e-9]


def check_texts(found):
    """Assert that in no figure (name -> figure) a text lies on another or is cut."""
    for name, figure in found.items():
        texts = []
        for axes in visible_axes(figure):
            ticks = in_view(axes.xaxis) + in_view(axes.yaxis)
            labels = [axes.title, axes.xaxis.label, axes.yaxis.label]
            legend = axes.get_legend()
            texts += boxes(ticks + labels + (list(legend.get_texts()) if legend else []))
        for legend in figure.legends:
            texts += boxes(legend.get_texts())
        whole = (figure._suptitle, figure._supxlabel, figure._supylabel)
        texts += boxes([text for text in whole if text is not None])
        for (a, box, slanted), (b, other, also) in combinations(texts, 2):
            inner = box.padded(-0.5), other.padded(-0.5)
            if not (slanted or also):
                assert not inner[0].overlaps(inner[1]), f"{name}: {a!r} on {b!r}"
        for text, box, _ in texts:
            frame = figure.bbox.padded(2)
            assert frame.contains(*box.min) and frame.contains(*box.max), f"{name}: {text!r} cut"


def text_sizes(pdf):
    """Sizes in points of all text of a PDF's bytes."""
    found = set()
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.S):
        with suppress(zlib.error):
            # Not zlib.decompress: the last byte of a stream can be one that ends a line.
            content = zlib.decompressobj().decompress(stream)
            found |= {float(size) for size in re.findall(rb"/[\w-]+ ([\d.]+) Tf", content)}
    return found


def is_asked_for(sizes, page):
    """Whether a page has such sizes of text."""
    wanted = [page.font_size * share for share in SHARES]
    return all(any(abs(size - each) < 0.02 for each in wanted) for size in sizes)


def drawn_sizes(figure):
    """Sizes in points of all text that a figure shows."""
    texts = figure.findobj(Text)
    return {t.get_fontsize() for t in texts if t.get_visible() and t.get_text().strip()}


def check_pdf(path, page):
    """Assert that a PDF has no Type 3 font, is no larger than a page, and has its sizes of text."""
    pdf = path.read_bytes()
    assert b"/Type3" not in pdf
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", pdf)
    wide, high = (float(side) / 72 for side in box.groups())
    assert wide <= page.width + 0.01 and high <= page.height + 0.01, (wide, high)
    sizes = text_sizes(pdf)
    assert sizes and is_asked_for(sizes, page), sizes


def check_png(path, dots=300):
    """Assert that a PNG has so many dots per inch, and no ink at its edge."""
    with Image.open(path) as image:
        assert round(image.info["dpi"][0]) == dots
        ink = np.array(image.convert("L")) < 250
    rim = max(1, dots // 150)
    edges = ink[:rim], ink[-rim:], ink[:, :rim], ink[:, -rim:]
    assert ink.any() and not any(edge.any() for edge in edges), f"{path.name}: ink at the edge"
