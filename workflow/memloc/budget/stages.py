"""The cost model: one entry per stage of the workflow, in work rather than in seconds.

Rules bring their entry in STAGES under their own name. Planning imports this: no torch, no pandas.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memloc.budget.space import (
    data_bytes,
    example_bytes,
    half_bytes,
    half_state,
    head_state,
    mixture_bytes,
    model_bytes,
    models_memory,
    state_bytes,
    sweep_device,
    taken_bytes,
    training_device,
    training_memory,
    training_state,
    whole_models,
    window_device,
    window_memory,
    window_state,
)
from memloc.budget.work import (
    SCRIPT,
    SMALL,
    Facts,
    Work,
    all_examples,
    centroids,
    constant,
    control_training,
    gradients,
    half_training,
    head_swapping,
    head_training,
    losses,
    model_retrieval,
    patching,
    probing,
    retraining,
    summarised_examples,
    swapping,
    taking_in,
    task_table,
    training,
    weight_change,
)
from memloc.errors import MemlocError
from memloc.study.techniques import subject_rules

MAIN, RETRAINING, CONTROL = "main", "retraining", "control"  # entries of the paper's account


@dataclass(frozen=True)
class Stage:
    """What a rule's jobs cost.

    work: of one job; bytes_of: bytes of an output by its file name; scratch: bytes held while
    it runs; megabytes: of host memory; device_bytes: of the device's memory, 0 where it makes do
    with what there is; fills: it takes at least these, and whatever else it finds; account: its
    entry in the paper's own account.
    """

    work: Callable[[Facts], Work]
    bytes_of: Callable[[Facts, str], float] = lambda facts, name: SMALL
    scratch: Callable[[Facts], float] = lambda facts: 0.0
    megabytes: Callable[[Facts], float] = lambda facts: 1000.0
    device_bytes: Callable[[Facts], float] = lambda facts: 0.0
    fills: bool = False
    on_device: bool = False
    account: str | None = None


TRAINED: dict[str, Any] = dict(
    bytes_of=model_bytes,
    megabytes=training_memory,
    device_bytes=training_device,
    on_device=True,
)
SWEPT: dict[str, Any] = dict(megabytes=models_memory(3), device_bytes=sweep_device, on_device=True)
RUN: dict[str, Any] = {**TRAINED, "account": MAIN}
CONTROL_RUN: dict[str, Any] = {**TRAINED, "account": CONTROL}
SWEEP = Stage(swapping, example_bytes, **SWEPT)
STAGES: dict[str, Stage] = {
    "retrieve_task": Stage(constant(20), bytes_of=data_bytes, megabytes=lambda facts: 2000),
    "perturb_task": Stage(constant(SCRIPT + 1), bytes_of=data_bytes),
    "split_unmarked": Stage(constant(SCRIPT + 1), bytes_of=data_bytes),
    "task_table": Stage(task_table, megabytes=lambda facts: 3000),
    "retrieve_model": Stage(model_retrieval, bytes_of=model_bytes, megabytes=whole_models(2)),
    "take_in": Stage(taking_in, bytes_of=taken_bytes, megabytes=whole_models(3)),
    "summarise_given": Stage(constant(SCRIPT + 1)),
    "fetch": Stage(constant(SCRIPT)),
    "train_original": Stage(training, scratch=training_state, **RUN),
    "train_perturbed": Stage(training, scratch=training_state, **RUN),
    "train_frozen": Stage(head_training, scratch=head_state, **RUN),
    "control_original": Stage(control_training, scratch=training_state, **CONTROL_RUN),
    "control_perturbed": Stage(control_training, scratch=training_state, **CONTROL_RUN),
    "control_frozen": Stage(control_training, scratch=training_state, **CONTROL_RUN),
    "summarise_control": Stage(constant(SCRIPT + 1)),
    "summarise_control_training": Stage(constant(SCRIPT + 1)),
    "summarise_variants": Stage(constant(SCRIPT + 1)),
    "split_half": Stage(constant(SCRIPT), bytes_of=half_bytes),
    "train_half": Stage(
        half_training,
        bytes_of=half_bytes,
        scratch=half_state,
        megabytes=training_memory,
        device_bytes=training_device,
        on_device=True,
    ),
    "find_noise": Stage(constant(SCRIPT + 1), bytes_of=half_bytes),
    "gather_halves": Stage(constant(SCRIPT + 1), bytes_of=half_bytes),
    "label_losses": Stage(losses, half_bytes, **{**SWEPT, "megabytes": models_memory(1)}),
    "detect_noise": Stage(constant(SCRIPT + 5)),
    "summarise_detection": Stage(constant(SCRIPT + 5)),
    "summarise_generalisation": Stage(constant(SCRIPT + 1)),
    "swap": SWEEP,
    "swap_component": SWEEP,
    "swap_heads": Stage(head_swapping, **SWEPT),
    "swap_no_noise": Stage(swapping, **SWEPT),
    "rewind_pretrained": SWEEP,
    "rewind_memorised": SWEEP,
    "patch": Stage(patching, example_bytes, **SWEPT),
    "weight_change": Stage(weight_change, megabytes=models_memory(3)),
    "retrain": Stage(
        retraining,
        example_bytes,
        scratch=window_state,
        megabytes=window_memory,
        device_bytes=window_device,
        fills=True,
        on_device=True,
        account=RETRAINING,
    ),
    "gather_retrained": Stage(constant(SCRIPT), example_bytes),
    "gradients": Stage(gradients, **{**SWEPT, "megabytes": models_memory(5)}),
    "probe": Stage(probing, scratch=state_bytes, megabytes=models_memory(3), on_device=True),
    "centroids": Stage(centroids, scratch=mixture_bytes, **SWEPT),
    "summarise": Stage(constant(SCRIPT + 1)),
    "locate_examples": Stage(constant(SCRIPT)),
    "summarise_examples": Stage(summarised_examples, bytes_of=all_examples),
    "summarise_components": Stage(constant(SCRIPT + 1)),
    "summarise_edits": Stage(constant(SCRIPT + 1)),
    "summarise_heads": Stage(constant(SCRIPT + 1)),
    "summarise_no_noise": Stage(constant(SCRIPT + 1)),
    "summarise_variance": Stage(constant(SCRIPT + 60)),
    "summarise_training": Stage(constant(SCRIPT + 1)),
    "summarise_events": Stage(constant(SCRIPT + 1)),
    "summarise_centroids": Stage(constant(SCRIPT + 1)),
    "summarise_sensitivity": Stage(constant(SCRIPT + 1)),
    "correlate": Stage(constant(SCRIPT + 5)),
    "summarise_progression": Stage(constant(SCRIPT + 3)),
    "figures": Stage(constant(SCRIPT + 1)),
    "report": Stage(constant(SCRIPT + 5), bytes_of=lambda facts, name: 20e6),
    "budget": Stage(constant(SCRIPT)),
}
for _rule in subject_rules():
    if _rule.name not in STAGES and _rule.costs not in STAGES:
        raise MemlocError(
            f"rule {_rule.name}: the cost model has no entry for it. Name a rule that costs as "
            "much, as `costs` of its entry in workflow/memloc/study/techniques.py, or add an entry "
            "to STAGES in workflow/memloc/budget/stages.py."
        )
    STAGES.setdefault(_rule.name, STAGES.get(_rule.costs, SWEEP))


def stage_of(rule: str) -> str | None:
    """The stage a rule belongs to: its own name, or "figures"; None without an entry."""
    name = "figures" if rule.startswith("figure_") else rule
    return name if name in STAGES else None


def on_device(stage: str) -> bool:
    """Whether a stage's time hangs on the device."""
    return stage in STAGES and STAGES[stage].on_device
