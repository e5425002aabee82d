"""The stage centroids: where noisy examples lie between classes, and when that changes."""

from memloc.study.kinds.kind import FigureKind, by_model, by_pair, once, tables

KINDS: dict[str, FigureKind] = {
    "centroids": FigureKind(
        name="centroids_{model}",
        drawer="figures.centroids:centroids_figure",
        section="explanation",
        title="Centroid analysis",
        alt=(
            "Line plots: where clean and noisy examples lie between two classes' centroids "
            "against layer, a panel per task, for {names}."
        ),
        inputs=lambda s, w: {
            "runs": s.run_paths(s.places.run("centroids.tsv"), models=[w["model"]]),
            **tables("centroids", "events")(s, w),
        },
        drawn_for=by_model,
        runs=lambda s, w: s.run_list(models=[w["model"]]),
        stage="centroids",
        caption="""
**Centroid analysis** of {{ model }}, as Figure 10 of the paper, a panel per task: all training
examples of two classes projected on the line between the centroids of their clean examples, those
of all ordered pairs of classes pooled, averaged over seeds (thin lines: noisy means of single pairs
with at least eight noisy examples, where there are more than two).
Noisy examples belong to class b and were given the label a; bands hold three quarters of the
examples.
**Crossing**: the first layer whose noisy mean is nearer to a. **Initiation**: the first layer
from which on the bands of a and b stay apart. Each is a mean over seeds, in which an event that
never happens counts as layer L + 1; in brackets, in how many of the seeds it never does.
The centroids are those of the training examples that are projected, so with few examples per
class they lie apart sooner than unseen examples would.
""",
    ),
    "task_centroids": FigureKind(
        name="centroids_{task}_{model}",
        drawer="figures.centroids:task_centroids_figure",
        section="explanation",
        title="Centroid analysis of a task",
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
        drawn_for=by_pair,
        stage="centroids",
        asked=True,
        caption="""
**Centroid analysis** of {{ task }}, {{ model }}, as Figures 10 and 11 of the paper: where clean
and noisy examples lie between the centroids of two classes, by layer. Left the model as trained
(θ_M2), then with the bottom and with the top half of its layers taken from θ_O, which saw the
original labels. Read it like the figure of all tasks.
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
}
