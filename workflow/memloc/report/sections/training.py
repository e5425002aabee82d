"""Section Training: whether each run memorised its noisy examples, and when."""

from collections.abc import Mapping
from typing import Any

from memloc.budget.words import number_of, percent
from memloc.report.found_noise import finds_noise
from memloc.report.parts import Content, Part, Section
from memloc.report.pictures import pictures
from memloc.report.tables import table
from memloc.study.thresholds import MEMORISED_SHARE

TWICE = (
    "Every model is trained twice: on the original labels (θ_O), and with a share of the labels "
    "perturbed (θ_M2 at the end, θ_M1 when it first knows them)."
)
WITHOUT = (
    "Every model is trained twice: without the examples that count as noisy (θ_O), and with all of "
    "them and their labels as given (θ_M2 at the end, θ_M1 when it first knows them)."
)
ONLY = "Only where noisy examples are memorised in the end is there something to localise."
GIVEN = (
    "The checkpoints were given: their accuracies were measured when they were taken in, and no "
    "epochs are known. Only where noisy examples are memorised is there something to localise."
)


def weak(row: Mapping[str, Any]) -> bool:
    """Whether a run (a row of training.tsv) on perturbed labels memorised only in part."""
    return row["labels"] == "perturbed" and not row["noisy_accuracy"] >= MEMORISED_SHARE


def weak_runs(content: Content) -> tuple[int, int]:
    """Of the runs on perturbed labels, how many memorised only in part, and how many there are."""
    if not content.has("training"):
        return 0, 0
    frame = content.read("training")
    rows = frame.to_dict("records")
    return sum(map(weak, rows)), int((frame["labels"] == "perturbed").sum())


def build(content: Content) -> Section:
    """Accuracy per epoch, and the outcome of each run."""
    notices = []
    few, runs = weak_runs(content)
    if few:
        notices = [
            f"{few} of {number_of(runs, 'run')} on perturbed labels ended with a noisy accuracy "
            f"below {percent(MEMORISED_SHARE)} (marked): they memorised only in part, so where "
            "they memorise is less certain."
        ]
    title = "After each run's last epoch (θ_O or θ_M2); training accuracies against its own labels"
    if content.given:
        title = "As the checkpoints were given or, where missing ones are trained, as they ended"
    accuracies = Part("Accuracy per epoch", figures=pictures(content, "training"))
    parts = [
        *([] if content.given else [accuracies]),
        Part("Outcome per run", tables=[table(content, "training", title, low=weak)]),
    ]
    twice = WITHOUT if finds_noise(content) else TWICE
    intro = GIVEN if content.given else f"{twice} {ONLY}"
    return Section(parts, intro=intro, notices=notices)
