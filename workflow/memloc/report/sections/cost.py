"""Section Cost: what was planned, and what the jobs took."""

from memloc.report.parts import Content, Part, Section
from memloc.report.tables import table
from memloc.summary.cost import COLUMNS as COST


def build(content: Content) -> Section:
    """What the study was planned to cost, and what its jobs took."""
    plan = table(
        content,
        "budget",
        "The plan before the run: hours by stage and model, the longest chain of jobs, and how "
        "long N GPUs take",
        folded=True,
    )
    actual = table(
        content,
        "budget_actual",
        "Predicted against actual hours of finished jobs",
        note="Where the plan's rates were measured on these very jobs, a ratio near 1 says nothing",
        folded=True,
    )
    taken = table(
        content,
        "cost",
        "Wall-clock seconds of the jobs of each stage, from Snakemake's benchmark files",
        columns=COST,
        folded=True,
    )
    return Section([Part(tables=[plan, actual, taken])])
