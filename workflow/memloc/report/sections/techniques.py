"""Section Techniques: where memorisation sits, by every technique that was run."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from memloc.budget.words import number_of
from memloc.report.edits import edit_parts
from memloc.report.no_noise import no_noise_part
from memloc.report.parts import Absent, Content, Figure, Part, Section, Table
from memloc.report.pictures import pictures, uncaptioned
from memloc.report.tables import Cell, absent, cell, table, worded
from memloc.report.variance import variance_part
from memloc.study.techniques import TECHNIQUES

UNDEFINED = (
    "{count} on fewer seeds than the others (rows marked). A seed is left out where "
    "its weights are undefined: modifying all layers changed no noisy prediction, so there is "
    "nothing to normalise by. A seed whose weights are all 0 enters the mean without moving it, "
    "and has no centre of its own. The raw errors are in the tables."
)
NO_HEAD = (
    "No figure: swapping a single head reverts no noisy example anywhere (n = {n} heads of tasks "
    "and models, mean over seeds)."
)
NOTHING = "{technique} found nothing in {named}: {reason}."
FEW = 4  # up to so many tasks and models are named one by one
OVERVIEW = (
    "Brackets: 95 % interval from resampling noisy examples, seeds or both; of a technique of "
    "windows, M-CoG can only lie within the attainable range, whatever a model does. Rescaled "
    "M-CoG, in the file, stretches that range to 1 to L. “Nothing found” marks what doesn't count "
    "in answers, averages and correlations."
)
COMPONENTS_TITLE = "Attention and feed-forward blocks swapped apart"
SENSITIVITY = (
    "Nothing was trained again for this: every row is computed from the same tables of runs, with "
    "one choice of the analysis made otherwise. A rho near 1 says that the order of the tasks by "
    "depth doesn't hang on that choice; it needs three tasks."
)
COMPONENTS_MCOG = (
    "M-CoG by what is swapped. The error when it is swapped in all layers (not normalised) says "
    "how much of memorisation it can undo"
)


def _matrices(content: Content) -> Part:
    """Matrices of all techniques: the caption once, and once more where it says something else."""
    found: list[Figure] = []
    for name in TECHNIQUES:
        figures = pictures(content, "matrix", technique=name)
        found += figures if not found or name == "patching" else uncaptioned(figures)
    return Part("Window matrices", figures=found)


def _centres(content: Content) -> list[Part]:
    """M-CoG at a glance; where there are averages, each technique and model apart from these."""
    title, made = "Memorisation centre of gravity", mcog_overview(content)
    means, each = pictures(content, "mcog_averages"), pictures(content, "mcog")
    if not means:
        return [Part(title, figures=each, tables=[made])]
    apart = Part("M-CoG of each technique and model", figures=each)
    return [Part(title, figures=means, tables=[made]), apart]


def mcog_overview(content: Content) -> Table | Absent:
    """mcog.tsv with a row per task and model and a column per technique, to compare at a glance."""
    title = "M-CoG by technique, layers 1 to L: mean ± standard deviation over seeds, [interval]"
    low = _incomplete(content)
    if low is None:
        return absent(content, "mcog", title)
    frame = content.read("mcog")
    found = set(frame["technique"])
    names = [n for n in TECHNIQUES if n in found] + sorted(found - set(TECHNIQUES))
    labels = [TECHNIQUES[n].label if n in TECHNIQUES else n for n in names]
    heads = [{"title": t, "number": False} for t in ("task", "model")]
    heads += [
        {"title": f"{label}{_reach(frame, name)}", "number": True}
        for name, label in zip(names, labels, strict=True)
    ]
    rows = []
    for key, group in frame.groupby(["task", "model"], sort=False):
        by = {row["technique"]: row for row in group.to_dict("records")}
        cells = [cell(content, c, name) for c, name in zip(("task", "model"), key, strict=True)]
        cells += [_mcog_cell(by.get(name), low) for name in names]
        nothing = any(row["found"] == "no" for row in by.values())
        rows.append({"cells": cells, "low": nothing or any(map(low, by.values()))})
    return worded(content, "mcog", title, heads, rows, OVERVIEW)


def _reach(frame: pd.DataFrame, technique: str) -> str:
    """The attainable range of a technique's M-CoG, for a heading; none where it is all layers."""
    ranges = frame.loc[frame["technique"] == technique, ["attainable_low", "attainable_high"]]
    told = [f"{low:.2f} to {high:.2f}" for low, high in ranges.drop_duplicates().to_numpy()
            if low > 1]  # fmt: skip
    return f" (attainable {' or '.join(told)})" if told else ""


def _mcog_cell(row: Mapping[str, Any] | None, low: Callable[[Mapping[str, Any]], bool]) -> Cell:
    """One M-CoG in words, sorted by its value; says so where seeds are missing."""
    if row is None or pd.isna(row["mcog"]):
        return {"text": "–", "value": "nan", "number": True}
    text = f"{row['mcog']:.2f}" + ("" if pd.isna(row["sd"]) else f" ± {row['sd']:.2f}")
    if not pd.isna(row["ci_low"]):
        text += f" [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"
    if row["found"] == "no":
        text += " (nothing found)"
    if low(row):
        seeds = row["n_seeds"] - row["n_zero"]
        text += f" ({number_of(seeds, 'seed')})"
    return {"text": text, "value": repr(row["mcog"]), "number": True}


def _probes(content: Content) -> list[Part]:
    """The part on noise probes; nothing where none were run."""
    if not content.has("probe_f1"):
        return []
    title = "F1 of noise probes, mean over probe seeds and seeds; layer 0 is the embeddings"
    labels = "F1 of probes for labels, mean over probe seeds and seeds; layer 0 is the embeddings"
    return [
        Part("Noise probes", tables=[table(content, "probe_f1", title, folded=True)]),
        Part(
            "Probes for labels",
            figures=pictures(content, "label_probes"),
            tables=[table(content, "label_f1", labels, folded=True)],
        ),
    ]


def nothing_found(content: Content) -> list[str]:
    """A sentence for each technique and reason, naming the tasks and models in which it failed."""
    if not content.has("mcog"):
        return []
    frame = content.read("mcog")
    frame = frame[frame["found"] == "no"]
    lines = []
    for (name, reason), part in frame.groupby(["technique", "reason"], sort=False):
        pairs = zip(part["task"], part["model"], strict=True)
        named = [f"{content.task_label(t)} / {content.model_label(m)}" for t, m in pairs]
        shown = ", ".join(named) if len(named) <= FEW else f"{len(named)} tasks and models"
        label = TECHNIQUES[name].label if name in TECHNIQUES else name
        lines.append(NOTHING.format(technique=label, named=shown, reason=reason))
    return lines


def _incomplete(content: Content) -> Callable[[Mapping[str, Any]], bool] | None:
    """A function that says whether a row of mcog.tsv rests on fewer seeds than others.

    None without that table.
    """
    if not content.has("mcog"):
        return None
    most = content.read("mcog")["n_seeds"].max()
    return lambda row: row["n_seeds"] - row["n_zero"] < most


def _undefined_notice(content: Content) -> list[str]:
    """What to say about seeds whose weights are undefined: a list of at most one sentence."""
    low = _incomplete(content)
    if low is None:
        return []
    count = sum(low(row) for row in content.read("mcog").to_dict("records"))
    rest = f"{number_of(count, 'M-CoG')} {'rests' if count == 1 else 'rest'}"
    return [UNDEFINED.format(count=rest)] if count else []


def component_parts(content: Content) -> list[Part]:
    """Parts on blocks that are swapped apart; none where only whole layers were swapped."""
    if not content.has("components"):
        return []
    weights = "Layer weights by what is swapped, mean over seeds"
    return [
        Part(
            COMPONENTS_TITLE,
            figures=pictures(content, "components"),
            tables=[
                table(content, "component_mcog", COMPONENTS_MCOG),
                table(content, "components", weights, folded=True),
            ],
        ),
        *_component_matrices(content),
    ]


def heads_part(content: Content) -> list[Part]:
    """The part on single attention heads; none where they weren't swapped."""
    if not content.has("heads"):
        return []
    heads = table(content, "heads", "Errors by attention head, mean over seeds", folded=True)
    if isinstance(heads, Table) and no_head(content):
        return [Part("Attention heads", NO_HEAD.format(n=len(heads.rows)), tables=[heads])]
    return [Part("Attention heads", figures=pictures(content, "heads"), tables=[heads])]


def no_head(content: Content) -> bool:
    """Whether no single head reverts any example."""
    return content.has("heads") and not content.read("heads")["noisy_error"].max() > 0


def _component_matrices(content: Content) -> list[Part]:
    """The matrices of blocks."""
    return [Part("Blocks: window matrices", figures=pictures(content, "component_matrix"))]


def build(content: Content) -> Section:
    """Where memorisation sits, by every technique that was run."""
    missing = [
        absent(content, name, technique.label)
        for name, technique in TECHNIQUES.items()
        if name in content.absent
    ]
    parts = [
        *_centres(content),
        Part("Techniques side by side", figures=pictures(content, "techniques")),
        _matrices(content),
        *component_parts(content),
        Part(
            "Largest error from one layer",
            figures=pictures(content, "one_layer"),
            tables=[
                table(
                    content,
                    "one_layer",
                    "The layer whose modification alone gives the largest error",
                )
            ],
        ),
        *heads_part(content),
        no_noise_part(content),
        *edit_parts(content),
        Part(
            "Layer weights",
            figures=pictures(content, "layer_weights"),
            tables=[table(content, "layer_weights", "Layer weights, mean over seeds", folded=True)],
        ),
        Part(
            "What hangs on choices of the analysis",
            intro=SENSITIVITY,
            tables=[
                table(
                    content,
                    "sensitivity",
                    "Depths of tasks by default and with one choice made otherwise",
                    folded=True,
                )
            ],
        ),
        variance_part(content),
        *_probes(content),
    ]
    notices = _undefined_notice(content) + nothing_found(content)
    bare = ["heads"] if no_head(content) else []
    return Section([p for p in parts if p], absent=missing, notices=notices, bare=bare)
