"""Section Training: whether each run memorised its noisy examples, and when."""

from memloc.report_parts import Part, Section, pictures, table

NOISY_AT_END = 0.95  # below this share of noisy examples learnt, a run's localisation says little


def build(content):
    """Outcome of each training run."""
    notices, low = [], None
    if content.has("training"):
        frame = content.read("training")

        def low(row):
            return row["labels"] == "perturbed" and not row["noisy_accuracy"] >= NOISY_AT_END

        weak = sum(low(row) for row in frame.to_dict("records"))
        runs = int((frame["labels"] == "perturbed").sum())
        if weak:
            notice = (
                f"{weak} of {runs} runs on perturbed labels ended with a noisy accuracy below "
                f"{NOISY_AT_END:.0%} (marked): they memorised only in part, so where they memorise "
                "is less certain."
            )
            notices = [notice]
    title = "After each run's last epoch (θ_O or θ_M2); training accuracies against its own labels"
    parts = [
        Part("Accuracy per epoch", figures=pictures(content, "training")),
        Part("Outcome per run", tables=[table(content, "training", title, low=low)]),
    ]
    return Section(parts, notices=notices)
