"""Section Correlations: agreement of techniques, of models, and with generalisation."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from memloc.report.parts import Absent, Content, Part, Section, Table
from memloc.report.pictures import pictures
from memloc.report.tables import absent, renamed, table
from memloc.study.techniques import TECHNIQUES
from memloc.summary.correlations import ALL, FOUND
from memloc.summary.depth import PARTIAL
from memloc.summary.spearman import LEAST

INTRO = (
    "Spearman's ρ over tasks, the mean over models where there are several, with n tasks, a 95 % "
    "interval and p from permuting tasks, the models of a task kept together; Holm's adjustment is "
    "within its family of tests. Fewer than six tasks give no interval, fewer than five no claim, "
    "fewer than three no number. ρ of all rows is as the paper has it: rows of one task aren't "
    "independent, so that it has no p. Techniques that found nothing in a task and model are left "
    "out; the paper's way, with all of them, is in a table of its own. Columns headed “the "
    "paper's” are numbers that Dankers & Titov (2024) report for the same quantity."
)
WORDS = {
    "mcog": "M-CoG", "all": "all models", "score": "generalisation score",
    "validation_scaled": "validation score", "probing-memorisation": "probes: mem. » gen.",
    "probing-initiation": "probes: 90 %", "technique": "between techniques",
    "model": "between models", "layer_weights": "layer weights",
    "score_above_prior": "score above label shares",
    "validation_above_majority": "validation above the commonest label",
    "generalisation": "depth and generalisation", "larger": "a larger model",
    "binarised": "binarised tasks",
}  # fmt: skip
DEPTHS = ("generalisation", "events")  # measures of the figure of depth
NUMBERS = [
    "rho", "paper_rho", "ci_low", "ci_high", "n", "p", "p_holm", "claim", "decided", "rho_pooled",
    "n_pairs",
]  # fmt: skip
DIFFERENCES = [
    "mean_difference", "paper_mean_difference", "mean_absolute_difference",
    "paper_mean_absolute_difference",
]  # fmt: skip


def _worded(content: Content, name: str) -> str:
    """A level, quantity, technique or model in words."""
    head, _, tail = str(name).partition(":")
    if tail:
        return f"{_worded(content, head)}, {_worded(content, tail).lower()}"
    if head in TECHNIQUES:
        return TECHNIQUES[head].label
    return WORDS.get(head) or content.model_label(head)


def _table(
    content: Content,
    id: str,
    title: str,
    chosen: Callable[[pd.DataFrame], pd.Series],
    *,
    keys: Sequence[str] = ("level", "a", "b"),
    included: str = FOUND,
    more: Sequence[str] = (),
    **options: Any,
) -> Table | Absent | None:
    """The chosen rows of correlations.tsv as a table; None if there are none."""
    frame = content.read("correlations")
    frame = frame[chosen(frame) & frame["included"].eq(included)]
    if frame.empty:
        return None
    frame = frame[[*keys, *NUMBERS, *more, "note"]].copy()
    for key in keys:
        frame[key] = [_worded(content, name) for name in frame[key]]
    frame = frame.dropna(axis="columns", how="all").rename(columns={"n": "n tasks"})
    return renamed(table(content, "correlations", title, frame=frame, **options), id)


def _told(content: Content, measures: Sequence[str]) -> bool:
    """Whether any correlation of these measures has a number."""
    frame = content.read("correlations")
    return bool(frame.loc[frame["measure"].isin(measures), "rho"].notna().any())


def _too_few(content: Content) -> Markup:
    """Why there is no correlation over tasks, and where its rows without a number are."""
    path, tasks = content.tables["correlations"], len(content.tasks)
    why = f"a correlation over tasks takes three or more, and here {'is' if tasks == 1 else 'are'} "
    why = f"{why}{tasks}" if tasks < LEAST else "there are too few, or too many of equal rank"
    link = Markup('<a href="{}"><code>{}</code></a>')
    return Markup("Nothing can be told: {}; {} has the rows without a number.").format(
        why, link.format(os.path.relpath(path, content.folder), path)
    )


def _depth(content: Content) -> Part:
    """Table 2, pooled and by model, and M-CoG of each technique."""
    tables: list[Table | Absent | None] = [
        _table(content, "correlations-depth", "Depth against generalisation (Table 2)",
               lambda f: f["family"] == "generalisation",
               note="M-CoG is the mean over the paper's techniques that were run"),
        _table(content, "correlations-depth-partial",
               "The same with the number of classes and their balance held fixed",
               lambda f: f["measure"] == PARTIAL),
        _table(content, "correlations-depth-baselines",
               "Depth against scores above what labels' shares and the commonest label reach",
               lambda f: f["family"] == "generalisation-baselines", folded=True),
        _table(content, "correlations-depth-technique", "The same by technique",
               lambda f: f["family"] == "generalisation-technique", folded=True),
    ]  # fmt: skip
    if not content.has("generalisation"):
        tables = [absent(content, "generalisation", "Depth against generalisation (Table 2)")]
    elif not _told(content, DEPTHS):
        return Part("Depth and generalisation", _too_few(content))
    return Part(
        "Depth and generalisation",
        "Does a model memorise deeper where it generalises better?",
        figures=pictures(content, "depth_correlations"),
        tables=[t for t in tables if t],
    )


def _events(content: Content) -> Part:
    """Centroid events against those of probes."""
    found = _table(content, "correlations-events", "Centroid events against those of probes",
                   lambda f: f["measure"] == "events")  # fmt: skip
    if found and not _told(content, ["events"]):
        return Part("Events by centroids and by probes", _too_few(content))
    return Part("Events by centroids and by probes", tables=[found] if found else [])


def _agreement(content: Content) -> Part:
    """Techniques with each other and models with each other."""
    found = _table(
        content, "correlations", "Pairs of techniques and of models",
        lambda f: f["measure"].isin(["mcog", "layer_weights"]),
        keys=("measure", "level", "a", "b"), folded=True,
    )  # fmt: skip
    return Part(
        "Techniques and models",
        "Do techniques, and models, order tasks and layers alike?",
        figures=pictures(content, "correlations"),
        tables=[table for table in (found, _inclusive(content)) if table],
    )


def _inclusive(content: Content) -> Table | Absent | None:
    """The paper's figures, techniques that found nothing included; None where all found some."""
    return _table(
        content, "correlations-inclusive", "With techniques that found nothing, as the paper",
        lambda f: f["included"] == ALL, keys=("measure", "level", "a", "b"), included=ALL,
        folded=True,
    )  # fmt: skip


def _appendices(content: Content) -> list[Part]:
    """Appendix B and C, where the run has a deeper model or binarised tasks."""
    larger = _table(content, "correlations-larger", "The deeper model against the others",
                    lambda f: f["measure"] == "larger")  # fmt: skip
    two = _table(content, "correlations-binarised", "Multi-class tasks against binarised ones",
                 lambda f: f["measure"] == "binarised", keys=("level",), more=DIFFERENCES,
                 note="Differences are binarised minus multi-class, in layers")  # fmt: skip
    parts = [
        Part("A larger model (Appendix B)", tables=[larger] if larger else []),
        Part(
            "Binarised tasks (Appendix C)",
            figures=pictures(content, "binarised"),
            tables=[two] if two else [],
        ),
    ]
    return [part for part in parts if part.tables]


def build(content: Content) -> Section:
    """Depth with generalisation, events, techniques, models, and the appendices."""
    parts = [_depth(content), _events(content), _agreement(content), *_appendices(content)]
    bare = [] if _told(content, DEPTHS) else ["depth_correlations"]
    return Section([part for part in parts if part], intro=INTRO, bare=bare)
