"""The stage generalisation: scores, noise that is found, memorisation maps."""

from collections.abc import Iterable
from typing import Any

from memloc.study.kinds.kind import FigureKind, by_model, by_pair, once, tables


def map_tables(study: Any, tasks: Iterable[str], model: str) -> dict[str, Any]:
    """The generalisation tables of some tasks and a model, as inputs."""
    return {
        name: [study.places.pair(file).format(task=task, model=model) for task in tasks]
        for name, file in (
            ("examples", "generalisation.tsv"), ("halves", "generalisation_halves.tsv")
        )
    }  # fmt: skip


KINDS: dict[str, FigureKind] = {
    "generalisation": FigureKind(
        name="generalisation",
        drawer="figures.generalisation:generalisation_figure",
        section="generalisation",
        title="Scores",
        alt=(
            "Dot plots: generalisation score and scaled validation accuracy of each task, by model."
        ),
        inputs=tables("generalisation"),
        drawn_for=once,
        stage="generalisation",
        caption="""
**How well models generalise**, the two measures of the paper's Table 2. Top: generalisation
score, the share of training examples whose label gets more than a random guess's probability
from models that were not trained on them; hollow marks count clean examples only, bars are one
standard deviation over halves.
Bottom: validation accuracy at the end of training, scaled so that random guessing is 0 and the
best possible 1; bars are one standard deviation over seeds. Bars across a row (|) are baselines
that need no model: on top the score of giving every label its share in training, at the bottom the
validation accuracy of always giving the commonest label.
Noisy examples pull the score down by about their share, since no other example says what their
label is.
""",
    ),
    "detection": FigureKind(
        name="detection",
        drawer="figures.detection:detection_figure",
        section="generalisation",
        title="Finding the noise",
        alt=(
            "Dot plots: AUROC, then precision, of three ways to find noisy examples in each task, "
            "by model."
        ),
        inputs=tables("detection"),
        drawn_for=lambda s: once(s) if s.detects_noise else [],
        stage="generalisation",
        caption="""
**How well noisy examples are found without their marks**, by counterfactual memorisation, by the
loss of their label at θ_M1 (mean over seeds) and by cleanlab's confident learning. Top: AUROC, the
chance that a noisy example is more suspect than a clean one, with 95 % intervals over examples
(none where the order is perfect). Bottom: the share of noisy examples among as many of the most
suspect ones as there are noisy ones. Strokes (|) are what a random order reaches.
Labels that are perturbed at random say little of how well wrong labels of people would be found.
""",
    ),
    "memorisation_map": FigureKind(
        name="memorisation_map_{model}",
        drawer="figures.maps:memorisation_maps_figure",
        section="generalisation",
        title="Memorisation maps",
        alt=(
            "Scatter plots: probability of each training example's label where it was trained on "
            "and where it was held out, a panel per task, for {names}."
        ),
        inputs=lambda s, w: map_tables(s, s.task_names, w["model"]),
        drawn_for=by_model,
        runs=lambda s, w: [{"task": task, "model": w["model"]} for task in s.task_names],
        stage="generalisation",
        caption="""
**Memorisation maps** of {{ model }}, a panel per task, a point per training example, from models
trained on random halves of the data.
To the right are examples whose label the models give much probability after training on them;
to the top are those whose label they give much probability without having seen them. Colour is
the difference, counterfactual memorisation: what a model knows of an example only because it was
trained on it.
Points above the dotted line (a random guess) make up the generalisation score. Bottom right,
often noisy examples (triangles): memorised, since nothing else in the data says their label.
""",
    ),
    "task_memorisation_map": FigureKind(
        name="memorisation_map_{task}_{model}",
        drawer="figures.maps:memorisation_map_figure",
        section="generalisation",
        title="Memorisation map of a task",
        alt=(
            "Scatter plot: probability of each training example's label where it was trained on "
            "and where it was held out, for {names}."
        ),
        inputs=lambda s, w: map_tables(s, [w["task"]], w["model"]),
        drawn_for=by_pair,
        runs=lambda s, w: [{"task": w["task"], "model": w["model"]}],
        stage="generalisation",
        asked=True,
        caption="""
**Memorisation map** of {{ task }} and {{ model }}: read it like the maps of all tasks. In the
margins are the shares of clean and of noisy examples, each summing to 1.
""",
    ),
}
