"""Runs whose models are fine-tuned already (`given`): their checkpoints, and what these allow.

A given checkpoint is taken in at the path that training would have used, where no rule may train.
Which techniques and stages can run follows from the checkpoints that are there: those given, those
that `train_missing` names, and theta_P. All runs of a study are given, or none is, and all with the
same checkpoints, so that every table is of one kind. Planning imports this module: no torch.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memloc.errors import MemlocError
from memloc.study.config import content_hash
from memloc.study.data_seeds import TASK
from memloc.study.given_runs import (
    THETAS,
    WHERE,
    Run,
    check_folder,
    check_runs,
    key_of,
    named,
    plain_run,
    taken_content,
)
from memloc.study.techniques import CENTROIDS, SubjectRule, Technique

RETRAINING = ("theta_M2", "theta_P")  # what layer retraining reads
NOTHING = "(?!)"  # a pattern that no text fits
TRAIN_IT = "name it in given, or give the run train_missing: [{theta}]"
REMEDIES = {
    "theta_O": TRAIN_IT.format(theta="theta_O"),
    "theta_F": TRAIN_IT.format(theta="theta_F"),
    "theta_M1": "name it in given: it is an epoch of the training that made theta_M2",
}
DRAWN = (
    "CAUTION: its validation rows are drawn out of one file: where the given model was trained on "
    "them too, no accuracy on them counts. Give the rows it never saw a file of their own (split)"
)
RECIPE = (
    "by this configuration's `training`, which no one compares with what made the given models: "
    "set it to the same"
)
# Stages that no given checkpoint takes part in, and why they are left out.
FOREIGN = {
    "control": "it trains models of its own, and reads no given one: run it in a study without "
    "given",
    "generalisation": "it trains models on halves by the configuration's recipe, which is not the "
    "one that made the given model: run it in a study without given",
    "progression": "a given run has no epochs",
    "data_seeds": "the noise is the task's own, and nothing is perturbed anew",
}


class StandIn(NamedTuple):
    """What a rule reads in place of a checkpoint that isn't there ("": nothing), and why."""

    theta: str
    why: str


STAND_INS = {
    ("gradients", "theta_M1"): StandIn(
        "theta_M2",
        "theta_M2 takes the place of theta_M1, which isn't given, as in the paper where theta_M1 "
        "was never reached",
    ),
    ("probe", "theta_F"): StandIn(
        "theta_P", "layer 1 is compared with theta_P's, which is theta_F's: its layers are frozen"
    ),
    ("weight_change", "theta_O"): StandIn("", "against theta_P alone, as there is no theta_O"),
}


def checkpoint_pattern(places: Any, theta: str) -> str:
    """A regular expression of a checkpoint's place below its task's and model's folder."""
    words = dict(task="T", model="M", subject=r"seed\d+")
    return places.checkpoint(theta, words).removeprefix(f"{places.results}/T/M/")


class GivenPlan:
    """What a study was given. Raises MemlocError, in one line with the remedy, where it can't be.

    It is false where nothing is given; then `there` holds every checkpoint, as all are trained.
    """

    def __init__(self, study: Any):
        self.study = study
        self.runs: list[Run] = [plain_run(run) for run in study.config["given"]]
        self.thetas = [name for name in THETAS if self.runs and name in self.runs[0]]
        self.trained: list[str] = self.runs[0]["train_missing"] if self.runs else []
        there = {*self.thetas, *self.trained, "theta_P"}
        self.there = there if self.runs else {*THETAS, "theta_P"}
        if self.runs:
            check_runs(self.runs, study)

    def __bool__(self) -> bool:
        return bool(self.runs)

    # --- what can run ----------------------------------------------------------------------

    def reads(self, rule: SubjectRule) -> dict[str, str]:
        """The checkpoint that stands under each name that a rule reads."""
        found = {name: name for name in rule.reads}
        for name in rule.reads:
            stand_in = self._stand_in(rule, name)
            if stand_in and stand_in.theta:
                found[name] = stand_in.theta
            elif stand_in:
                del found[name]
        return found

    def settings(self, rule: SubjectRule) -> dict[str, Any]:
        """What a rule's results depend on beside its settings: who stands in for whom."""
        found = {name: self._stand_in(rule, name) for name in rule.reads}
        stands = {name: one.theta or "none" for name, one in found.items() if one}
        return {"stand_ins": stands} if stands else {}

    def _stand_in(self, rule: SubjectRule, theta: str) -> StandIn | None:
        return None if theta in self.there else STAND_INS.get((rule.name, theta))

    def why_not(self, technique: Technique) -> str:
        """Why a technique can't run on what is there; "" where it can."""
        rule = technique.rule
        return self._lacking(list(self.reads(rule).values()) if rule else RETRAINING)

    def why_no_stage(self, stage: str) -> str:
        """Why a stage is left out; "" where it can run."""
        if not self:
            return ""
        reads = {"centroids": CENTROIDS.reads, "no_noise": ("theta_O",)}.get(stage, ())
        return FOREIGN.get(stage, "") or self._lacking(reads)

    def _lacking(self, reads: Sequence[str]) -> str:
        missing = next((name for name in reads if name not in self.there), None)
        return f"it needs {missing}: {REMEDIES[missing]}" if missing else ""

    def lines(self, techniques: Mapping[str, Technique]) -> list[tuple[str, str]]:
        """(what, whether it runs and why or why not) of all that the configuration asks for.

        techniques: those asked for; the first line says what is given. Empty without given runs.
        """
        if not self:
            return []
        trained = f"; trained: {', '.join(self.trained)}" if self.trained else ""
        first = f"taken in, and never trained over: {', '.join(self.thetas)}{trained}"
        if self.trained:
            first += f", {RECIPE}"
        found = [("given", first)]
        found += [(task, DRAWN) for task in self._drawn()]
        found += [(name, self._line(technique)) for name, technique in techniques.items()]
        stages = ((name, self.why_no_stage(name)) for name in self.study.config["stages"])
        return found + [(name, f"left out: {why}" if why else "runs") for name, why in stages]

    def _drawn(self) -> list[str]:
        """Tasks whose validation rows are drawn from the rows that training may have seen."""
        tasks = ((name, self.study.task(name)) for name in self.study.task_names)
        return [name for name, task in tasks if "all" in task["split"]]

    def _line(self, technique: Technique) -> str:
        if why := self.why_not(technique):
            return f"left out: {why}"
        rule = technique.rule
        found = (self._stand_in(rule, name) for name in rule.reads) if rule else ()
        return "; ".join(["runs", *(one.why for one in found if one)])

    # --- where checkpoints come from ---------------------------------------------------------

    def taken(self, theta: str) -> bool:
        """Whether a checkpoint is taken in rather than trained."""
        return theta in self.thetas

    @property
    def tasks(self) -> str:
        """The wildcard `task` of given runs."""
        names = sorted({run["task"] for run in self.runs})
        return "|".join(map(re.escape, names)) or NOTHING

    def trained_tasks(self, theta: str) -> str:
        """The wildcard `task` of rules that train a checkpoint: never one that is given."""
        return TASK if not self or theta in self.trained else rf"(?!(?:{self.tasks})[@/]){TASK}"

    def places(self, taken: bool) -> str:
        """The wildcard `checkpoint`: the places of all that is taken in, or of what isn't there."""
        gone = [name for name in THETAS if name not in self.there]
        names = self.thetas if taken else gone
        return "|".join(checkpoint_pattern(self.study.places, name) for name in names) or NOTHING

    def theta_of(self, checkpoint: str) -> str:
        """Which checkpoint lies at a place."""
        patterns = ((name, checkpoint_pattern(self.study.places, name)) for name in THETAS)
        return next(name for name, pattern in patterns if re.fullmatch(pattern, checkpoint))

    def _run_of(self, w: Mapping[str, str]) -> Run | None:
        """The run that a checkpoint is of; None for one that given doesn't name."""
        key = self._key(w)
        return next((run for run in self.runs if key_of(run) == key), None)

    def _key(self, w: Mapping[str, str]) -> tuple[str, str, int]:
        seed = re.match(r"seed(\d+)", w["checkpoint"])
        return w["task"], w["model"], int(seed[1]) if seed else min(self.study.seeds(w["model"]))

    def source(self, w: Mapping[str, str]) -> dict[str, Any]:
        """Where a checkpoint is taken from; a folder counts with its content.

        Nothing for a run that isn't given, which `check_job` refuses once the plan stands.
        """
        run = self._run_of(w)
        source = dict(run[self.theta_of(w["checkpoint"])]) if run else {}
        if "folder" in source:
            copy = self.study.places.pair(w["checkpoint"]).format(**w)
            taken = taken_content(copy, source["folder"])
            source["content"] = taken or content_hash(Path(source["folder"]).expanduser())
        return source

    def check_job(self, rule: str, w: Mapping[str, str]) -> None:
        """Raise MemlocError for a job of a run, or for a checkpoint, that isn't given."""
        if rule == "take_in":
            self._check_taking(w)
        if rule != "not_given":
            return
        theta = self.theta_of(w["checkpoint"])
        raise MemlocError(
            f"{w['task']}/{w['model']}/{w['checkpoint']} is {theta} of a given run, which is never "
            f"trained over: {REMEDIES[theta]}"
        )

    def _check_taking(self, w: Mapping[str, str]) -> None:
        run, what = self._run_of(w), named(self._key(w))
        if run is None:
            raise MemlocError(f"given names no run {what}: add it there, or ask for another")
        theta = self.theta_of(w["checkpoint"])
        if "folder" in run[theta]:
            check_folder(run[theta]["folder"], f"{WHERE} {what}: {theta} is to be taken in")

    def checkpoints(self) -> list[dict[str, Any]]:
        """task, model, seed, theta and record of every checkpoint that is taken in."""
        found = [dict(run, theta=name) for name in self.thetas for run in self.study.run_list()]
        for run in found:
            words = dict(run, subject=f"seed{run['seed']}")
            run["record"] = self.study.places.checkpoint(run["theta"], words, ".provenance.json")
        return list({run["record"]: run for run in reversed(found)}.values())[::-1]
