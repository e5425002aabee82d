"""Say in a terminal what a finished study found: training outcome and M-CoG per task."""

import math
import sys
from pathlib import Path

from memloc.store.tables import read_tsv


def main(results: Path) -> None:
    training = read_tsv(results / "summary" / "training.tsv")
    perturbed = training[training["labels"] == "perturbed"]
    print("\nMemorised? Accuracy on noisy training examples at the end of training (theta_M2):")
    for row in perturbed.itertuples():
        print(
            f"  {row.task:<12} {row.model:<10} seed {row.seed}: noisy {row.noisy_accuracy:.3f}, "
            f"clean {row.clean_accuracy:.3f}, validation {row.validation_accuracy:.3f}"
        )
    print("\nWhere? Memorisation centre of gravity (M-CoG), in layers:")
    for row in read_tsv(results / "summary" / "mcog.tsv").itertuples():
        said = f"{row.mcog:.2f}"
        if not math.isnan(row.ci_low):
            said += f", 95 % interval {row.ci_low:.2f} to {row.ci_high:.2f} ({row.resampled})"
        if row.found == "no":
            said = f"nothing found: {row.reason}"
        print(f"  {row.task:<12} {row.model:<10} {row.technique:<22} {said}")
    print(f"\nOpen {results / 'report.html'} in a browser.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
