"""Correlations that Dankers & Titov (2024) report, to stand beside ours, never to be tuned to."""

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
BINARISED = {  # Appendix C: rho, mean of binarised - multi-class, mean of its absolute value
    "mcog:swapping": (0.84, -0.05, 0.16),
    "crossing": (0.90, -0.85, None),
    "initiation": (0.67, 0.45, None),
}


def table_2(depth: str, generalisation: str, level: str) -> float:
    """The paper's rho of Table 2; nan where it has none."""
    values = dict(zip(MODELS, TABLE_2.get((depth, generalisation), ()), strict=False))
    return values.get(level, float("nan"))
