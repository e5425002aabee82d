"""The stage control, and the progression by epoch."""

from memloc.study.kinds.kind import FigureKind, by_model, once, tables

KINDS: dict[str, FigureKind] = {
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
