"""Section Control: do the techniques find layers that are known? (section 3.2, Table 4)."""

from typing import Any

import pandas as pd

from memloc.report.parts import Content, Part, Section
from memloc.report.pictures import pictures
from memloc.report.pointing import best_variants, over_models, overview, reading, variants_table
from memloc.report.tables import table
from memloc.study.control import pair_label

NOT_TRAINED = 0.99  # training accuracy that the paper asks of control models

INTRO = (
    "Memorisation was forced into two known layers: only those and a head were trained on the "
    "task's labels, while an auxiliary task trained all layers. A technique is judged by "
    "accuracy@1: how often its highest-scoring layer is one of the two."
)
PAPER = (
    "The paper reports accuracies near 1.0 for layer swapping and layer retraining, and just over "
    "0.6 (accuracy@1) for forgetting gradients and probing."
)
BASELINE = (
    "Weight change is right by construction here, since other layers hardly move; that says little "
    "about models in which all layers moved."
)


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
    unlike = rates[rates > 1].index
    return [f"{task} with {model}, {pair_label(pair)}" for task, model, pair in unlike]


def build(content: Content) -> Section:
    """The section's figures and tables."""
    scores = over_models(content.read("control_techniques"))
    training = table(
        content, "control_training", "Control models after training, and their learning rates",
        low=_low_training, folded=True,
    )  # fmt: skip
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
            intro=best_variants(content),
            figures=pictures(content, "gradient_variants"),
            tables=[variants_table(content)],
        ),
        Part("Training", tables=[training]),
    ]  # fmt: skip
    return Section(parts, intro=INTRO, notices=_notices(content))
