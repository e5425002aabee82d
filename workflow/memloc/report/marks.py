"""The marks of tasks on the page: the same shapes and colours as in the figures."""

import numpy as np
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path as Outline

from memloc.figures.style import GROUPS, Entries, task_styles

SIZE, MARGIN = 16, 2.5  # of a mark's square, in its own units
LETTERS = {Outline.MOVETO: "M", Outline.LINETO: "L", Outline.CURVE3: "Q", Outline.CURVE4: "C"}


def outline(marker: str) -> str:
    """A matplotlib marker as the `d` of an SVG path, in a square of SIZE with a margin."""
    style = MarkerStyle(marker)
    path = style.get_path().transformed(style.get_transform())
    box = path.get_extents()
    scale = (SIZE - 2 * MARGIN) / max(box.width, box.height)
    middle = np.add(box.min, box.max) / 2
    parts = []
    for points, code in path.iter_segments():
        if code == Outline.CLOSEPOLY:
            parts.append("Z")
            continue
        pairs = (points.reshape(-1, 2) - middle) * [scale, -scale] + SIZE / 2  # y grows downwards
        parts.append(LETTERS[code] + " ".join(f"{x:.2f},{y:.2f}" for x, y in pairs))
    return "".join(parts)


def marks(tasks: Entries) -> list[dict]:
    """Mark of each task: task, path and colour."""
    styles = task_styles(tasks).items()
    return [{"task": n, "path": outline(s.marker), "colour": s.colour} for n, s in styles]


def groups(tasks: Entries) -> list[dict]:
    """Tasks by group, in the order of all figures: title and tasks {name, label}."""
    styles = task_styles(tasks)
    found = dict.fromkeys(style.group for style in styles.values())
    return [
        {
            "title": GROUPS[group][0],
            "tasks": [
                {"name": name, "label": style.label}
                for name, style in styles.items()
                if style.group == group
            ],
        }
        for group in found
    ]
