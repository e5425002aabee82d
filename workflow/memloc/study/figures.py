"""The figures: one list, from which rules, files and the page are made.

A new figure is an entry here and its drawing function in memloc.figures. Planning imports this
module, so it imports nothing that draws.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2

Words = Mapping[str, str]  # wildcards of one figure, by name
MEASURES = ("mcog", "layer_weights")  # of which correlations are drawn


def as_text(value: object) -> str:
    """What a caption's braces hold, so that reStructuredText reads it as one line of plain text.

    Names and labels are anybody's: markup in them would make links and load pictures. A NUL is
    how docutils itself notes an escape.
    """
    words = re.sub(r"[\x00-\x1f\x7f]", " ", str(value)).split()
    return re.sub(r"([^\w ]|_)", r"\\\1", " ".join(words))


CAPTIONS = jinja2.Environment(undefined=jinja2.StrictUndefined, finalize=as_text)


def no_runs(study: Any, words: Words) -> list[dict[str, Any]]:
    """For figures whose tables say themselves what they are of."""
    return []


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure.

    name: its files' name, with {wildcards}; drawer: "module:function" of memloc; section: id of
    the report's section in which it stands; title: what it is called there; alt: what the picture
    is, for those who can't see it ({names} are of its wildcards); caption: reStructuredText, with
    the wildcards in Jinja's braces, which are text and no markup.
    inputs: from a study and the wildcards to the files it is drawn from, by name; drawn_for: the
    wildcards of each figure that a study has; runs: task, model and seed of the tables in a list of
    inputs; stage: the stage of the study it belongs to, "" for the main part.
    """

    name: str
    drawer: str
    section: str
    title: str
    alt: str
    caption: str
    inputs: Callable[[Any, Words], dict[str, Any]]
    drawn_for: Callable[[Any], list[dict[str, str]]]
    runs: Callable[[Any, Words], list[dict[str, Any]]] = no_runs
    stage: str = ""

    @property
    def does(self) -> str:
        """What the figure is, in a sentence for lists of rules."""
        words = re.findall(r"{(\w+)}", self.name)
        return f"{self.title}: {self.alt.format(names='each ' + ' and '.join(words))}"

    def captioned(self, words: Words) -> str:
        """The caption of one figure, as reStructuredText; UndefinedError if a word is missing."""
        return _template(self.caption).render(words).strip()


@cache
def _template(caption: str) -> jinja2.Template:
    return CAPTIONS.from_string(caption)


def once(study: Any) -> list[dict[str, str]]:
    """One figure of the whole study."""
    return [{}]


def by_model(study: Any) -> list[dict[str, str]]:
    """A figure per model."""
    return [{"model": model} for model in study.models]


def by_pair(study: Any) -> list[dict[str, str]]:
    """A figure per task and model."""
    return study.pair_list()


def by_task_and_model(study: Any) -> list[dict[str, str]]:
    """A figure per task and model, in the order of models: all tasks of one, then of the next."""
    return [{"task": task, "model": model} for model in study.models for task in study.task_names]


def matrices(study: Any, key: str, names: Iterable[str]) -> list[dict[str, str]]:
    """A figure per technique or component (`key`) and model."""
    return [{key: name, **words} for name in names for words in by_model(study)]


def tables(*names: str, optional: Iterable[str] = ()) -> Callable[[Any, Words], dict[str, Any]]:
    """Inputs that are tables of the folder summary; `optional` ones where the study makes them."""

    def inputs(study: Any, words: Words) -> dict[str, Any]:
        made = [name for name in optional if name in study.summary_tables]
        return {name: study.places.summary(name) for name in (*names, *made)}

    return inputs


KINDS: dict[str, FigureKind] = {
    "training": FigureKind(
        name="training_{model}",
        drawer="figures.training:training_figure",
        section="training",
        title="Training",
        alt="Line plots: noisy, clean and validation accuracy against epoch, for {names}.",
        inputs=lambda s, w: {
            "histories": s.run_paths(s.places.run("perturbed/history.tsv"), models=[w["model"]]),
            "training": s.places.summary("training"),
        },
        drawn_for=lambda s: [] if s.given else by_model(s),
        runs=lambda s, w: s.run_list(models=[w["model"]], labels="perturbed"),
        caption="""
**Training on perturbed labels** of {{ model }}: accuracy after each epoch, thick for the mean
and thin for single seeds.
Clean examples are learnt first; the solid line of noisy examples rises later, which is
memorisation. Triangles mark the epoch after which training accuracy first exceeded the
threshold (θ_M1); without a triangle it never did.
Noisy accuracy is against the perturbed label, validation accuracy against true labels.
""",
    ),
    "matrix": FigureKind(
        name="matrix_{technique}_{model}",
        drawer="figures.matrices:matrix_figure",
        section="techniques",
        title="Window matrices",
        alt="Heat maps: mean memorisation error by window length and layer, for {names}.",
        inputs=lambda s, w: {"runs": s.table_paths(w["technique"], models=[w["model"]])},
        drawn_for=lambda s: matrices(s, "technique", s.window_techniques),
        runs=lambda s, w: s.run_list(models=[w["model"]]),
        caption="""
**Memorisation error by window** for {{ model }} ({{ technique }}), as Figure 3 of the paper: a
panel per task.
Row x, column y is the mean share of noisy examples that lose their perturbed label, over all
windows of x consecutive layers that include layer y.
Read from top to bottom: the sooner a column darkens, the more its layer matters for
memorisation. Errors are scaled so that modifying all layers (the bottom row) gives 1; a title says
where they are not.
{% if "patching" in technique %}Patching replaces what θ_M2's layers added to the state by what
θ_O's layers added. A late layer that only writes out what early layers decided therefore reverts
examples too, which it doesn't in swapping.
{% endif -%}
The clean error in a title should stay near 0: only then does a window undo memorisation
rather than the task.
""",
    ),
    "task_matrix": FigureKind(
        name="matrix_{technique}_{task}_{model}",
        drawer="figures.matrices:matrix_figure",
        section="techniques",
        title="Window matrix of a task",
        alt="Heat map: mean memorisation error by window length and layer, for {names}.",
        inputs=lambda s, w: {
            "runs": s.table_paths(w["technique"], models=[w["model"]], tasks=[w["task"]])
        },
        drawn_for=lambda s: [],  # drawn when it is asked for: the page shows all tasks side by side
        runs=lambda s, w: s.run_list(models=[w["model"]], tasks=[w["task"]]),
        caption="""
**Memorisation error by window** for {{ task }} and {{ model }} ({{ technique }}), as Figure 3
of the paper: the mean share of noisy examples that lose their perturbed label, over all windows of
x consecutive layers (row) that include layer y (column).
""",
    ),
    "layer_weights": FigureKind(
        name="layer_weights_{model}",
        drawer="figures.layers:layer_weights_figure",
        section="techniques",
        title="Layer weights",
        alt="Line plots: layer weight, or F1 of probes, against layer, for {names}.",
        inputs=tables("layer_weights", "probe_f1"),
        drawn_for=by_model,
        caption="""
**Layer weights** of {{ model }}, as Figures 5 and 13 of the paper: a row of panels per
technique, a column per group of tasks, a line per task.
A higher weight means that the layer matters more for memorisation; bands are one standard
deviation over seeds. A row of probing shows the F1 of probes that tell noisy from clean
examples instead: where it rises from one layer to the next, the layer matters. Its dotted lines
are the F1 of random guesses; a probe no better than those found no noise.
Compare shapes rather than heights between rows, since the techniques' units differ. The
vertical axes don't start at 0.
""",
    ),
    "techniques": FigureKind(
        name="techniques_{model}",
        drawer="figures.layers:techniques_figure",
        section="techniques",
        title="Techniques side by side",
        alt="Line plots: relative layer weight of each technique against layer, for {names}.",
        inputs=tables("layer_weights"),
        drawn_for=lambda s: by_model(s) if len(s.techniques) > 1 else [],
        caption="""
**Techniques side by side** for {{ model }}: a panel per task, a line per technique, each scaled
so that its largest weight is 1.
Where lines run together the techniques agree on the layers that matter. Compare shapes, not
heights: a line that falls steeply from its peak puts most of its weight on that layer, a flat
one spreads it over all.
""",
    ),
    "one_layer": FigureKind(
        name="one_layer",
        drawer="figures.layers:one_layer_figure",
        section="techniques",
        title="Largest error from one layer",
        alt="Dot plot: largest memorisation error from modifying one layer, by model.",
        inputs=tables("one_layer"),
        drawn_for=lambda s: once(s) if s.window_techniques else [],
        caption="""
**Largest memorisation error from modifying a single layer**, as Figure 4 of the paper: a dot
per task, spread sideways only so that dots don't hide each other.
Bars are one standard deviation over seeds. Low values mean that no layer on its own holds the
memorised labels; the dotted line is at 0.15, below which most dots of the paper lie.
Errors are scaled so that modifying all layers gives 1, except in panels whose title says that
they are not normalised. An error exceeds 1 where one layer undoes more than all layers together;
such a panel has an axis of its own.
""",
    ),
    "mcog": FigureKind(
        name="mcog",
        drawer="figures.mcog:mcog_figure",
        section="techniques",
        title="Memorisation centre of gravity",
        alt="Dot plot: memorisation centre of gravity of each task, by technique and model.",
        inputs=tables("mcog", "layer_weights"),
        drawn_for=once,
        caption="""
**Memorisation centre of gravity** (M-CoG) per task, technique and model, as Figure 6 of the
paper: the mean layer, each layer weighted by its relevance for memorisation.
Points left of the dotted line (the middle of the model) say that lower layers matter more,
points right of it that higher layers do. Bars are 95 % intervals, from resampling noisy examples
and seeds (examples alone for one seed; seeds alone where a technique has no table per example).
The shade is what a technique of windows can reach at all: a window holds several layers, so that
even a model whose first layer holds everything has its M-CoG at the shade's left edge. Compare
tasks, not distances from the ends of the axis; column rescaled of the table stretches the shade to
layers 1 to L. Hollow marks: the technique found nothing there, so that averages leave it out.
""",
    ),
    "mcog_averages": FigureKind(
        name="mcog_averages",
        drawer="figures.mcog:mcog_averages_figure",
        section="techniques",
        title="Memorisation centre of gravity, averaged",
        alt="Dot plots: M-CoG of each task averaged over models and over techniques.",
        inputs=tables("mcog", "layer_weights"),
        drawn_for=lambda s: once(s) if s.compared else [],
        caption="""
**M-CoG averaged over models (left) and over techniques (right)**, as Figure 7 of the paper;
bars are one standard deviation over what was averaged.
Left, a mark per technique shows whether techniques order the tasks alike. Right, a mark per
model, averaged over those of the paper's techniques that were run, shows whether models do.
Techniques that found nothing in a task and model are left out of both; the others' distances from
their own means stand for them, so that no task moves for lack of a technique. Only models with the
commonest number of layers are included.
""",
    ),
    "label_probes": FigureKind(
        name="label_probes_{model}",
        drawer="figures.probes:label_probes_figure",
        section="techniques",
        title="Probes for labels",
        alt=(
            "Line plots: F1 of probes for perturbed and original labels against layer, for {names}."
        ),
        inputs=tables("label_f1"),
        drawn_for=lambda s: by_model(s) if "probing" in s.techniques else [],
        caption="""
**Probes for labels** in {{ model }}, as Figure 14 of the paper: how well probes read the
perturbed label (solid) and the original one (dashed) of noisy examples from each layer, and the
label of clean examples (dotted). Bands are one standard deviation over seeds.
Where the solid line rises above the dashed one, the state says more of what was memorised than
of what would generalise: 0.10 above is the event “memorisation » generalisation”.
""",
    ),
    "component_matrix": FigureKind(
        name="swap-{component}_{model}",
        drawer="figures.components:component_matrix_figure",
        section="techniques",
        title="Window matrices",
        alt=(
            "Heat maps: mean memorisation error by window length and layer, for {names} swapped "
            "alone."
        ),
        inputs=lambda s, w: {
            "runs": s.run_paths(s.component_table(w["component"]), models=[w["model"]])
        },
        drawn_for=lambda s: matrices(s, "component", [c for c in s.components if c != "layer"]),
        runs=lambda s, w: s.run_list(models=[w["model"]]),
        caption="""
**Memorisation error by window** for {{ model }}, a panel per task, when only {{ "feed-forward" if
component == "mlp" else "attention" }} blocks are swapped, and the rest of each layer stays.
Read it like the matrix of whole layers. Errors are scaled so that swapping the blocks of all
layers gives 1. Matrices can therefore be compared in shape but not in height, and small
differences look large where the blocks alone undo little.
""",
    ),
    "components": FigureKind(
        name="components_{model}",
        drawer="figures.components:components_figure",
        section="techniques",
        title="Components",
        alt=(
            "Line plots: memorisation error by layer for whole layers and their blocks, for "
            "{names}."
        ),
        inputs=tables("components"),
        drawn_for=lambda s: by_model(s) if len(s.components) > 1 else [],
        caption="""
**Swapping whole layers, attention or feed-forward blocks** of {{ model }}: mean memorisation
error over all windows that include a layer, averaged over lengths, a panel per task.
Errors are not normalised, so that heights can be compared: the closer a block's line is to the
whole layer's, the more of memorisation it carries. Layer norms belong to neither block. Bands
are one standard deviation over seeds.
""",
    ),
    "heads": FigureKind(
        name="heads_{model}",
        drawer="figures.heads:heads_figure",
        section="techniques",
        title="Attention heads",
        alt="Heat maps: memorisation error by layer and attention head, for {names}.",
        inputs=tables("heads"),
        drawn_for=lambda s: by_model(s) if s.heads else [],
        caption="""
**Single attention heads swapped**, {{ model }}: the share of noisy examples that lose their
perturbed label when one head of one layer is taken from θ_O, mean over seeds, a map per task.
The scale is the same for all tasks and ends at the largest error. Small errors everywhere say
that no single head holds what was memorised.
""",
    ),
    "edits": FigureKind(
        name="edits_{model}",
        drawer="figures.edits:edits_figure",
        section="techniques",
        title="Noise undone against accuracy lost",
        alt=(
            "Line plots: share of noisy examples reverted against validation accuracy lost, by "
            "technique, for {names}."
        ),
        inputs=tables("edits"),
        drawn_for=lambda s: by_model(s) if s.window_techniques else [],
        caption="""
**What removing noise costs**, {{ model }}: windows as edits of θ_M2, a panel per task, a line
per technique. Each point is a window that no other one of its technique beats: none undoes as
much noise (the share of noisy examples that lose their perturbed label) for less validation
accuracy. Points are means over seeds.
Large marks are the best edits: the most noise undone for at most one point of accuracy, left of
the dotted line. Left of 0 the edited model is more accurate than θ_M2. Windows were compared on
the validation examples that their accuracy is measured on, so that a best edit costs rather more
than shown where these are few.
""",
    ),
    "reverted": FigureKind(
        name="reverted-{technique}_{model}",
        drawer="figures.edits:reverted_figure",
        section="techniques",
        title="Where reverted examples go",
        alt=(
            "Area plots: share of noisy examples that get their original label, and of those that "
            "get another one, by layer, for {names}."
        ),
        inputs=lambda s, w: {
            "runs": s.table_paths(w["technique"], models=[w["model"]], tasks=s.many_classes)
        },
        drawn_for=lambda s: [
            {"technique": name, **words}
            for name in s.window_techniques
            if s.techniques[name].paper and s.many_classes
            for words in by_model(s)
        ],
        runs=lambda s, w: s.run_list(models=[w["model"]], tasks=s.many_classes),
        caption="""
**Where reverted examples go** in {{ model }} ({{ technique }}), for tasks of more than two
classes: the mean over all windows that include a layer, and over seeds, of the share of noisy
examples that lose their perturbed label. The dark part gets its original label back, the light
part yet another one: there the window broke the example rather than undoing its noise.
Where the original labels of some noisy examples are unknown, the dark part is a share of the
others.
""",
    ),
    "examples": FigureKind(
        name="examples_{model}",
        drawer="figures.examples:examples_figure",
        section="examples",
        title="Examples",
        alt=(
            "Heat maps: shares of examples by smallest reverting window and single layer, for "
            "{names}."
        ),
        inputs=tables("example_shares"),
        drawn_for=lambda s: by_model(s) if "swapping" in s.techniques else [],
        caption="""
**Where single examples sit** in {{ model }}: a row per task, numbers are per cent of the noisy
examples that were memorised, mean over seeds.
Left, by the number of consecutive layers in the smallest window whose swap reverts an example:
1 means that one layer alone holds it; "none" that no swap reverts it, not even that of all
layers. Right, the share that each single layer reverts; an example may be reverted by several.
Empty cells are 0.
""",
    ),
    "correlations": FigureKind(
        name="correlations_{measure}",
        drawer="figures.correlations:correlations_figure",
        section="correlations",
        title="Correlations",
        alt="Heat maps: Spearman's rho between techniques and between models ({names}).",
        inputs=tables("correlations"),
        drawn_for=lambda s: [{"measure": m} for m in MEASURES] if s.compared else [],
        caption="""
**Agreement of techniques and of models** on {{ "M-CoG" if measure == "mcog" else "layer
weights" }}: Spearman's ρ, as Figure {{ 8 if measure == "mcog" else 9 }} of the paper. Each
panel's title says what it compares; there is none between techniques, or between models, where
only one of them was run.
Techniques are compared within each model, models within each of the paper's four techniques (all
techniques, where none of these was run), over {{ "tasks" if measure == "mcog" else "the layers of
each task" }}; colour and first number are the mean. In brackets is ρ of all rows pooled, as the
paper has it. Pooling techniques that differ in level makes models agree by itself: two models
that share nothing but levels which spread twice as far as tasks do reach a ρ of about .60, so read
the first number.
1 (dark red) is the same order, 0 (white) none, -1 (dark blue) the opposite order; "n too small"
marks fewer than three tasks to compare. Intervals and counts are in the table of correlations.
""",
    ),
    "binarised": FigureKind(
        name="binarised",
        drawer="figures.binarised:binarised_figure",
        section="correlations",
        title="Binarised tasks",
        alt="Dot plots: depth of memorisation of tasks with all their classes and with two.",
        inputs=tables("mcog", optional=("events",)),
        drawn_for=lambda s: once(s) if s.binarised else [],
        caption="""
**All classes and two classes**, as Figures 19 and 20 of the paper: M-CoG of each technique, and
the centroid events, of multi-class tasks (filled marks) and of the same tasks with their two
commonest classes alone (open marks). Marks are means over models, bars one standard deviation.
Where open and filled marks of a task stay together, its depth isn't an effect of how many
classes it has.
""",
    ),
    "depth_correlations": FigureKind(
        name="depth_correlations",
        drawer="figures.depth:depth_correlations_figure",
        section="correlations",
        title="Correlations",
        alt=(
            "Dot plots: Spearman's rho of each measure of depth with each measure of "
            "generalisation, pooled and by model, beside the paper's."
        ),
        inputs=tables("correlations"),
        drawn_for=lambda s: once(s) if s.depth_compared else [],
        caption="""
**Depth of memorisation against generalisation**, as Table 2 of the paper, and centroid events
against those of probes (section 5): Spearman's ρ over tasks. The first panel is the mean over
models, the others take one each.
Filled dots are this run's, with a 95 % interval over tasks where there are six or more; strokes
pool all rows of tasks and models, as the paper does; open diamonds are the paper's own numbers for
its 12 tasks and four models. Where there are fewer than three tasks, no dot is drawn and the panel
says so. Techniques that found nothing in a task and model are left out of M-CoG.
Dots right of the dotted line mean: the better a model generalises to a task, the deeper it
memorises.
""",
    ),
    "centroids": FigureKind(
        name="centroids_{task}_{model}",
        drawer="figures.centroids:centroids_figure",
        section="explanation",
        title="Centroid analysis",
        alt=(
            "Line plots: where clean and noisy examples lie between two classes' centroids "
            "against layer, as trained and with half of the layers swapped, for {names}."
        ),
        inputs=lambda s, w: {
            "runs": s.run_paths(
                s.places.run("centroids.tsv"), models=[w["model"]], tasks=[w["task"]]
            ),
            **tables("centroids", "events")(s, w),
        },
        drawn_for=by_task_and_model,
        stage="centroids",
        caption="""
**Centroid analysis** of {{ task }}, {{ model }}, as Figures 10 and 11 of the paper: all
training examples of two classes projected on the line between the centroids of their clean
examples, those of all ordered pairs of classes pooled, averaged over seeds (thin lines: noisy means
of single pairs with at least eight noisy examples, where there are more than two).
Noisy examples belong to class b and were given the label a; bands hold three quarters of the
examples. Left the model as trained (θ_M2), then with the bottom and with the top half of its
layers taken from θ_O, which saw the original labels.
**Crossing**: the first layer whose noisy mean is nearer to a. **Initiation**: the first layer
from which on the bands of a and b stay apart. Each is a mean over seeds, in which an event that
never happens counts as layer L + 1; the number beside it says in how many it never does.
The centroids are those of the training examples that are projected, so with few examples per
class they lie apart sooner than unseen examples would.
""",
    ),
    "swapped_halves": FigureKind(
        name="swapped_halves_{model}",
        drawer="figures.centroids:swapped_halves_figure",
        section="explanation",
        title="Half of the layers",
        alt=(
            "Line plots: where noisy examples lie between two classes' centroids against layer, "
            "as trained and with half of the layers swapped, a panel per task, for {names}."
        ),
        inputs=tables("centroids"),
        drawn_for=by_model,
        stage="centroids",
        caption="""
**Half of the layers taken from θ_O**, {{ model }}, as Figure 11 of the paper: where noisy
examples lie on average between the class of their perturbed label (0) and their own (1), by
layer.
Where a dashed line stays near 1 while the solid one falls, the bottom half of the layers begins
the move that the top half completes; where the dotted line ends near 0, replacing the top half
comes too late to stop it. Solid and dotted lines coincide in the bottom half, which they share.
""",
    ),
    "events": FigureKind(
        name="events",
        drawer="figures.events:events_figure",
        section="explanation",
        title="Events",
        alt=(
            "Dot plots: the layer at which noisy examples turn and the layer from which classes "
            "are told apart, by task and model, from centroids and from probes."
        ),
        inputs=tables("events", "centroids"),
        drawn_for=once,
        stage="centroids",
        caption="""
**When noisy examples turn, and when classes come apart**, per task, as Figure 12 of the paper
(15, 17 and 20 show the same). Filled marks: the crossing of the centroid analysis, and the
first layer at which probes predict noisy examples' perturbed labels better than their original
ones by 0.10 of F1 (memorisation » generalisation). Open marks: classification initiation, and
the first layer at which probes reach 90 % of the way from random guesses to their best layer on
clean examples.
Layers are means over seeds, with the noisy examples of all pairs of classes pooled; bars are one
standard deviation. An event that never happens counts as layer L + 1 ("never"); in how many
seeds that was so is on the right. A mean over models has their standard deviation.
A filled mark to the right of the open one says that the model generalises first and memorises
second.
""",
    ),
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
        name="memorisation_map_{task}_{model}",
        drawer="figures.generalisation:memorisation_map_figure",
        section="generalisation",
        title="Memorisation maps",
        alt=(
            "Scatter plot: probability of each training example's label where it was trained on "
            "and where it was held out, for {names}."
        ),
        inputs=lambda s, w: {
            "examples": s.places.pair("generalisation.tsv").format(**w),
            "halves": s.places.pair("generalisation_halves.tsv").format(**w),
        },
        drawn_for=by_pair,
        stage="generalisation",
        caption="""
**Memorisation map** of {{ task }} and {{ model }}: a point per training example, from models
trained on random halves of the data.
To the right are examples whose label the models give much probability after training on them;
to the top are those whose label they give much probability without having seen them. Colour is
the difference, counterfactual memorisation: what a model knows of an example only because it was
trained on it.
Points above the dotted line (a random guess) make up the generalisation score. Bottom right,
often noisy examples (triangles): memorised, since nothing else in the data says their label.
""",
    ),
    "control_accuracy": FigureKind(
        name="control_accuracy",
        drawer="figures.control:control_accuracy_figure",
        section="control",
        title="Accuracy",
        alt="Dot plots: accuracy@1, then accuracy@2, of each technique, and by pair of layers.",
        inputs=tables("control_accuracy"),
        drawn_for=once,
        stage="control",
        caption="""
**Do techniques find layers that are known?** (Figure 2) In the control setup the labels of a
task could change two layers alone, while an auxiliary task trained all of them.
accuracy@k is the share of a technique's k highest-scoring layers that are among those two, and
accuracy@1 decides: accuracy@2 favours windows, in whose layer weights the neighbour of a right
layer comes second. Rows called "one layer" score a layer by modifying it alone. A small marker is a
task's mean over pairs of layers and models, the bar is the mean over tasks, and the line its 95 %
interval (from six tasks on); hollow markers are tasks that chose how gradients are post-processed,
and count in no bar. The dotted line is what random guesses reach.
Every second panel splits the accuracy by where the two layers were. Pairs of layers that aren't
neighbours count there alone, unless there are no others.
""",
    ),
    "control_weights": FigureKind(
        name="control_weights_{model}",
        drawer="figures.control:control_weights_figure",
        section="control",
        title="Layer weights",
        alt="Line plots: layer weights of each technique by pair of layers, for {names}.",
        inputs=tables("control_weights"),
        drawn_for=by_model,
        stage="control",
        caption="""
**Layer weights in the control setup**, {{ model }}: a row per technique, a column per pair of
layers that the task's labels could change (shaded), a line per task, each scaled so that its
largest weight is 1.
A technique that localises has its peaks in the shade.
""",
    ),
    "gradient_variants": FigureKind(
        name="gradient_variants_{model}",
        drawer="figures.gradient_variants:gradient_variants_figure",
        section="control",
        title="Gradient post-processing",
        alt="Line plots: gradient norms by layer after each step of post-processing, for {names}.",
        inputs=lambda s, w: {
            "runs": s.control.variant_paths("gradients.tsv"),
            "norms": s.control.variant_paths("gradient_norms.tsv"),
        },
        drawn_for=lambda s: by_model(s) if s.control.validated else [],
        stage="control",
        runs=lambda s, w: s.control.variant_runs(),
        caption="""
**Post-processing of forgetting gradients** (Figure 21), {{ model }}, L1-norm. The upper panels
show norms before any post-processing: of the frozen counterpart for noisy examples (relative to
the largest), and of the model for clean and for noisy examples (both relative to the larger of
the two). The lower panels show layer weights, which sum to 1, after each way of post-processing:
none, division by the frozen counterpart, subtraction of the gradient of clean examples, and both.
There are two rows per validation task, a line per pair of layers that its labels could change;
filled markers are those two layers.
""",
    ),
    "progression": FigureKind(
        name="progression_{model}",
        drawer="figures.progression:progression_figure",
        section="progression",
        title="Progression",
        alt="Line plots: accuracies, M-CoG and centroid events against epoch, for {names}.",
        inputs=tables("progression", "layer_weights"),
        drawn_for=by_model,
        stage="progression",
        caption="""
**Depth of memorisation by epoch**, by task, for {{ model }}: the accuracy on noisy examples
against their perturbed labels and on clean ones, the memorisation centre of gravity of each
technique, and the mean layers of the centroid events, of which those that never happen count as
layer L + 1 ("never"). Bars are standard deviations over seeds. A point is missing where nothing
was memorised yet.
""",
    ),
}
