"""What every figure must keep: no text on another, and none cut."""

from itertools import combinations
from unittest.mock import patch

import numpy as np
from PIL import Image

from memloc.figures.style import SAVED, save


def boxes(texts):
    shown = [t for t in texts if t.get_visible() and t.get_text().strip()]
    return [(t.get_text(), t.get_window_extent()) for t in shown]


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
        for (a, box), (b, other) in combinations(texts, 2):
            inner = box.padded(-0.5), other.padded(-0.5)
            # boxes of slanted labels are far larger than their ink
            if name != "correlations":
                assert not inner[0].overlaps(inner[1]), f"{name}: {a!r} on {b!r}"
        for text, box in texts:
            frame = figure.bbox.padded(2)
            assert frame.contains(*box.min) and frame.contains(*box.max), f"{name}: {text!r} cut"


def check_files(found, folder):
    """Assert that no file has ink at its edge and no PDF a Type 3 font; closes the figures."""
    for name, figure in found.items():
        png, pdf = folder / f"{name}.png", folder / f"{name}.pdf"
        with patch.dict(SAVED, {"savefig.dpi": 150}):  # enough to see an edge
            save(figure, [png, pdf])
        with Image.open(png) as image:
            ink = np.array(image.convert("L")) < 250
        edges = ink[:1], ink[-1:], ink[:, :1], ink[:, -1:]
        assert ink.any() and not any(edge.any() for edge in edges), f"{name}: ink at the edge"
        assert b"/Type3" not in pdf.read_bytes(), name
