"""Say in a terminal what a finished study found: training outcome and M-CoG per task."""

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
        said = f"{row.mcog:.2f}" if row.n_seeds else "undefined: no seed has a weight"
        if row.technique == "probing":
            said += "  (only where probes found noise: see the page)"
        print(f"  {row.task:<12} {row.model:<10} {row.technique:<22} {said}")
    print(f"\nOpen {results / 'report.html'} in a browser.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
