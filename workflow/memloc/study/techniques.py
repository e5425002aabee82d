"""The localisation techniques: one list, from which rules, summaries, figures and checks are made.

Another technique is a module of memloc.localise and an entry here. The module has the COLUMNS of
its table of one run, `run`, which makes the table, and a function from the table to layer weights.
Planning imports this: no torch, no pandas; a technique's module is imported when it is used.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from memloc.errors import MemlocError

ERROR = "mean memorisation error"
Wildcards = Mapping[str, str]


@dataclass(frozen=True)
class SubjectRule:
    """A rule that localises in a subject: a run, a run at a kept epoch, a control model.

    name: as Snakemake knows it; does: what it does, in a sentence; run: "module:function" of
    memloc that is called with inputs, outputs, settings and batch_tokens; reads: the checkpoints,
    by the paper's names; outputs: its files in the subject's folder by what they hold, the table
    first; settings: from a study and the wildcards to what its results depend on; batch: the
    setting that says how many tokens are computed at once, on which results don't depend; data:
    whether it reads the task's examples; gpu: whether it wants a GPU; costs: the rule that it
    costs as much as, where it has no cost model of its own.
    """

    name: str
    does: str
    run: str
    reads: tuple[str, ...]
    outputs: Mapping[str, str]
    settings: Callable[[Any, Wildcards], dict[str, Any]]
    batch: tuple[str, ...] = ()
    data: bool = True
    gpu: bool = True
    costs: str = ""

    @property
    def module(self) -> str:
        """The memloc module of its function."""
        return self.run.partition(":")[0]

    @property
    def stem(self) -> str:
        """Its table's name without the ending."""
        return next(iter(self.outputs.values())).removesuffix(".tsv")


@dataclass(frozen=True)
class Technique:
    """A technique: its names, its table in a subject's folder, and where its weights come from.

    rule: what makes its table; None where it has rules of its own (layer retraining).
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
    paper: bool = False
    rule: SubjectRule | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def frozen(self) -> bool:
        """Whether it compares with theta_F."""
        return self.rule is not None and "theta_F" in self.rule.reads

    @property
    def examples(self) -> str:
        """Of windows, the table beside it that says which noisy examples kept their label."""
        return f"{self.table.removesuffix('.tsv')}_examples.parquet"

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


def window_rule(
    name: str, does: str, module: str, stem: str, reads: str, **settings: str
) -> SubjectRule:
    """A rule that modifies every window of theta_M2 by another checkpoint, `reads`.

    module: its own in localise; stem: of its files; settings: what is constant for it.
    """
    files = {"table": f"{stem}.tsv", "examples": f"{stem}_examples.parquet"}
    return SubjectRule(
        name,
        does,
        f"localise.{module}:run",
        ("theta_M2", reads),
        files,
        lambda study, w: study.params.measuring(w) | settings,
        ("swapping", "batch_tokens"),
        costs="swap",
    )


SWAP = window_rule(
    "swap",
    "Swap every window of theta_M2 for theta_O's layers, in one sweep.",
    "swap",
    "swap",
    "theta_O",
    component="layer",
)
SWAP = replace(SWAP, outputs={**SWAP.outputs, "memorised": "swap_memorised.parquet"})
SWAP_COMPONENT = replace(
    SWAP,
    name="swap_component",
    does="Swap the attention or the feed-forward blocks of every window, and leave the rest.",
    outputs={
        "table": "swap-{component}.tsv",
        "examples": "swap-{component}_examples.parquet",
    },
    settings=lambda study, w: study.params.measuring(w) | {"component": w["component"]},
)
SWAP_HEADS = replace(
    SWAP,
    name="swap_heads",
    does="Swap every attention head of theta_M2 for theta_O's, one head at a time.",
    run="localise.heads:run",
    outputs={"table": "swap-heads.tsv"},
    settings=lambda study, w: study.params.measuring(w),
)
CENTROIDS = SubjectRule(
    "centroids",
    "Project all training examples between all pairs of classes, layer by layer.",
    "explain.run:run",
    ("theta_M2", "theta_O"),
    {"table": "centroids.tsv", "events": "centroid_events.tsv"},
    lambda study, w: study.params.states(w),
    ("centroids", "batch_tokens"),
)
WINDOWS: dict[str, Any] = dict(source="localise.weights:window_weights", windows=True)
PAPER: dict[str, Any] = dict(paper=True)
TECHNIQUES = {
    technique.name: technique
    for technique in (
        Technique(
            "swapping", "Layer swapping", "Swapping", "swap.tsv",
            mark=("#111111", "o", "-"), rule=SWAP, **WINDOWS, **PAPER,
        ),
        Technique(
            "retraining", "Layer retraining", "Retraining", "retrain.tsv",
            mark=("#d17a00", "s", "--"), **WINDOWS, **PAPER,
        ),
        Technique(
            "gradients", "Forgetting gradients", "Gradients", "gradients.tsv",
            "localise.gradients.variants:gradient_weights", ("#0072b2", "^", "-."),
            "share of the gradient norm", **PAPER,
            rule=SubjectRule(
                "gradients", "Norms per layer of the gradient that would forget the noisy labels.",
                "localise.gradients.run:run", ("theta_M1", "theta_F"),
                {"table": "gradients.tsv", "norms": "gradient_norms.tsv"},
                lambda study, w: study.params.gradients(w), ("gradients", "batch_tokens"),
            ),
        ),
        Technique(
            "probing", "Probing", "Probing", "probes.tsv",
            "localise.probes.weights:probe_weights", ("#b3407a", "D", ":"),
            "F₁ of noise probes", **PAPER,
            rule=SubjectRule(
                "probe", "Train all probes of one fine-tuned model together.",
                "localise.probes.run:run", ("theta_M2", "theta_F"), {"table": "probes.tsv"},
                lambda study, w: study.params.probes(w), ("probing", "batch_tokens"),
            ),
        ),
        Technique(
            "rewinding-pretrained", "Rewinding to pre-trained", "Rewinding θP",
            "rewind-pretrained.tsv", mark=("#00795a", "P", (0, (5, 1))), **WINDOWS,
            rule=window_rule(
                "rewind_pretrained", "Set every window of theta_M2 back to theta_P.",
                "rewind", "rewind-pretrained", "theta_P", point="pretrained",
            ),
        ),
        Technique(
            "rewinding-memorised", "Rewinding to memorised", "Rewinding θM1",
            "rewind-memorised.tsv", mark=("#7a9a01", "X", (0, (1, 1))), **WINDOWS,
            rule=window_rule(
                "rewind_memorised", "Set every window of theta_M2 back to theta_M1.",
                "rewind", "rewind-memorised", "theta_M1", point="memorised",
            ),
        ),
        Technique(
            "patching", "Activation patching", "Patching", "patch.tsv",
            mark=("#6a4fc0", "v", (0, (3, 1, 1, 1))), **WINDOWS,
            rule=window_rule(
                "patch", "Replace what windows of theta_M2 add to the state by what theta_O's add.",
                "patch", "patch", "theta_O",
            ),
        ),
        Technique(
            "weight-change", "Weight change", "Weight change", "weight_change.tsv",
            "localise.weight_change.weights:change_weights", ("#8a8a8a", "*", (0, (1, 3))),
            "relative change of weights",
            rule=SubjectRule(
                "weight_change",
                "Relative L2 distance of every layer of theta_M2 from theta_O and from theta_P.",
                "localise.weight_change.run:run", ("theta_M2", "theta_O", "theta_P"),
                {"table": "weight_change.tsv"},
                lambda study, w: {"reading": study.params.reading(w)}, data=False, gpu=False,
            ),
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


def papers(names: Iterable[str]) -> list[str]:
    """Those of `names` that the paper has; all of them, where it has none."""
    given = list(dict.fromkeys(names))
    paper = [name for name in given if name in TECHNIQUES and TECHNIQUES[name].paper]
    return paper or given


def modules() -> list[str]:
    """The modules that weights come from, for a rule's fingerprint."""
    return sorted({technique.module for technique in TECHNIQUES.values()})


def with_options(
    techniques: Mapping[str, Technique], options: Mapping[str, Mapping[str, Any]]
) -> dict[str, Technique]:
    """The techniques with keywords of their weights, as {"gradients": {"variant": "L1"}}."""
    bound = {name: replace(techniques[name], options=found) for name, found in options.items()}
    return dict(techniques) | bound


def subject_rules() -> list[SubjectRule]:
    """The rules that localise in a subject, those of the centroid analysis and of blocks too."""
    own = [technique.rule for technique in TECHNIQUES.values() if technique.rule]
    return [*own, SWAP_COMPONENT, SWAP_HEADS, CENTROIDS]
