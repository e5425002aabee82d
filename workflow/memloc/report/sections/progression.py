"""Section Progression: how memorisation moves through the layers while a model memorises."""

import pandas as pd

from memloc.report.parts import Content, Part, Section
from memloc.report.pictures import pictures
from memloc.report.tables import renamed, table
from memloc.study.techniques import TECHNIQUES
from memloc.summary.progression import ACCURACY, EVENT, MCOG


def moves(frame: pd.DataFrame, content: Content) -> list[str]:
    """A sentence per task and model: from which M-CoG to which, between which epochs."""
    found = []
    part = frame[frame["measure"] == MCOG].assign(
        value=lambda f: pd.to_numeric(f["value"], "coerce")
    )
    for (task, model), group in part.groupby(["task", "model"], sort=False):
        moved = []
        for name, rows in group.dropna(subset=["value"]).groupby("name", sort=False):
            rows = rows.sort_values("epoch")
            if len(rows) > 1:
                first, last = rows.iloc[0], rows.iloc[-1]
                moved.append(
                    f"{TECHNIQUES[name].short.lower()} {first['value']:.2f} (epoch "
                    f"{first['epoch']}) to {last['value']:.2f} (epoch {last['epoch']})"
                )
        if moved:
            who = f"{content.task_label(task)}, {content.model_label(model)}"
            found.append(f"{who}: {'; '.join(moved)}.")
    return found


def build(content: Content) -> Section:
    """The section's figures and tables."""
    frame = content.read("progression")
    tables = [
        renamed(
            table(content, "progression", title, frame=frame[frame["measure"] == measure],
                  folded=True, note=note),
            f"progression-{measure}",
        )
        for measure, title, note in (
            (MCOG, "M-CoG by epoch", "–: there is no centre, since no layer mattered yet"),
            (EVENT, "Centroid events by epoch", "never counts as layer L + 1; n none: seeds"),
            (ACCURACY, "Accuracies after these epochs", ""),
        )
        if (frame["measure"] == measure).any()
    ]  # fmt: skip
    parts = [
        Part(
            "Depth of memorisation by epoch",
            intro="How M-CoG moved: " + " ".join(moves(frame, content)),
            figures=pictures(content, "progression"),
            tables=tables,
        )
    ]
    intro = (
        "Beyond the paper, the same techniques are run on checkpoints of some epochs while the "
        "model memorises. Swapping takes layers from θ_O after its last epoch. In early epochs the "
        "model predicts few noisy labels yet, so their numbers rest on few examples."
    )
    return Section(parts, intro=intro)
