"""Section Control: do the techniques find layers that are known? (section 3.2, Table 4)."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from memloc.control.scores import ALL
from memloc.report.parts import Content, Part, Section, Table
from memloc.report.pictures import pictures
from memloc.report.tables import Cell, table, worded
from memloc.study.control import TEST
from memloc.study.techniques import TECHNIQUES

MARGIN = 0.1  # above chance by more than this, a technique has found something
RELIABLE = 0.9  # at this accuracy or above it finds the layers
NOT_TRAINED = 0.99  # training accuracy that the paper asks of control models

INTRO = (
    "Memorisation was forced into two known layers: only those and a head were trained on the "
    "task's labels, while an auxiliary task trained all layers. accuracy@k is the share of a "
    "technique's k highest-scoring layers that are among the two."
)
PAPER = (
    "The paper reports accuracies near 1.0 for layer swapping and layer retraining, and just over "
    "0.6 (accuracy@1) for forgetting gradients and probing."
)
BASELINE = (
    "Weight change is right by construction here, since other layers hardly move; that says little "
    "about models in which all layers moved."
)
VARIANTS_NOTE = (
    "The column paper is what Table 4 of the paper reports for its four models on MRPC and TREC; "
    "it is empty for other models and tasks"
)
VARIANT_HEADS = {
    "clean": "clean subtracted",
    "frozen": "divided by frozen",
    "sd": "sd over control models",
    "n": "control models",
    "n_none": "undefined",
}


def _scores(content: Content) -> pd.DataFrame:
    """Rows of control_techniques over all models: of test tasks, or of all if there are none."""
    frame = content.read("control_techniques")
    models = ALL if (frame["model"] == ALL).any() else frame["model"].iloc[0]
    frame = frame[frame["model"] == models]
    return frame[frame["role"] == TEST] if (frame["role"] == TEST).any() else frame


def _named(names: Sequence[str]) -> str:
    labels = [TECHNIQUES[n].label.lower() if n in TECHNIQUES else n for n in names]
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"


def reading(scores: pd.DataFrame) -> str:
    """One plain sentence on what accuracy@2 says about the techniques."""
    second = scores[scores["k"] == 2].set_index("technique")
    found = second["accuracy"] >= RELIABLE
    better = _above_chance(second)
    groups = {
        "found the two layers nearly always": found,
        "did better than guessing, but not reliably": better & ~found,
        "did not do clearly better than guessing": second["accuracy"].notna() & ~better & ~found,
        "said nothing (all scores are undefined)": second["accuracy"].isna(),
    }
    said = [f"{_named(list(second.index[mask]))} {text}" for text, mask in groups.items()
            if mask.any()]  # fmt: skip
    sentence = "; ".join(said)
    return f"{sentence[:1].upper()}{sentence[1:]} (accuracy@2; a random guess gets " + (
        f"{second['chance'].mean():.2f})."
    )


def _above_chance(scores: pd.DataFrame) -> pd.Series:
    """Whether accuracies, minus their standard error, are above chance by MARGIN."""
    error = (scores["sd"] / scores["n"] ** 0.5).fillna(0)
    return scores["accuracy"] - error > scores["chance"] + MARGIN


def overview(content: Content, scores: pd.DataFrame) -> Table:
    """A row per technique, accuracy@1 and @2 beside chance."""
    heads = [{"title": "technique", "number": False}]
    heads += [{"title": t, "number": True} for t in ("accuracy@1", "accuracy@2", "chance", "n")]
    rows = []
    for name, group in scores.groupby("technique", sort=False):
        by = group.set_index("k")
        label = TECHNIQUES[name].label if name in TECHNIQUES else name
        cells = [{"text": label, "value": name, "number": False}]
        cells += [_accuracy(by.loc[k]) if k in by.index else _empty() for k in (1, 2)]
        chance, n = group["chance"].mean(), int(group["n"].max())
        cells.append({"text": f"{chance:.2f}", "value": repr(float(chance)), "number": True})
        cells.append({"text": str(n), "value": str(n), "number": True})
        second = group[(group["k"] == 2) & group["accuracy"].notna()]
        low = bool(len(second)) and not _above_chance(second).all()
        rows.append({"cells": cells, "low": low})
    title = "Accuracy of each technique, mean ± sd over tasks, models and pairs"
    note = (
        "n counts control models. In marked rows, the mean minus its standard error is not more "
        f"than {MARGIN} above chance"
    )
    return worded(content, "control_techniques", title, heads, rows, note)


def _accuracy(row: pd.Series) -> Cell:
    spread = "" if row["sd"] != row["sd"] else f" ± {row['sd']:.2f}"
    text = "–" if row["accuracy"] != row["accuracy"] else f"{row['accuracy']:.2f}{spread}"
    return {"text": text, "value": repr(float(row["accuracy"])), "number": True}


def _empty() -> Cell:
    return {"text": "–", "value": "nan", "number": True}


def _caveats(scores: pd.DataFrame) -> list[str]:
    return [BASELINE] if "weight-change" in set(scores["technique"]) else []


def _low_training(row: dict[str, Any]) -> bool:
    return row["pair"] != "frozen" and not row["training_accuracy"] > NOT_TRAINED


def _notices(content: Content) -> list[str]:
    if not content.has("control_training"):
        return []
    frame = content.read("control_training")
    trained = frame[frame["pair"] != "frozen"]
    weak = sum(map(_low_training, trained.to_dict("records")))
    unlike = unlike_rates(trained)
    found = []
    if weak:
        found.append(
            f"{weak} of {len(trained)} control models ended with a training accuracy of "
            f"{NOT_TRAINED} or less at every learning rate tried (marked below): what their two "
            "layers hold is incomplete."
        )
    if unlike:
        found.append(
            f"θO and θM2 were trained at different learning rates for {', '.join(unlike)}: what "
            "swapping finds there is partly the difference of the rates."
        )
    return found


def unlike_rates(trained: pd.DataFrame) -> list[str]:
    """The control runs (task, model, layers) whose θO and θM2 took different learning rates."""
    rates = trained.groupby(["task", "model", "pair"], sort=False)["learning_rate"].nunique()
    return [f"{task} with {model}, layers {pair}" for task, model, pair in rates[rates > 1].index]


def build(content: Content) -> Section:
    """The section's figures and tables."""
    scores = _scores(content)
    training = table(
        content, "control_training", "Control models after training, and their learning rates",
        low=_low_training, folded=True,
    )  # fmt: skip
    variants = None
    if content.has("gradient_variants"):
        variants = content.read("gradient_variants").rename(columns=VARIANT_HEADS)
    parts = [
        Part(
            "Accuracy",
            intro=" ".join([reading(scores), PAPER, *_caveats(scores)]),
            figures=pictures(content, "control_accuracy"),
            tables=[
                overview(content, scores),
                table(content, "control_accuracy", "Per task, model and pair", folded=True),
            ],
        ),
        Part(
            "Layer weights where the right layers are known",
            figures=pictures(content, "control_weights"),
            tables=[table(content, "control_weights", "Layer weights", folded=True)],
        ),
        Part(
            "Post-processing of gradients",
            figures=pictures(content, "gradient_variants"),
            tables=[
                table(
                    content, "gradient_variants", "Accuracy on the validation tasks (Table 4)",
                    note=VARIANTS_NOTE, frame=variants,
                )
            ],
        ),
        Part("Training", tables=[training]),
    ]  # fmt: skip
    return Section(parts, intro=INTRO, notices=_notices(content))
