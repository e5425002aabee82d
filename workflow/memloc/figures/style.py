"""How every figure looks: a colour and marker per task, a line per model, files without dates.

Colours come in families, one per task category, that stay apart under the common forms of colour
blindness; within a family shades differ in lightness, and the marker tells tasks apart without any
colour. Tasks of the paper keep their style whichever of them a run covers.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain, count, product
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from PIL import Image

from memloc.figures.fit import fit
from memloc.figures.fonts import OWN, fit_fonts
from memloc.figures.page import page
from memloc.store.files import atomic
from memloc.study.techniques import FALLBACK_MARK, TECHNIQUES

# tasks: name -> {category, label}; models: name -> {label}; both in the order they are shown in
Entries = Mapping[str, Mapping[str, Any]]
# category: heading and shades: each at least 2.9:1 against white, and none near another's
GROUPS = {
    "nlu": ("NLU", ("#0b2f66", "#0072b2", "#3d9bdc", "#5a4fcf", "#9b8fbf")),
    "sentiment": ("Sentiment", ("#8c4a00", "#d17a00", "#998f63")),
    "hate": ("Hate speech", ("#8b1a4f", "#d6457f")),
    "topic": ("Topics", ("#00532f", "#009e73", "#4a8000")),
    "other": ("Other tasks", ("#222222", "#6b6b6b", "#b2887d")),
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "p", "h", "<", ">", "d", "8")
PAPER = {  # task: shade within its group, marker
    "wic": (0, "o"), "rte": (1, "X"), "mrpc": (2, "s"), "cola": (3, "h"), "boolq": (4, "D"),
    "sst2": (0, "d"), "sst5": (1, "^"), "emotion": (2, "P"),
    "implicithate": (0, "v"), "stormfront": (1, "p"),
    "reuters": (0, "<"), "trec": (1, "*"),
}  # fmt: skip
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
SAVED: dict[Any, Any] = {
    "pdf.fonttype": 42, "svg.hashsalt": "memloc", "savefig.dpi": 300, "savefig.pad_inches": 0.04,
    "savefig.facecolor": "white",
    "figure.constrained_layout.use": False,  # all has its place, and needn't be drawn to find it
}  # fmt: skip
TOO_SMALL = (
    "%s has no room at %g inches with text of %g points: its files are larger, or names in it "
    "smaller, than that. Raise figures.width, or lower figures.font_size"
)
METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskStyle:
    """Look of one task; `group` is a key of GROUPS, `marker` any of matplotlib's."""

    label: str
    group: str
    colour: str
    marker: Any


Styles = dict[str, TaskStyle]


def group_of(category: str | None) -> str:
    """The group of a task file's category; unknown ones are "other"."""
    return category if category in GROUPS else "other"


def task_styles(tasks: Entries) -> Styles:
    """Styles by task, ordered by group.

    Every task has its own (colour, marker). Tasks outside the paper take, in the order given, the
    first free pair of their group.
    """
    groups = {name: group_of(spec.get("category")) for name, spec in tasks.items()}
    taken: dict[str, tuple[str, Any]] = {}
    for name, group in groups.items():
        if name in PAPER:
            shade, marker = PAPER[name]
            shades = GROUPS[group][1]
            taken[name] = (shades[shade % len(shades)], marker)
    for name, group in groups.items():
        if name not in taken:
            used = set(taken.values())
            taken[name] = next(pair for pair in _pairs(group) if pair not in used)
    order = sorted(groups, key=lambda name: list(GROUPS).index(groups[name]))
    return {
        name: TaskStyle(tasks[name].get("label") or name, groups[name], *taken[name])
        for name in order
    }


def _pairs(group: str) -> Iterator[tuple[str, Any]]:
    """(colour, marker) pairs of a group without an end.

    First along both at once, then every other pair, then stars of ever more points.
    """
    shades = GROUPS[group][1]
    start = list(GROUPS).index(group)  # groups begin with different markers
    markers = MARKERS[start:] + MARKERS[:start]
    yield from ((shades[i % len(shades)], marker) for i, marker in enumerate(markers))
    yield from product(shades, markers)
    for points in count(4):
        stars = [(points, 1, turn) for turn in (0, 180 / points)]
        yield from product(shades, stars)


def model_lines(models: Sequence[str]) -> dict[str, Any]:
    """A line style per model, in the configured order; after LINES ever more dots to a dash."""
    further = ((0, (6, 1, *(1, 1) * dots)) for dots in count(4))
    return dict(zip(models, chain(LINES, further), strict=False))


def technique_mark(name: str) -> tuple[str, str, Any]:
    """(colour, marker, line) of a technique where techniques are compared within a task."""
    return TECHNIQUES[name].mark if name in TECHNIQUES else FALLBACK_MARK


def for_files() -> None:
    """Have this process draw to files, with or without a display, and take a $ in labels for a $.

    For jobs, not for notebooks. Not in look(): ticks are made when a figure is saved.
    """
    matplotlib.use("Agg")
    matplotlib.rcParams["text.parse_math"] = False


def look() -> AbstractContextManager[None]:
    """Context manager with the figures' rcParams."""
    return plt.rc_context(
        {
            "font.family": "sans-serif",
            "font.sans-serif": [OWN],  # ships with matplotlib: same glyphs everywhere
            "font.size": page().font_size,  # of which all other sizes are shares
            "axes.titlesize": "medium",
            "axes.labelsize": "medium",
            "figure.titlesize": "medium",
            "figure.labelsize": "medium",
            "xtick.labelsize": "small",
            "ytick.labelsize": "small",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#dddddd",
            "grid.linewidth": 0.5,
            "legend.fontsize": "small",
            "legend.frameon": False,
            "lines.linewidth": 1.3,
            "lines.markersize": 4.5,
            "figure.dpi": 100,
            "figure.constrained_layout.use": True,
        }
    )


LAYER_WIDTH = 0.17  # inches an axis needs per layer so that all numbers fit


def layer_ticks(axis: Axis, n_layers: int, first: float = 1, never: bool = False) -> None:
    """Ticks and numbers 1..L on a matplotlib axis whose layer 1 is at `first`.

    `never`: with the place L + 1, which is that of events that never happen.
    """
    words = [str(number) for number in range(1, n_layers + 1)] + (["never"] if never else [])
    axis.set_ticks([number + first for number in range(len(words))], words, fontsize="small")


def save(figure: Figure, paths: Sequence[str | Path]) -> None:
    """Write a figure to each path (.pdf, .png, .svg), atomically, always the same bytes; close it.

    Its settings are those that count when a file is written, not those that it was drawn with:
    letters stay text in a PDF (TrueType; publishers refuse Type 3). What has no room on the page
    makes the file larger than the page instead of being cut, and is logged.
    """
    with warnings.catch_warnings(), look(), plt.rc_context(SAVED):
        fit_fonts(figure)  # which says what glyphs are missing
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        warnings.filterwarnings("ignore", "constrained_layout not applied")  # fit says so
        whole = fit(figure)
        if not whole:
            logger.warning(TOO_SMALL, Path(paths[0]).stem, page().width, page().font_size)
        for path in paths:
            kind = Path(path).suffix[1:]
            with atomic(path) as draft:
                edges = None if whole else "tight"
                how: dict[str, Any] = {"metadata": METADATA[kind], "bbox_inches": edges}
                if kind != "png":
                    figure.savefig(draft, **how)
                else:  # in haste: it is written again
                    figure.savefig(draft, pil_kwargs={"compress_level": 1}, **how)
                    _shrink(draft)
    plt.close(figure)


def _shrink(path: Path) -> None:
    """Write a PNG again with 256 colours: a third of the size, and no difference one can see.

    Colours that few pixels have, such as that of a title, count like others.
    """
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(
            256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    small.save(path, optimize=True, dpi=(SAVED["savefig.dpi"],) * 2)
