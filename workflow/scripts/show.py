"""Say in a terminal what a finished study found: training, M-CoG, cost, and the answer in words."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

from memloc.budget.words import in_hours
from memloc.report.headline import said_on
from memloc.store.tables import read_tsv


def main(results: Path) -> None:
    for part in (trainings, centres, cost, answer):
        print(*part(results), sep="\n")


def trainings(results: Path) -> Iterator[str]:
    """A line for each run on perturbed labels."""
    training = read_tsv(results / "summary/training.tsv")
    yield "\nMemorised? Accuracy on noisy training examples at the end of training (theta_M2):"
    for row in training[training["labels"] == "perturbed"].itertuples():
        yield (
            f"  {row.task:<12} {row.model:<10} seed {row.seed}: noisy {row.noisy_accuracy:.3f}, "
            f"clean {row.clean_accuracy:.3f}, validation {row.validation_accuracy:.3f}"
        )


def centres(results: Path) -> Iterator[str]:
    """A line for each task, model and technique."""
    yield "\nWhere? Memorisation centre of gravity (M-CoG), in layers:"
    for row in read_tsv(results / "summary/mcog.tsv").itertuples():
        said = f"{row.mcog:.2f}"
        if not math.isnan(row.ci_low):
            said += f", 95 % interval {row.ci_low:.2f} to {row.ci_high:.2f} ({row.resampled})"
        if row.found == "no":
            said = f"nothing found: {row.reason}"
        yield f"  {row.task:<12} {row.model:<10} {row.technique:<22} {said}"


def cost(results: Path) -> Iterator[str]:
    """What the jobs took beside what was predicted."""
    frame = read_tsv(results / "summary/budget_actual.tsv")
    took, predicted = frame["actual_hours"].sum(), frame["predicted_hours"].sum()
    yield (
        f"\nCost: {frame['finished'].sum():,} jobs took {in_hours(took)} hours one after another; "
        f"the budget said {in_hours(predicted)}."
    )


def answer(results: Path) -> Iterator[str]:
    """Where the page is, and the answer that it opens with, as it stands there."""
    page = results / "report.html"
    yield f"\nOpen {page} in a browser.\n"
    yield from said_on(page)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
