"""Subsections of Techniques: attention and feed-forward blocks swapped apart."""

from memloc.report_parts import Part, caption, picture, pictures, table

TITLE = "Attention and feed-forward blocks swapped apart"
MCOG = (
    "M-CoG by what is swapped; the error when it is swapped in all layers (not normalised) says "
    "how much of memorisation it can undo"
)


def parts(content):
    """The subsections; none where only whole layers were swapped."""
    if not content.has("components"):
        return []
    weights = "Layer weights by what is swapped, mean over seeds"
    return [
        Part(
            TITLE,
            figures=pictures(content, "components"),
            tables=[
                table(content, "component_mcog", MCOG),
                table(content, "components", weights, folded=True),
            ],
        ),
        *_matrices(content),
    ]


def _matrices(content):
    """Galleries of matrices: a part per component, a group per model."""
    items = [item for item in content.pictures if item.kind == "component_matrix"]
    found = []
    for component in dict.fromkeys(item.wildcards["component"] for item in items):
        ours = [item for item in items if item.wildcards["component"] == component]
        groups = []
        for model in dict.fromkeys(item.wildcards["model"] for item in ours):
            chosen = [picture(content, i) for i in ours if i.wildcards["model"] == model]
            label = content.model_label(model)
            groups.append({"title": f"{label}: {len(chosen)} tasks", "figures": chosen})
        all_of = {"task": "each task", "model": "model", "component": component}
        text = caption(content.templates, "component_matrix", all_of)
        found.append(Part(f"Swapping {component}: window matrices", gallery=groups, caption=text))
    return found
