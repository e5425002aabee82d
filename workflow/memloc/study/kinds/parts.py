"""What is within layers and windows: probes for labels, blocks, heads, edits, single examples."""

from memloc.study.kinds.kind import FigureKind, by_model, matrices, tables

KINDS: dict[str, FigureKind] = {
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
**Memorisation error by window** for {{ model }}, a panel per task, when only {{ {"mlp":
"feed-forward", "attention": "attention"}.get(component, "attention or only feed-forward") }}
blocks are swapped, and the rest of each layer stays.
Read it like the matrix of whole layers. Errors are scaled so that swapping the blocks of all
layers gives 1; a title says which share of noisy examples that is. Matrices can therefore be
compared in shape but not in height, and small differences look large where the blocks alone undo
little.
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
}
