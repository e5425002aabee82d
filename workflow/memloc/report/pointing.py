"""What the page says of techniques and variants of gradients where the right layers are known.

Techniques are judged by accuracy@1; what may be claimed stands in the summary's table
control_techniques. The paper's accuracy@2 stands beside.
"""

import math
from typing import Any

import pandas as pd

from memloc.budget.words import number_of, percent
from memloc.control.scores import JUDGED_BY, ONE_LAYER, WEIGHTS
from memloc.report.parts import Absent, Content, Table
from memloc.report.tables import table
from memloc.study.control import APART, NEIGHBOURS, TEST
from memloc.study.techniques import TECHNIQUES
from memloc.summary.pointing import ABOVE, ALL, ONE_PAIR
from memloc.summary.spearman import CLAIM_LEAST, FEW, INTERVAL_LEAST, NONE

RELIABLE = 0.9  # at this accuracy or above a technique whose claim holds finds the layers
WHERE = {NEIGHBOURS: "two neighbouring layers", APART: "two layers apart from each other"}
SCORED_BY = {WEIGHTS: "layer weights", ONE_LAYER: "one layer alone"}
TITLE = "Accuracy of each technique, mean over tasks"
HEADS = {
    "scores": "scored by", "design": "pairs of layers", "accuracy": "accuracy@1",
    "chance": "random guess", "shuffled": "shuffled pairs", "n": "tasks",
    "n_control": "control models", "n_none": "undefined", "claim": "shown", "second": "accuracy@2",
}  # fmt: skip
NOTE = (
    "accuracy@1 decides. The column shuffled pairs is what the same scores get once the pairs are "
    "exchanged within a task: it is more than a random guess where a technique always points at "
    f"the same layers. The interval is over tasks, from {INTERVAL_LEAST} on; less than "
    f"{CLAIM_LEAST} claim nothing. accuracy@2 is the paper's other measure; layer weights of "
    "windows have an advantage there, for a neighbour of the right layer shares its windows: one "
    "layer that holds everything and its neighbour come first and second. Scored by one layer "
    "alone, no other layer has a part in a score. In marked rows, more than chance isn't shown"
)
DECIDED = (
    "Decided by shuffling the pairs of layers within each task (p below 0.05 with Holm's "
    "adjustment, {n} tested)"
)
VARIANTS_NOTE = (
    "accuracy@1 stands first. The column paper is what Table 4 of the paper reports for accuracy@2 "
    "of its four models on MRPC and TREC; it is empty for other models and tasks"
)
VARIANT_HEADS = {
    "clean": "clean subtracted", "frozen": "divided by frozen", "sd": "sd over tasks",
    "chance": "random guess", "shuffled": "shuffled pairs", "n": "tasks",
    "n_control": "control models", "n_none": "undefined",
}  # fmt: skip


def over_models(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows over all models: of test tasks, or of validation tasks if there are no others."""
    models = ALL if (frame["model"] == ALL).any() else frame["model"].iloc[0]
    frame = frame[frame["model"] == models]
    return frame[frame["role"] == TEST] if (frame["role"] == TEST).any() else frame


def trust(content: Content) -> dict[str, str]:
    """By technique: how often it finds layers that are known, with how many tasks; in words."""
    if not content.has("control_techniques"):
        return {}
    scores = over_models(content.read("control_techniques"))
    judged = scores[(scores["k"] == JUDGED_BY) & (scores["scores"] == WEIGHTS)]
    near = judged[judged["design"] == NEIGHBOURS]
    rows = (near if len(near) else judged).to_dict("records")
    return {row["technique"]: _right(row) for row in rows}


def _right(row: dict[str, Any]) -> str:
    """How often a technique is right (a row of control_techniques.tsv), in words."""
    if math.isnan(row["accuracy"]):
        return "undefined"
    models = number_of(int(row["n_control"]), "control model")
    tasks = number_of(int(row["n"]), "task")
    chance = f"chance {percent(row['chance'])}"
    if row["n_control"] == 1:
        return f"{'right' if row['accuracy'] > 0.5 else 'not right'} in {models} ({chance})"
    return f"right in {percent(row['accuracy'])} ({chance}; n = {models} of {tasks})"


def reading(scores: pd.DataFrame) -> str:
    """Sentences on what accuracy@1 of layer weights says about the techniques, by design."""
    judged = scores[(scores["k"] == JUDGED_BY) & (scores["scores"] == WEIGHTS)]
    by_design = [(where, judged[judged["design"] == design]) for design, where in WHERE.items()]
    return " ".join(_sentence(rows, where) for where, rows in by_design if len(rows))


def _sentence(rows: pd.DataFrame, where: str) -> str:
    told = rows[rows["accuracy"].notna()]
    n, guess = int(rows["n"].max()), f"a random guess gets {rows['chance'].mean():.2f}"
    lead = f"Where {where} memorised ({number_of(n, 'task')}), "
    if n < CLAIM_LEAST:
        measured = f"measured accuracy@1: {_valued(told)}; " if len(told) else ""
        return f"{lead}nothing is claimed, for it takes {CLAIM_LEAST} tasks; {measured}{guess}."
    above, sure = rows["claim"] == ABOVE, rows["accuracy"] >= RELIABLE
    groups = {
        "nearly always by": above & sure,
        "more often than by chance, but not reliably, by": above & ~sure,
        "no more often than by chance, as far as can be shown, by": rows["claim"] == NONE,
        "of one pair alone, which can't be told from always pointing there, by":
            rows["claim"] == ONE_PAIR,
        "in too few tasks by": (rows["claim"] == FEW) & rows["accuracy"].notna(),
        "never, for all scores are undefined, by": rows["accuracy"].isna(),
    }  # fmt: skip
    said = [f"{text} {_valued(rows[mask])}" for text, mask in groups.items() if mask.any()]
    tested = int(rows["p"].notna().sum())
    decided = f" {DECIDED.format(n=tested)}." if tested else ""
    return f"{lead}one of them is found (accuracy@1) {'; '.join(said)}; {guess}.{decided}"


def _valued(rows: pd.DataFrame) -> str:
    """Techniques with their accuracies: "layer swapping (0.98) and probing (0.20)"."""
    each = [
        _label(row.technique) + ("" if pd.isna(row.accuracy) else f" ({row.accuracy:.2f})")
        for row in rows.itertuples()
    ]
    return each[0] if len(each) == 1 else f"{', '.join(each[:-1])} and {each[-1]}"


def _label(name: str) -> str:
    return TECHNIQUES[name].label.lower() if name in TECHNIQUES else name


def overview(content: Content, scores: pd.DataFrame) -> Table | Absent:
    """A row per technique, what its layers are scored by, and design: accuracy@1 leads."""
    row = ["technique", "scores", "design"]
    second = scores[scores["k"] == 2].set_index(row)["accuracy"].rename("second")
    frame = scores[scores["k"] == JUDGED_BY].join(second, on=row)
    frame = frame.assign(scores=frame["scores"].map(SCORED_BY))
    shown = [
        *row, "accuracy", "ci_low", "ci_high", "chance", "shuffled", "n", "n_control", "n_none",
        "claim", "second",
    ]  # fmt: skip
    made = frame[shown].rename(columns=HEADS)
    return table(content, "control_techniques", TITLE, frame=made, low=_unshown, note=NOTE)


def _unshown(row: dict) -> bool:
    return row[HEADS["claim"]] in (NONE, ONE_PAIR)


def variants_table(content: Content) -> Table | Absent:
    """The gradients' post-processing on the validation tasks, accuracy@1 first."""
    frame, title = None, "Accuracy on the validation tasks (Table 4)"
    if content.has("gradient_variants"):
        given = content.read("gradient_variants").sort_values("k", kind="stable")
        frame = given.drop(columns="role").rename(columns=VARIANT_HEADS)
    return table(content, "gradient_variants", title, note=VARIANTS_NOTE, frame=frame)


def best_variants(content: Content) -> str:
    """Which post-processing scores best by accuracy@1 and by the paper's measure; "" without any.

    The choice is made by the measure that techniques are judged by, on tasks that score none.
    """
    if not content.has("gradient_variants"):
        return ""
    frame = over_models(content.read("gradient_variants")).dropna(subset=["accuracy"])
    design = NEIGHBOURS if (frame["design"] == NEIGHBOURS).any() else APART
    first, second = (frame[(frame["design"] == design) & (frame["k"] == k)] for k in (1, 2))
    if first.empty:
        return ""
    used = content.settings.get("gradients", {}).get("variant")
    ours = first.loc[first["variant"] == used, "accuracy"]
    n = int(first["n"].max())
    return (
        f"Judged by accuracy@1, as the techniques are, {_best(first)} of the eight variants on "
        f"{number_of(n, 'validation task')}; a random guess gets "
        f"{first['chance'].mean():.2f}. "
        + (f"This study uses {used} ({ours.iloc[0]:.2f}). " if len(ours) else "")
        + f"By accuracy@2, which the paper chose by, {_best(second)}. These tasks score no "
        "technique, so that the choice flatters none; that one variant is better than another is "
        "not claimed."
    )


def _best(rows: pd.DataFrame) -> str:
    best = rows[rows["accuracy"] >= rows["accuracy"].max() - 1e-9]
    names = " and ".join(best["variant"])
    return f"{names} score{'s' if len(best) == 1 else ''} best ({best['accuracy'].iloc[0]:.2f})"
