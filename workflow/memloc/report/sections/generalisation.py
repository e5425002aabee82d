"""Section Generalisation: how well models generalise, and what they memorise (section 5)."""

import pandas as pd

from memloc.budget.words import percent
from memloc.report.found_noise import finds_noise, found_part
from memloc.report.parts import Content, Part, Section
from memloc.report.pictures import pictures
from memloc.report.tables import table

TABLE = "Generalisation score and validation accuracy"
NOTE = (
    "The score is the share of examples whose label gets more than a random guess's probability "
    "when they are held out; clean and noisy examples also have scores of their own. Validation "
    "accuracy is that of {model} after its last epoch, mean over seeds."
)
READING = (
    "Held out of training, an example's label gets more probability than a random guess gives it "
    "for {score} of the training examples"
)
NOISY = "; for noisy ones alone, whose labels were drawn at random, for {score}"
NEVER = (
    "{count} of the training examples were never held out (column never held out): scores leave "
    "them out. More halves, or generalisation.splits: pairs, would hold out each of them."
)
HEADS = {
    "sd": "sd over halves",
    "n_examples": "examples",
    "n_halves": "halves",
    "score_clean": "score, clean",
    "score_noisy": "score, noisy",
    "validation_sd": "validation sd over seeds",
    "n_never_heldout": "never held out",
}


def build(content: Content) -> Section:
    """Scores, how well they find noise, then a memorisation map per task and model."""
    settings = content.settings.get("generalisation", {})
    model = "θ_O" if settings.get("labels") == "original" else "θ_M2"
    frame = content.read("generalisation")
    shown = table(
        content,
        "generalisation",
        TABLE,
        frame=frame.rename(columns=HEADS),
        low=lambda row: row[HEADS["n_never_heldout"]] > 0,
        note=NOTE.format(model=model),
    )
    never = int(frame["n_never_heldout"].sum())
    maps = Part("Memorisation maps", figures=pictures(content, "memorisation_map"))
    scores = Part("Scores", figures=pictures(content, "generalisation"), tables=[shown])
    return Section(
        [part for part in (scores, found_part(content), maps) if part],
        intro=reading(content, frame),
        notices=[NEVER.format(count=f"{never:,}")] if never else [],
    )


def reading(content: Content, frame: pd.DataFrame) -> str:
    """The result in one plain sentence."""
    text = READING.format(score=_between(content, frame, "score"))
    noisy = frame.dropna(subset="score_noisy")
    original = content.settings.get("generalisation", {}).get("labels") == "original"
    if len(noisy) and not original and not finds_noise(content):
        text += NOISY.format(score=_between(content, noisy, "score_noisy"))
    return f"{text}."


def _between(content: Content, frame: pd.DataFrame, column: str) -> str:
    """A share and whose it is; of several shares, the least and the largest."""
    known = frame.dropna(subset=column).sort_values(column)
    if known.empty:
        return "an unknown share"
    least, most = known.iloc[0], known.iloc[-1]
    if len(known) == 1:
        return f"{percent(least[column])} ({_name(content, least, known)})"
    ends = [f"{percent(row[column])} ({_name(content, row, known)})" for row in (least, most)]
    return " to ".join(ends)


def _name(content: Content, row: pd.Series, frame: pd.DataFrame) -> str:
    task = content.task_label(row["task"])
    several = frame["model"].nunique() > 1
    return f"{task}, {content.model_label(row['model'])}" if several else task
