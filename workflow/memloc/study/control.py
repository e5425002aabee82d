"""Which models the control setup consists of (section 3.2), and what its configuration may say.

Snakemake imports this module while it plans: no torch, no pandas.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memloc.errors import MemlocError
from memloc.study.tasks import BINARY

Pair = tuple[int, int]
TEST, VALIDATION = "test", "validation"
PAIR = r"layers[1-9]\d*-[1-9]\d*"  # names of pairs, as a regular expression
VALIDATING = ("mrpc", "trec")  # the paper's validation tasks


def pair_name(pair: Sequence[int]) -> str:
    """How a pair is called in paths and tables: "layers6-7"."""
    return f"layers{pair[0]}-{pair[1]}"


def pair_of(name: str) -> Pair:
    """The layers of a pair by its name."""
    first, _, second = name.removeprefix("layers").partition("-")
    return int(first), int(second)


def automatic_pairs(n_layers: int) -> list[Pair]:
    """The first two, the middle two and the last two layers, each pair once."""
    if n_layers < 2:
        raise MemlocError(f"control: a model of {n_layers} layer(s) has no pair of layers")
    starts = (1, n_layers // 2, n_layers - 1)
    return list(dict.fromkeys((start, start + 1) for start in starts))


def check_pair(pair: Sequence[int], n_layers: int) -> Pair:
    """The pair, if it is two neighbours among the model's layers; else MemlocError."""
    first, second = pair
    if not (first >= 1 and second == first + 1 and second <= n_layers):
        raise MemlocError(
            f"control.pairs: [{first}, {second}]: a pair is two neighbouring layers of a model of "
            f"{n_layers}, such as [1, 2]; set control.pairs to auto or to pairs within 1 to "
            f"{n_layers}"
        )
    return first, second


def model_pairs(control: Mapping[str, Any], n_layers: int) -> list[Pair]:
    """The pairs of a model, as config's `control` says."""
    if control["pairs"] == "auto":
        return automatic_pairs(n_layers)
    return [check_pair(pair, n_layers) for pair in control["pairs"]]


def tasks_under_test(control: Mapping[str, Any], studied: Collection[str]) -> dict[str, str]:
    """Role ("validation" or "test") of each task under test, in order.

    Raises MemlocError where the auxiliary task is under test, where nothing is, and for validation
    tasks that aren't.
    """
    auxiliary, chosen = control["auxiliary"], chosen_tasks(control, studied)
    check_auxiliary(control, chosen)
    if not chosen:
        raise MemlocError(
            f"control.tasks: auto leaves no task under test beside the auxiliary {auxiliary!r}; "
            "name further tasks, or another control.auxiliary"
        )
    validating = validation_tasks(control, studied)
    for task in validating:
        if task not in chosen:
            raise MemlocError(
                f"control.validation_tasks: {task!r} is not under test ({', '.join(chosen)}); name "
                "it in tasks or control.tasks, change control.validation_tasks ([] for none), or "
                "leave control out of stages"
            )
    return {task: VALIDATION if task in validating else TEST for task in chosen}


def chosen_tasks(control: Mapping[str, Any], studied: Collection[str]) -> list[str]:
    """The tasks under test; auto: those of the study, but for the auxiliary one."""
    named = control["tasks"]
    if named != "auto":
        return list(named)
    return [task for task in studied if task != control["auxiliary"]]


def validation_tasks(control: Mapping[str, Any], studied: Collection[str]) -> list[str]:
    """The tasks that choose the gradients' post-processing.

    auto: the paper's two, as far as they are under test and leave others to score techniques with.
    """
    named = control["validation_tasks"]
    if named != "auto":
        return list(named)
    chosen = chosen_tasks(control, studied)
    found = [task for task in VALIDATING if task in chosen]
    return found if len(found) < len(chosen) else []


def possible(control: Mapping[str, Any], studied: Collection[str]) -> bool:
    """Whether a study has a task under test; one of the auxiliary task alone hasn't."""
    return bool(chosen_tasks(control, studied))


def check_auxiliary(control: Mapping[str, Any], tasks: Collection[str]) -> None:
    """Raise MemlocError when the auxiliary task, or one with its texts, is under test."""
    auxiliary = control["auxiliary"]
    for task in tasks:
        if task.removesuffix(BINARY) == auxiliary.removesuffix(BINARY):
            same = "can't be under test too" if task == auxiliary else f"has the texts of {task!r}"
            raise MemlocError(
                f"control.auxiliary: {auxiliary!r} {same}: its original labels train all layers; "
                "name another control.auxiliary or other control.tasks"
            )


def higher_rates(control: Mapping[str, Any], first: float) -> list[float]:
    """Learning rates to try after the first one, rising."""
    return sorted(rate for rate in control["learning_rates"] if rate > first)
