"""Where noisy rows come from: labels that are perturbed, or rows that models memorise.

With `perturbation.noise: found` no label is perturbed. Models trained on halves of a task's rows
(section 5) say how much each row is memorised, and the most memorised ones count as noisy. Planning
imports this module: no torch, no pandas.
"""

from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from memloc.errors import MemlocError

INJECTED, FOUND = "injected", "found"
THRESHOLD = 0.5  # counterfactual memorisation from which a row counts as noisy, if nothing is said
# Fewest halves: each row is held out four times in pairs; drawn at random, 99.7 % of rows are.
LEAST = {"pairs": 8, "random": 20}


def finds_noise(config: Mapping[str, Any]) -> bool:
    """Whether a study looks for its noisy rows itself."""
    return config["perturbation"]["noise"] == FOUND


def criterion(config: Mapping[str, Any]) -> dict[str, float]:
    """{"threshold": ...} or {"share": ...}: which rows count as noisy."""
    found = config["perturbation"]["found"]
    given = {key: found[key] for key in ("threshold", "share") if key in found}
    return given or {"threshold": THRESHOLD}


def finders(config: Mapping[str, Any]) -> list[str]:
    """The models whose mean memorisation counts, sorted: the one of found.by, or the study's."""
    by = config["perturbation"]["found"].get("by")
    return [by] if by else sorted(config["models"])


def check_noise(config: Mapping[str, Any]) -> None:
    """Raise MemlocError where settings of noise that is found contradict others."""
    found, halves = config["perturbation"]["found"], config["generalisation"]
    if not finds_noise(config):
        if found:
            raise _refused(
                f"perturbation.found = {found} says which rows count as noisy, but labels are "
                "perturbed: set perturbation.noise: found, or leave it out"
            )
        return
    if {"threshold", "share"} <= found.keys():
        raise _refused(
            "perturbation.found names both a threshold and a share: leave one of them out"
        )
    if found.get("by", config["models"][0]) not in config["models"]:
        raise _refused(
            f"perturbation.found.by = {found['by']} is none of the study's models "
            f"({', '.join(config['models'])}): name one of them, or leave it out"
        )
    if halves["labels"] != "perturbed":
        raise _refused(
            f"generalisation.labels = {halves['labels']}: with perturbation.noise: found no other "
            "labels are known than those given: set generalisation.labels: perturbed"
        )
    least = LEAST[halves["splits"]]
    if halves["halves"] < least:
        raise _refused(
            f"generalisation.halves = {halves['halves']} with splits: {halves['splits']} is too "
            "few to find noisy rows by, since each must be held out and trained on several times: "
            f"set generalisation.halves to {least} or more"
            + (f", or splits: pairs and {LEAST['pairs']}" if halves["splits"] != "pairs" else "")
        )
    if config.get("data_seeds") and len(config["data_seeds"]) > 1:
        raise _refused(
            "data_seeds perturb labels anew, and with perturbation.noise: found none is perturbed: "
            "give one data_seed"
        )


def refuse_control() -> NoReturn:
    """Raise MemlocError where a study that finds its noise asks for the control setup."""
    raise _refused(
        "stages: control scores techniques on noise that was injected, also in control.auxiliary; "
        "with perturbation.noise: found leave control out of stages"
    )


def refuse_marked(tasks: Mapping[str, Mapping[str, Any]], names: Collection[str]) -> None:
    """Raise MemlocError where a task file of these marks its noisy rows itself."""
    for name in names:
        if "noisy" in tasks[name]["columns"]:
            raise _refused(
                f"perturbation.noise: found looks for noisy rows, but task {name!r} marks its own "
                "(columns.noisy of its task file): remove columns.noisy, or set "
                "perturbation.noise: injected, which leaves marked tasks as they are"
            )


def _refused(said: str) -> MemlocError:
    return MemlocError(f"configuration: {said}")
