"""Which models the control setup consists of (section 3.2), and what its configuration may say.

Snakemake imports this module while it plans: no torch, no pandas.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.study.noise import refuse_control
from memloc.study.tasks import BINARY

Pair = tuple[int, int]
Run = dict[str, Any]
TEST, VALIDATION = "test", "validation"
VALIDATING = ("mrpc", "trec")  # the paper's validation tasks
NEIGHBOURS, APART = "neighbours", "apart"  # designs: the paper's pairs, and layers apart


def pair_name(pair: Sequence[int]) -> str:
    """How a pair is called in paths and tables: "layers6-7"."""
    return f"layers{pair[0]}-{pair[1]}"


def pair_of(name: str) -> Pair:
    """The layers of a pair by its name."""
    first, _, second = name.removeprefix("layers").partition("-")
    return int(first), int(second)


def pair_label(name: str) -> str:
    """How a pair is written in texts and figures: "layers 6 and 7"."""
    return "layers {} and {}".format(*pair_of(name))


def automatic_pairs(n_layers: int) -> list[Pair]:
    """The first two, the middle two and the last two layers, each pair once."""
    if n_layers < 2:
        raise MemlocError(f"control: a model of {n_layers} layer(s) has no pair of layers")
    starts = (1, n_layers // 2, n_layers - 1)
    return list(dict.fromkeys((start, start + 1) for start in starts))


def check_pair(pair: Sequence[int], n_layers: int | None) -> Pair:
    """The pair, if it is two layers of the model, the lower one first; else MemlocError.

    n_layers: None where the model's layers aren't known yet.
    """
    first, second = pair
    if not 1 <= first < second:
        raise MemlocError(
            f"control.pairs: [{first}, {second}]: a pair is two different layers, the lower one "
            "first, such as [1, 2] or [2, 9]"
        )
    if n_layers is not None and second > n_layers:
        raise MemlocError(
            f"control.pairs: [{first}, {second}]: a model of {n_layers} has no layer {second}; set "
            f"control.pairs to auto or to pairs within 1 to {n_layers}"
        )
    return first, second


def design_of(name: str) -> str:
    """Which design a pair belongs to, by its name: neighbouring layers, as in the paper, or not."""
    first, second = pair_of(name)
    return NEIGHBOURS if second == first + 1 else APART


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


class ControlPlan:
    """The control models of a study, their files, and how they are trained.

    Listing them raises MemlocError where the configuration allows none.
    """

    def __init__(self, study: Any):
        self.study, self.settings = study, study.config["control"]

    @property
    def validated(self) -> bool:
        """Whether some control models choose the post-processing of gradients."""
        chosen = validation_tasks(self.settings, self.study.task_names)
        return "gradients" in self.study.techniques and bool(chosen)

    @property
    def tables(self) -> list[str]:
        """Names of the tables over tasks and models."""
        names = ["control_accuracy", "control_techniques", "control_weights", "control_training"]
        return names + (["gradient_variants"] if self.validated else [])

    def tasks(self) -> dict[str, str]:
        """Role of each task under test, "validation" or "test"."""
        return tasks_under_test(self.settings, self.study.task_names)

    def names(self) -> dict[str, dict[str, Any]]:
        """Labels and categories of the tasks under test, and labels of models, for figures."""
        return self.study.names(self.tasks())

    def pairs(self, model: str) -> list[str]:
        """Names of the pairs of layers of one model."""
        layers = self.study.layer_count(model, f"control.pairs: {self.settings['pairs']}")
        return [pair_name(pair) for pair in model_pairs(self.settings, layers)]

    def runs(self, **facts: Any) -> list[Run]:
        """task, model, pair and role of every control model; `facts` hold for all."""
        return [
            dict(task=task, model=model, pair=pair, role=role, **facts)
            for task, role in self.tasks().items()
            for model in self.study.models
            for pair in self.pairs(model)
        ]

    def technique_runs(self) -> list[Run]:
        """The same for every technique."""
        return [run for name in self.study.techniques for run in self.runs(technique=name)]

    def technique_paths(self) -> list[str]:
        """Their tables, in the same order."""
        tables = {name: found.table for name, found in self.study.techniques.items()}
        return [self._path(run, tables[run["technique"]]) for run in self.technique_runs()]

    def trainings(self) -> list[Run]:
        """task, model, pair ("frozen" for theta_F), role and labels of every trained model."""
        runs = [
            run | {"labels": labels} for run in self.runs() for labels in ("original", "perturbed")
        ]
        compared = any(technique.frozen for technique in self.study.techniques.values())
        frozen = dict.fromkeys((run["task"], run["model"], run["role"]) for run in runs)
        return runs + [
            dict(task=task, model=model, pair="frozen", role=role, labels="perturbed")
            for task, model, role in (frozen if compared else ())
        ]

    def training_paths(self, name: str) -> list[str]:
        """A file of every trained model, in the same order."""
        trained = "{pair}/{labels}"
        return [
            self.study.places.control(
                f"{'{pair}' if run['pair'] == 'frozen' else trained}/{name}"
            ).format(**run)
            for run in self.trainings()
        ]

    def trained(self) -> bool:
        """Whether every control model of this study has been trained; False where none can be."""
        try:
            digests = self.training_paths("final.sha256")
        except MemlocError:
            return False
        return all(Path(digest).exists() for digest in digests)

    def variant_runs(self) -> list[Run]:
        """The control models of validation tasks, which choose the gradients' post-processing."""
        runs = [run for run in self.runs() if run["role"] == VALIDATION]
        if not runs:
            raise MemlocError(
                "control.validation_tasks names no task, so there is nothing to choose the "
                "gradients' post-processing by; name one that is under test"
            )
        return runs

    def variant_paths(self, table: str) -> list[str]:
        """Their tables of gradients, in the same order."""
        return [self._path(run, table) for run in self.variant_runs()]

    def _path(self, run: Run, table: str) -> str:
        return self.study.places.control(f"{{pair}}/{table}").format(**run)

    def auxiliary_data(self, w: Mapping[str, str]) -> str:
        """The auxiliary task's data, once task and pair are known to be possible."""
        if self.study.finds_noise:
            refuse_control()
        check_auxiliary(self.settings, [w["task"]])
        if w.get("pair"):
            check_pair(pair_of(w["pair"]), self.study.known_layers(w["model"]))
        return self.study.places.data.format(task=self.settings["auxiliary"])

    def training(self, w: Mapping[str, str]) -> dict[str, Any]:
        """How a control model is trained; theta_F (no pair) tries one learning rate alone."""
        params, pair, task = self.study.params, w.get("pair"), self.settings["auxiliary"]
        recipe = params.training_recipe(w["model"]) | self.settings["training"]
        rates = higher_rates(self.settings, recipe["learning_rate"])
        return {
            "recipe": recipe,
            "setting": {
                "pair": list(pair_of(pair)) if pair else [],
                "further_rates": rates if pair else [],
                "accuracy_above": self.settings["accuracy_above"] if pair else 0,
                "auxiliary_learning_rate": self.settings["auxiliary_learning_rate"],
            },
            **params.lora(w["model"]),
            **params.computing(w),
            "auxiliary_reading": params.reading({"task": task, "model": w["model"]}),
            "seed": params.first_seed(w),
        }

    def paper_models(self) -> dict[str, str]:
        """The name of each model's weights on the hub, by which the paper reports them."""
        sources = {model: self.study.model_source(model) for model in self.study.models}
        return {m: str(source.get("hub", "")).rpartition("/")[2] for m, source in sources.items()}
