"""What a rule's results depend on, as plain values: a changed value re-runs the rule.

Functions take a rule's wildcards as a mapping. What changes only speed or rounding isn't here:
scripts take it from the configuration.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from memloc.errors import MemlocError
from memloc.study import config as settings
from memloc.study.data_seeds import further_seed, refuse_own_noise
from memloc.study.noise import criterion, finders
from memloc.study.tasks import task_params

Wildcards = Mapping[str, str]
# What `training.lora` doesn't say.
LORA = {"alpha": 16, "dropout": 0.05, "targets": "all-linear", "base": "float32"}


def without(section: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """A section of the configuration but for some keys."""
    return {key: value for key, value in section.items() if key not in names}


def recipe_without(section: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """A recipe but for some keys. Moments in float32 are left out too: they go without saying, so
    that results of versions that had no others stay."""
    quiet = ("moments",) if section["moments"] == "float32" else ()
    return without(section, *names, *quiet)


def lora_of(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """How a model's adapters are built, by its settings; None where whole layers are trained."""
    chosen = settings["training"].get("lora")
    return LORA | chosen if chosen else None


class Params:
    """Params of the rules of one study."""

    def __init__(self, study: Any):
        self.study, self.config = study, study.config

    # --- data and models -------------------------------------------------------------------

    def retrieval(self, w: Wildcards) -> dict[str, Any]:
        """What decides how a task is retrieved."""
        return task_params(self.study.tasks[w["task"]])

    def perturbation(self, w: Wildcards) -> dict[str, Any]:
        """What decides which rows and labels are trained on.

        Of a task that is perturbed anew the rows are those of the study's own data seed.
        """
        task = self.study.task(w["task"])
        rows: dict[str, Any] = {}
        if further_seed(w["task"]) is not None:
            refuse_own_noise(w["task"], task)
            if w["task"] not in self.study.anew:
                raise MemlocError(
                    f"{w['task']} is a task perturbed anew, and data_seeds doesn't ask for it: "
                    f"there are {', '.join(self.study.anew) or 'none'}"
                )
            rows = {"rows_seed": self.study.data_seed}
        return rows | dict(
            task=w["task"],
            labels=task["labels"],
            share=task["split"].get("share"),
            natural="noisy" in task["columns"],
            ratio=self.config["perturbation"]["ratio"],
            data_seed=self.study.data_seed_of(w["task"]),
            max_train=self.config["data"]["max_train"],
            max_heldout=self.config["data"]["max_heldout"],
        )

    def unmarked(self, w: Wildcards) -> dict[str, Any]:
        """What decides the rows of a task whose noisy rows are yet to be found."""
        return self.perturbation(w) | {"unmarked": True}

    def labelling(self, w: Wildcards) -> dict[str, Any]:
        """What decides perturbed.parquet: how labels are perturbed, or how noisy rows are found."""
        found = {"finding": self.finding(w)} if self.study.finds_noise else {}
        return self.perturbation(w) | found

    def finding(self, w: Wildcards) -> dict[str, Any]:
        """What decides which rows count as noisy, where they are found by halves."""
        return {
            "task": w["task"],
            "labels": self.study.task(w["task"])["labels"],
            "criterion": criterion(self.config),
            "models": finders(self.config),
            "halves": self.study.halves,
        }

    def task_table(self) -> dict[str, Any]:
        """What the table of all tasks shows and counts."""
        return dict(
            tasks={
                name: {key: self.study.tasks[name][key] for key in ("label", "category", "labels")}
                for name in self.study.task_names
            },
            separators={
                model: self.study.model_source(model).get("separator")
                for model in self.study.models
            },
            max_length=self.config["data"]["max_length"],
        )

    def model_source(self, w: Wildcards) -> dict[str, Any]:
        """What decides which model is retrieved."""
        return settings.model_source(self.config, w["model"])

    def reading(self, w: Wildcards) -> dict[str, Any]:
        """What decides how a model reads a task's texts; class names in the order of their ids."""
        return {
            "class_names": self.study.task(w["task"])["labels"],
            "separator": self.study.model_source(w["model"]).get("separator"),
            "max_length": self.config["data"]["max_length"],
        }

    def reading_and_precision(self, w: Wildcards) -> dict[str, Any]:
        """The same, and how results are rounded."""
        return {"reading": self.reading(w), "precision": self.config["precision"]}

    def computing(self, w: Wildcards) -> dict[str, Any]:
        """The same, and whether tokens are packed, where jobs can do so."""
        return {**self.reading_and_precision(w), "packed": self.config["packed"]}

    # --- training --------------------------------------------------------------------------

    def first_seed(self, w: Wildcards) -> int:
        """The seed of what is trained once per model: theta_F, halves, control models."""
        return min(self.study.seeds(w["model"]))

    def training_recipe(self, model: str) -> dict[str, Any]:
        """How one model is fine-tuned; which epochs are kept changes nothing in that."""
        return recipe_without(self.study.model_settings(model)["training"], "keep_epochs", "lora")

    def lora(self, model: str) -> dict[str, Any]:
        """How one model's adapters are built, as `lora`; nothing where whole layers are trained."""
        chosen = lora_of(self.study.model_settings(model))
        return {"lora": chosen} if chosen else {}

    def training(self, w: Wildcards) -> dict[str, Any]:
        """What decides a run on the perturbed labels, theta_M1's threshold included."""
        recipe = self.training_recipe(w["model"])
        return {"recipe": recipe, **self.lora(w["model"]), **self.computing(w)}

    def training_to_the_end(self, w: Wildcards) -> dict[str, Any]:
        """The same of a run that has no theta_M1 (theta_O, theta_F)."""
        return _without_threshold(self.training(w))

    def control_training(self, w: Wildcards) -> dict[str, Any]:
        """How a control model is trained; theta_F (no pair) tries one learning rate alone."""
        return self.study.control.training(w)

    def control_training_to_the_end(self, w: Wildcards) -> dict[str, Any]:
        """The same of a model that has no theta_M1 (theta_O, theta_F)."""
        return _without_threshold(self.control_training(w))

    def split(self, w: Wildcards) -> dict[str, Any]:
        """What decides which examples a half trains on."""
        chosen = ("splits", "stratify", "labels")
        return {
            "task": w["task"],
            "class_names": self.study.task(w["task"])["labels"],
            "data_seed": self.study.data_seed_of(w["task"]),
            **{key: self.config["generalisation"][key] for key in chosen},
        }

    def half_recipe(self, w: Wildcards) -> dict[str, Any]:
        """How a model is trained on a half, and its adapters are built."""
        chosen = self.study.model_settings(w["model"])["generalisation"]
        recipe = recipe_without(chosen, "halves", "splits", "stratify", "labels")
        return recipe | self.lora(w["model"])

    # --- checkpoints that were given ---------------------------------------------------------

    def given_checkpoint(self, w: Wildcards) -> dict[str, Any]:
        """What decides what is taken in for a given checkpoint: which one, and where it is from."""
        given = self.study.given
        return {
            "theta": given.theta_of(w["checkpoint"]),
            "source": given.source(w),
            "reading": self.reading(w),
            **({"trained": self.lora(w["model"])} if given.trained else {}),
        }

    # --- localisation ----------------------------------------------------------------------

    def clean_seed(self, w: Wildcards) -> int:
        """The seed that draws as many clean examples as there are noisy ones."""
        return self.study.data_seed_of(w["task"])

    def measuring(self, w: Wildcards) -> dict[str, Any]:
        """On which examples errors of windows are measured: swapping, rewinding and patching."""
        return {
            **self.computing(w),
            "clean_examples": self.config["swapping"]["clean_examples"],
            "seed": self.clean_seed(w),
        }

    def gradients(self, w: Wildcards) -> dict[str, Any]:
        """What decides forgetting gradients."""
        return {
            **self.reading_and_precision(w),
            "objective": self.config["gradients"]["objective"],
            "seed": self.clean_seed(w),
        }

    def states(self, w: Wildcards) -> dict[str, Any]:
        """What decides hidden states: those that probes and the centroid analysis read."""
        return {**self.reading_and_precision(w), "last_state": self.config["last_state"]}

    def probes(self, w: Wildcards) -> dict[str, Any]:
        """How probes are built and trained, and with which seeds."""
        probing = self.config["probing"]
        return {
            **self.states(w),
            "recipe": without(probing, "seeds", "states", "batch_tokens"),
            "seeds": probing["seeds"],
            "states": probing["states"],
        }

    def retraining_recipe(self, w: Wildcards) -> dict[str, Any]:
        """How windows of one model are retrained."""
        return recipe_without(self.study.model_settings(w["model"])["retraining"], "batch")

    def subject_seed(self, w: Wildcards) -> int:
        """The model seed of a subject; control models have their model's first one."""
        found = re.match(r"seed(\d+)", w["subject"])
        return int(found[1]) if found else self.first_seed(w)

    # --- summaries -------------------------------------------------------------------------

    def weight_options(self) -> dict[str, dict[str, Any]]:
        """Keywords of the techniques' weights, as the configuration chooses them."""
        return {
            "gradients": {"variant": self.config["gradients"]["variant"]},
            "weight-change": {"reference": self._reference()},
        }

    def _reference(self) -> str:
        """What weight changes are distances from: as configured, or theta_P without theta_O."""
        asked = self.config["weight_change"]["reference"]
        return asked if asked in self.study.given.there else "theta_P"

    def technique_runs(self, tasks: Collection[str] | None = None) -> list[dict[str, Any]]:
        """Of which run and technique each table is that layer weights are made of."""
        names: Iterable[str] = self.study.techniques
        return [run for n in names for run in self.study.run_list(tasks=tasks, technique=n)]


def _without_threshold(params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "recipe": without(params["recipe"], "memorised_above")}
