"""Where memorisation is: training, matrices of windows, layer weights, M-CoG."""

from memloc.study.kinds.kind import FigureKind, by_model, by_pair, matrices, once, tables

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
memorisation. Errors are scaled so that modifying all layers (the bottom row) gives 1. A title says
which share of noisy examples that is: where it is small, dark cells mean little. It also says where
errors are not scaled.
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
        drawn_for=lambda s: [
            {"technique": name, **pair} for name in s.window_techniques for pair in by_pair(s)
        ],
        asked=True,
        runs=lambda s, w: s.run_list(models=[w["model"]], tasks=[w["task"]]),
        caption="""
**Memorisation error by window** for {{ task }} and {{ model }} ({{ technique }}), as Figure 3
of the paper: the mean share of noisy examples that lose their perturbed label, over all windows of
x consecutive layers (row) that include layer y (column). The title says which share modifying all
layers gives, which is 1 here.
""",
    ),
    "layer_weights": FigureKind(
        name="layer_weights_{model}",
        drawer="figures.layers:layer_weights_figure",
        section="techniques",
        title="Layer weights",
        alt="Line plots: layer weight, or F1 of probes, against layer, for {names}.",
        inputs=tables("layer_weights", "probe_f1", "mcog"),
        drawn_for=by_model,
        caption="""
**Layer weights** of {{ model }}, as Figures 5 and 13 of the paper: a row of panels per
technique, a column per group of tasks, a line per task.
A higher weight means that the layer matters more for memorisation; bands are one standard
deviation over seeds. A row of probing shows the F1 of probes that tell noisy from clean
examples instead: where it rises from one layer to the next, the layer matters. Its dotted lines
are the F1 of random guesses; a probe no better than those found no noise. A pale line is of a
technique that found nothing in that task: its shape is noise.
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
        inputs=tables("layer_weights", "mcog"),
        drawn_for=lambda s: by_model(s) if len(s.techniques) > 1 else [],
        caption="""
**Techniques side by side** for {{ model }}: a panel per task, a line per technique, each scaled
so that its largest weight is 1.
Where lines run together the techniques agree on the layers that matter. Compare shapes, not
heights: a line that falls steeply from its peak puts most of its weight on that layer, a flat
one spreads it over all. A pale line is of a technique that found nothing in that task: its shape is
noise.
""",
    ),
    "one_layer": FigureKind(
        name="one_layer",
        drawer="figures.one_layer:one_layer_figure",
        section="techniques",
        title="Largest error from one layer",
        alt="Dot plot: largest memorisation error from modifying one layer, by model.",
        inputs=tables("one_layer", "mcog"),
        drawn_for=lambda s: once(s) if s.window_techniques else [],
        caption="""
**Largest memorisation error from modifying a single layer**, as Figure 4 of the paper: a dot
per task, spread sideways only so that dots don't hide each other.
Bars are one standard deviation over seeds. Low values mean that no layer on its own holds the
memorised labels; the dotted line is at 0.15, below which most dots of the paper lie.
Errors are scaled so that modifying all layers gives 1, except in panels whose title says that
they are not normalised. An error exceeds 1 where one layer undoes more than all layers together;
such a panel has an axis of its own. A pale dot is of a technique that found nothing in that task.
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
}
