"""Table 2 as a figure: correlations of depth with generalisation, ours beside the paper's."""

from collections.abc import Iterable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from memloc.figures.draw import Given
from memloc.figures.page import page
from memloc.figures.panels import handle, label_lowest, label_of, legend_below, open_panels, present
from memloc.figures.style import Entries, look
from memloc.summary.correlations import FOUND
from memloc.summary.depth import POOLED

WORDS = {
    "crossing": "crossing", "probing-memorisation": "mem. » gen.", "mcog": "M-CoG",
    "initiation": "initiation", "probing-initiation": "probes 90 %",
    "score": "gen. score", "validation_scaled": "val. score", "all": "all models",
}  # fmt: skip
OURS, PAPER = "#111111", "#c2410c"
FAMILIES = ("generalisation", "events")
COLUMNS = 3
Quantity = tuple[str, str, str]  # block of rows ("events", or a measure of generalisation), a, b


def rows_of(frame: pd.DataFrame) -> dict[Quantity, str]:
    """The pairs of quantities from the figure's top to its bottom, and how each is written."""
    found: dict[Quantity, str] = {}
    for row in frame.itertuples():
        others = "" if row.measure == "generalisation" else f" / {WORDS[row.b]}"
        found.setdefault((row.b if row.measure == "generalisation" else "events", row.a, row.b),
                         WORDS[row.a] + others)  # fmt: skip
    order = ["score", "validation_scaled", "events"]
    return dict(sorted(found.items(), key=lambda item: order.index(item[0][0])))


def depth_correlations(frame: pd.DataFrame, models: Entries) -> Figure:
    """A panel per level (all models, each model), a row per pair of quantities."""
    chosen = frame[frame["family"].isin(FAMILIES) & frame["included"].eq(FOUND)]
    rows = rows_of(chosen)
    levels = present(["all", *models], chosen["level"])
    with look():
        height = max(0.17, page().line) * len(rows)
        figure, panels, columns = open_panels(
            len(levels), COLUMNS, 2.6, height, sharex=True, sharey=True
        )
        for axes, level in zip(panels, levels, strict=True):
            _panel(axes, chosen[chosen["level"] == level], list(rows))
            axes.set_title(WORDS.get(level) or label_of(models, level))
            axes.set_yticks(range(len(rows)), list(rows.values()))
        label_lowest(panels, columns, "Spearman's ρ")
        _groups(panels[::columns], rows)
        legend_below(figure, _legend())
    return figure


def _panel(axes: Axes, part: pd.DataFrame, order: list[Quantity]) -> None:
    for row in part.itertuples():
        kind = row.b if row.measure == "generalisation" else "events"
        place = order.index((kind, row.a, row.b))
        if pd.isna(row.rho):
            axes.text(
                -0.95,
                place,
                row.note.split(";")[0].split(":")[0],
                va="center",
                fontsize="x-small",
                color="#555555",
            )
        else:
            if not pd.isna(row.ci_low):
                axes.plot([row.ci_low, row.ci_high], [place, place], color=OURS, lw=1.2)
            axes.plot(row.rho, place, "o", color=OURS)
        if row.level == POOLED and not pd.isna(row.rho_pooled):
            axes.plot(row.rho_pooled, place, "|", color=OURS, ms=7)
        if not pd.isna(row.paper_rho):
            axes.plot(row.paper_rho, place, "D", mfc="none", mec=PAPER, mew=1.1)
    axes.axvline(0, color="#555555", lw=0.8, ls=":")
    axes.set_xlim(-1.05, 1.05)
    axes.set_ylim(len(order) - 0.4, -0.6)
    kinds = [key[0] for key in order]
    for edge in range(1, len(order)):
        if kinds[edge] != kinds[edge - 1]:
            axes.axhline(edge - 0.5, color="#bbbbbb", lw=0.8)


def _groups(panels: Sequence[Axes], rows: Iterable[Quantity]) -> None:
    """Which measure of generalisation a block of rows belongs to, left of the first panels."""
    kinds = [key[0] for key in rows]
    for axes in panels:
        for kind in [k for k in dict.fromkeys(kinds) if k != "events"]:
            middle = sum(i for i, k in enumerate(kinds) if k == kind) / kinds.count(kind)
            text = WORDS[kind].replace(" score", "\nscore")
            axes.annotate(
                text, (0, middle), xytext=(-11 * page().font_size, 0),
                xycoords=("axes fraction", "data"), textcoords="offset points", rotation=90,
                ha="center", va="center", fontsize="small", color="#555555",
            )  # fmt: skip


def _legend() -> list[Line2D]:
    return [
        handle(marker="o", color=OURS, label="this run, 95 % interval over tasks"),
        handle(marker="|", color=OURS, ls="", ms=7, label="all rows pooled, as the paper"),
        handle(marker="D", mfc="none", mec=PAPER, ls="", label="the paper's"),
    ]


def depth_correlations_figure(given: Given) -> Figure:
    """Drawn from the summary's table correlations."""
    return depth_correlations(given.read("correlations"), given.models)
