"""The localisation techniques: one list, from which rules, summaries, figures and checks are made.

Another technique is a module of its own, whose COLUMNS are those of its table of one run and which
has a function from that table to layer weights, and one line here (beside the rule that makes the
table, which bears a name of the technique's own). Planning imports this: no torch, no pandas; a
technique's module is imported when its weights are asked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from memloc.errors import MemlocError

ERROR = "mean memorisation error"


@dataclass(frozen=True)
class Technique:
    """A technique: its names, its table in a setup's folder, and where its weights come from.

    source: "module:function" of memloc, a function from one run's table to a frame with columns
    layer (1..L), weight (>= 0) and, if it differs, weight_raw; mark: colour, marker and line where
    techniques are compared within a task; windows: its table has a row per window, hence a matrix;
    frozen: its rule reads theta_F; options: keywords of the function; paper: it is one of Dankers &
    Titov (2024).
    """

    name: str
    label: str
    short: str
    table: str
    source: str
    mark: tuple[str, str, Any]
    quantity: str = ERROR
    windows: bool = False
    frozen: bool = False
    paper: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def module(self) -> str:
        """The memloc module of its weights."""
        return self.source.partition(":")[0]

    @property
    def columns(self) -> list[str]:
        """Columns of its table of one run."""
        return list(import_module(f"memloc.{self.module}").COLUMNS)

    def weights(self, table: Any) -> Any:
        """Layer weights of one run's table."""
        function = getattr(import_module(f"memloc.{self.module}"), self.source.partition(":")[2])
        return function(table, **self.options)


WINDOWS = dict(source="localise.weights:window_weights", windows=True)
PAPER = dict(paper=True)
TECHNIQUES = {
    technique.name: technique
    for technique in (
        Technique(
            "swapping", "Layer swapping", "Swapping", "swap.tsv",
            mark=("#111111", "o", "-"), **WINDOWS, **PAPER,
        ),
        Technique(
            "retraining", "Layer retraining", "Retraining", "retrain.tsv",
            mark=("#d17a00", "s", "--"), **WINDOWS, **PAPER,
        ),
        Technique(
            "gradients", "Forgetting gradients", "Gradients", "gradients.tsv",
            "localise.gradients.variants:gradient_weights", ("#0072b2", "^", "-."),
            "share of the gradient norm", frozen=True, **PAPER,
        ),
        Technique(
            "probing", "Probing", "Probing", "probes.tsv",
            "localise.probes.weights:probe_weights", ("#b3407a", "D", ":"),
            r"$F_1$ of noise probes", frozen=True, **PAPER,
        ),
        Technique(
            "rewinding-pretrained", "Rewinding to pre-trained", "Rewinding θP",
            "rewind-pretrained.tsv", mark=("#00795a", "P", (0, (5, 1))), **WINDOWS,
        ),
        Technique(
            "rewinding-memorised", "Rewinding to memorised", "Rewinding θM1",
            "rewind-memorised.tsv", mark=("#7a9a01", "X", (0, (1, 1))), **WINDOWS,
        ),
        Technique(
            "patching", "Activation patching", "Patching", "patch.tsv",
            mark=("#6a4fc0", "v", (0, (3, 1, 1, 1))), **WINDOWS,
        ),
        Technique(
            "weight-change", "Weight change", "Weight change", "weight_change.tsv",
            "localise.weight_change.weights:change_weights", ("#8a8a8a", "*", (0, (1, 3))),
            "relative change of weights",
        ),
    )
}  # fmt: skip
FALLBACK_MARK = ("#6b4a2b", "h", (0, (1, 3)))


def known(name: str, techniques: Mapping[str, Technique] = TECHNIQUES) -> Technique:
    """The technique of a name; MemlocError names those there are."""
    if name not in techniques:
        raise MemlocError(
            f"Technique {name!r} is unknown; there are {', '.join(techniques)}. "
            "Choose from these in config's techniques."
        )
    return techniques[name]


def chosen(names: Iterable[str]) -> dict[str, Technique]:
    """Those of `names`, in the registry's order."""
    wanted = {known(name).name for name in names}
    return {name: technique for name, technique in TECHNIQUES.items() if name in wanted}


def modules() -> list[str]:
    """The modules that weights come from, for a rule's fingerprint."""
    return sorted({technique.module for technique in TECHNIQUES.values()})


def with_options(
    techniques: Mapping[str, Technique], options: Mapping[str, Mapping[str, Any]]
) -> dict[str, Technique]:
    """The techniques with keywords of their weights, as {"gradients": {"variant": "L1"}}."""
    bound = {name: replace(techniques[name], options=found) for name, found in options.items()}
    return dict(techniques) | bound
