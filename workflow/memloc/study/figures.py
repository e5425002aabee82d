"""The kinds of figures: which module draws each, in which section it stands, what it shows.

Planning imports this, so it imports nothing. The caption of a kind is workflow/report/KIND.rst.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of figure.

    module: the memloc module whose DRAW maps the kind to its function; section: id of the report's
    section; alt: what the picture is, for those who can't see it ({names} are of its wildcards).
    """

    module: str
    section: str
    alt: str


KINDS = {
    "component_matrix": Kind(
        "figures.components", "techniques",
        "Heat map: mean memorisation error by window length and layer, for {names} swapped alone.",
    ),
    "components": Kind(
        "figures.components", "techniques",
        "Line plots: memorisation error by layer for whole layers and their blocks, for {names}.",
    ),
    "examples": Kind(
        "figures.examples", "examples",
        "Heat maps: shares of examples by smallest reverting window and single layer, for {names}.",
    ),
    "training": Kind(
        "figures.training", "training",
        "Line plots: noisy, clean and validation accuracy against epoch, for {names}.",
    ),
    "matrix": Kind(
        "figures.layers", "techniques",
        "Heat map: mean memorisation error by window length and layer, for {names}.",
    ),
    "layer_weights": Kind(
        "figures.layers", "techniques",
        "Line plots: layer weight, or F1 of probes, against layer, for {names}.",
    ),
    "techniques": Kind(
        "figures.layers", "techniques",
        "Line plots: relative layer weight of each technique against layer, for {names}.",
    ),
    "one_layer": Kind(
        "figures.layers", "techniques",
        "Dot plot: largest memorisation error from modifying one layer, by model.",
    ),
    "mcog": Kind(
        "figures.mcog", "techniques",
        "Dot plot: memorisation centre of gravity of each task, by technique and model.",
    ),
    "mcog_averages": Kind(
        "figures.mcog", "techniques",
        "Dot plots: M-CoG of each task averaged over models and over techniques.",
    ),
    "centroids": Kind(
        "figures.centroids", "explanation",
        "Line plots: where clean and noisy examples lie between two classes' centroids against "
        "layer, as trained and with half of the layers swapped, for {names}.",
    ),
    "swapped_halves": Kind(
        "figures.centroids", "explanation",
        "Line plots: where noisy examples lie between two classes' centroids against layer, as "
        "trained and with half of the layers swapped, a panel per task, for {names}.",
    ),
    "events": Kind(
        "figures.centroids", "explanation",
        "Dot plots: the layer at which noisy examples turn and the layer from which classes are "
        "told apart, by task and model, from centroids and from probes.",
    ),
    "control_accuracy": Kind(
        "figures.control", "control",
        "Dot plots: accuracy@1 and accuracy@2 of each technique, and by pair of layers.",
    ),
    "control_weights": Kind(
        "figures.control", "control",
        "Line plots: layer weights of each technique by pair of layers, for {names}.",
    ),
    "gradient_variants": Kind(
        "figures.control", "control",
        "Line plots: gradient norms by layer after each step of post-processing, for {names}.",
    ),
    "label_probes": Kind(
        "figures.probes", "techniques",
        "Line plots: F1 of probes for perturbed and original labels against layer, for {names}.",
    ),
    "binarised": Kind(
        "figures.binarised", "correlations",
        "Dot plots: depth of memorisation of tasks with all their classes and with two.",
    ),
    "depth_correlations": Kind(
        "figures.depth", "correlations",
        "Dot plots: Spearman's rho of each measure of depth with each measure of generalisation, "
        "pooled and by model, beside the paper's.",
    ),
    "correlations": Kind(
        "figures.correlations", "correlations",
        "Heat maps: Spearman's rho between techniques and between models ({names}).",
    ),
    "progression": Kind(
        "figures.progression", "progression",
        "Line plots: accuracies, M-CoG and centroid events against epoch, for {names}.",
    ),
    "memorisation_map": Kind(
        "figures.generalisation", "generalisation",
        "Scatter plot: probability of each training example's label where it was trained on and "
        "where it was held out, for {names}.",
    ),
    "generalisation": Kind(
        "figures.generalisation", "generalisation",
        "Dot plots: generalisation score and scaled validation accuracy of each task, by model.",
    ),
}  # fmt: skip
