"""Numbers that Dankers & Titov (2024) report, shown beside ours and never tuned to."""

MODELS = ("all", "bert", "opt", "gpt-neo", "pythia")  # columns of Table 2, by config's names
RETRAINING_MODELS = 0.85  # section 4.1: mean over pairs of models, M-CoG of layer retraining
EVENTS = {  # section 5: (centroid event, probing event)
    ("crossing", "probing-memorisation"): 0.84,
    ("initiation", "probing-initiation"): 0.73,
}
TABLE_2 = {  # (depth, generalisation): by MODELS
    ("crossing", "score"): (0.75, 0.88, 0.94, 0.94, 0.72),
    ("probing-memorisation", "score"): (0.63, 0.86, 0.88, 0.94, 0.69),
    ("mcog", "score"): (0.56, 0.78, 0.69, 0.92, 0.69),
    ("crossing", "validation_scaled"): (0.70, 0.90, 0.84, 0.83, 0.70),
    ("probing-memorisation", "validation_scaled"): (0.61, 0.90, 0.77, 0.76, 0.77),
    ("mcog", "validation_scaled"): (0.54, 0.80, 0.52, 0.72, 0.69),
}
LARGER = {  # Appendix B, OPT-1.3B: (quantity, other model)
    ("mcog:swapping", "pythia"): 0.73,
    ("mcog:swapping", "gpt-neo"): 0.84,
    ("mcog:swapping", "bert"): 0.75,
    ("mcog:swapping", "opt"): 0.87,
    ("crossing", "mean of others"): 0.94,
    ("initiation", "mean of others"): 0.15,
}
ONE_LAYER_ERROR = 0.15  # Figure 4: most errors from modifying one layer alone lie below it
# Table 4: accuracy@2 by the weights' name on the hub, a pair (L1-norm, L2-norm) for each of
# TABLE_4_STEPS, the suffixes of the variants of gradients that post-processing makes.
TABLE_4 = {
    "pythia-160m-deduped": [(0.08, 0.08), (0.08, 0.08), (0.08, 0.08), (0.08, 0.00)],
    "gpt-neo-125m": [(0.58, 0.25), (0.67, 0.42), (0.58, 0.25), (0.75, 0.25)],
    "bert-base-cased": [(0.58, 0.50), (0.50, 0.50), (0.58, 0.50), (0.75, 0.58)],
    "opt-125m": [(0.58, 0.17), (0.50, 0.42), (0.67, 0.33), (0.58, 0.50)],
}
TABLE_4_STEPS = ("", "-frozen", "-clean", "-clean-frozen")
TABLE_4_TASKS = {"mrpc", "trec"}
# Section 3 and Appendix D, on GTX 1080/2080 Ti: what, runs per model, least and most hours of one.
COSTS = {
    "main": ("fine-tuning, main", 84, 1.0, 6.0),
    "control": ("fine-tuning, control setup", 77, 1.0, 6.0),
    "retraining": ("layer retraining, windows", 2808, 3 / 60, 45 / 60),
}
BINARISED = {  # Appendix C: rho, mean of binarised - multi-class, mean of its absolute value
    "mcog:swapping": (0.84, -0.05, 0.16),
    "crossing": (0.90, -0.85, None),
    "initiation": (0.67, 0.45, None),
}


def table_2(depth: str, generalisation: str, level: str) -> float:
    """The paper's rho of Table 2; nan where it has none."""
    values = dict(zip(MODELS, TABLE_2.get((depth, generalisation), ()), strict=False))
    return values.get(level, float("nan"))
