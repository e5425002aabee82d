"""Techniques, models and tasks compared: rank correlations and binarised tasks."""

from memloc.study.kinds.kind import MEASURES, FigureKind, once, tables

KINDS: dict[str, FigureKind] = {
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
Generalisation is its score (gen. score) or the validation accuracy, scaled (val. score).
Filled dots are this run's, with a 95 % interval over tasks where there are six or more; strokes
pool all rows of tasks and models, as the paper does; open diamonds are the paper's own numbers for
its 12 tasks and four models. Where there are fewer than three tasks, no dot is drawn and the panel
says so. Techniques that found nothing in a task and model are left out of M-CoG.
Dots right of the dotted line mean: the better a model generalises to a task, the deeper it
memorises.
""",
    ),
}
