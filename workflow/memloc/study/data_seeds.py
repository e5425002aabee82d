"""Data seeds: the first, on which all answers rest, and further ones that perturb tasks anew.

A task that a further seed perturbs has a name of its own, as rte@2, and so folders of its own. Its
rows, split and subsets are the first seed's: only the noise is drawn anew. So theta_O, which never
sees a perturbed label, is the task's own. Planning imports this module: no torch, no pandas.
"""

from collections.abc import Mapping
from typing import Any

from memloc.errors import MemlocError

# The wildcard `task`: a task's name, or one that is perturbed anew. No task's name can hold an @.
TASK = r"[^/@]+(?:@(?:0|[1-9]\d*))?"


def anew(task: str, seed: int) -> str:
    """The name of a task that a further data seed perturbs."""
    return f"{task}@{seed}"


def task_of(name: str) -> str:
    """The task itself, whichever seed perturbs it."""
    return name.partition("@")[0]


def further_seed(name: str) -> int | None:
    """The further data seed that a name holds; None: the task has the study's first one."""
    seed = name.partition("@")[2]
    return int(seed) if seed else None


def data_seeds(config: Mapping[str, Any]) -> list[int]:
    """The data seeds of a configuration that has been checked, the first one first."""
    return config.get("data_seeds") or [config["data_seed"]]


def check_data_seeds(config: Mapping[str, Any]) -> None:
    """Raise MemlocError unless exactly one of data_seed and data_seeds is given."""
    one, several = config["data_seed"], config.get("data_seeds")
    if one is not None and several is not None:
        raise MemlocError(
            f"configuration: data_seed = {one} and data_seeds = {several} are both given. Leave "
            "one out: the first of data_seeds is what data_seed would be"
        )
    if one is None and several is None:
        raise MemlocError(
            "configuration: data_seed and data_seeds are both null. Give data_seed a whole number, "
            "or data_seeds a list of them"
        )


def refuse_own_noise(task: str, description: Mapping[str, Any]) -> None:
    """Raise MemlocError where a task to be perturbed anew brings its own noise."""
    if "noisy" in description["columns"]:
        raise MemlocError(
            f"configuration: data_seeds: task {task!r} brings its own noise (columns.noisy of its "
            "task file), and nothing of it can be perturbed anew. Leave it out of tasks, or give "
            "one data_seed"
        )
