"""The part of the page on what M-CoG varies with: the task, its noise or the model seed."""

from memloc.report.parts import Content, Part
from memloc.report.tables import table

TITLE = "Task, noise or model seed?"
INTRO = (
    "The tasks were perturbed anew by further data seeds, with the same rows. A mixed model splits "
    "the variance of the M-CoGs of single runs: between tasks, between draws of noise within a "
    "task (data seed), between model seeds within a task, and the rest, which is what a model seed "
    "does on one draw of noise alone. A large share of tasks says that the order of tasks would "
    "come out alike with other noise. Everything else on this page rests on the first data seed."
)
NOTE = (
    "Variances are in squares of layers, sd in layers; df are the degrees of freedom that an "
    "estimate rests on. Left out are runs without an M-CoG, and those in which a technique found "
    "nothing."
)


def variance_part(content: Content) -> Part:
    """A table of variances with their numbers of levels and runs."""
    title = "Variance of M-CoG over tasks, data seeds and model seeds"
    made = table(content, "variance", title, note=NOTE)
    return Part(TITLE, INTRO if content.has("variance") else "", tables=[made])
