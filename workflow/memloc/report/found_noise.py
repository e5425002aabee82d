"""What the page says of noise that was found, and of how well it can be found where it is known."""

import pandas as pd

from memloc.budget.words import number_of, percent
from memloc.generalise.detection import CLEANLAB, LOSS, MEMORISATION
from memloc.report.parts import Content, Part
from memloc.report.pictures import pictures
from memloc.report.tables import table
from memloc.study import noise

CAVEAT = (
    "Nobody marked the noisy examples: no label was perturbed, and those count as noisy {chosen}. "
    "They were found by models of the kind that is studied, from {halves} halves, and are "
    "memorised because they were chosen so: the results say where such examples are memorised, "
    "not that their labels are wrong. found.tsv in each task's folder lists all examples."
)
TITLE = "Finding the noise"
INTRO = (
    "Without the marks of noisy examples, how well would they be found? Counterfactual "
    "memorisation needs the halves; beside it stand two baselines, the loss of the label at θ_M1 "
    "and cleanlab's confident learning on probabilities of models that were not trained on an "
    "example. AUROC is the chance that a noisy example is more suspect than a clean one (0.5: a "
    "random order); precision is the share of noisy ones among as many of the most suspect as "
    "there are noisy ones."
)
SAID = " {method} reaches an AUROC of {auroc} and a precision of {precision}"
HEADS = {
    "precision": "precision at the true number",
    "n_noisy": "noisy",
    "n": "examples",
    "n_models": "models behind it",
    "flagged": "named by itself",
    "flagged_precision": "of these noisy",
    "flagged_recall": "noisy ones named",
}
NOTE = (
    "The interval rests on the examples of one task alone, and is empty where the order is "
    "perfect. Counterfactual memorisation names the examples of {threshold:g} or more by itself, "
    "cleanlab those that its find_label_issues returns; the loss names none."
)


def finds_noise(content: Content) -> bool:
    """Whether noisy rows were found by halves."""
    return content.settings.get("perturbation", {}).get("noise") == noise.FOUND


def chosen(content: Content) -> str:
    """Which rows count as noisy, in words."""
    (kind, value), *_ = noise.criterion(content.settings).items()
    names = " and ".join(map(content.model_label, noise.finders(content.settings)))
    whose = f"of {names}" if " and " not in names else f"averaged over {names}"
    if kind == "share":
        most = f"{percent(value, 1)} of each task"
        return f"whose counterfactual memorisation {whose} is highest ({most})"
    return f"whose counterfactual memorisation {whose} is {value:g} or more"


def caveat(content: Content) -> str:
    """What limits results on noise that was found."""
    halves = content.settings.get("generalisation", {}).get("halves")
    return CAVEAT.format(chosen=chosen(content), halves=halves)


def found_part(content: Content) -> Part:
    """How well known noise is found: a sentence, a figure and a table; empty without the table."""
    if not content.has("detection"):
        return Part()
    frame = content.read("detection")
    shown = table(
        content,
        "detection",
        "How well noisy examples are found",
        frame=frame.rename(columns=HEADS),
        note=NOTE.format(threshold=noise.THRESHOLD),
    )
    return Part(TITLE, INTRO + said(frame), figures=pictures(content, "detection"), tables=[shown])


def said(frame: pd.DataFrame) -> str:
    """The result in one sentence: means over tasks and models, and what they range over."""
    methods = frame.groupby("method")
    parts = [
        SAID.format(
            method=name[0].upper() + name[1:] if not number else name,
            auroc=_mean(methods.get_group(name)["auroc"]),
            precision=_mean(methods.get_group(name)["precision"]),
        )
        for number, name in enumerate((MEMORISATION, LOSS, CLEANLAB))
        if name in methods.groups
    ]
    counts = (frame["task"].nunique(), "task"), (frame["model"].nunique(), "model")
    over = " and ".join(number_of(n, word) for n, word in counts)
    return f"{','.join(parts)} ({over}, as measured, without a test)."


def _mean(values: pd.Series) -> str:
    """A mean, and the lowest and highest value where there are several."""
    if len(values) == 1 or values.isna().all():
        return f"{values.mean():.2f}"
    return f"{values.mean():.2f} ({values.min():.2f} to {values.max():.2f})"
