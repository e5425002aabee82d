"""Where everything of a study lies, as paths with {wildcards}.

Snakemake imports this module while it plans: no torch, no pandas.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.study.data_seeds import task_of

# What techniques localise in, below a task's and a model's folder (the wildcard `subject`): a
# seed's run, that run after an epoch that is kept, or a control model.
PAIR = r"layers[1-9]\d*-[1-9]\d*"  # names of a control model's pair of layers
SUBJECTS = rf"seed\d+(?:/epoch\d+)?|control/{PAIR}"
# Where the checkpoints of runs lie, below a task and model (the wildcard `checkpoint`).
CHECKPOINTS = r"seed\d+/(?:original/final|perturbed/(?:final|memorised))|frozen/final"


def mirrored(folder: str, path: str) -> str:
    """`path` below `folder`, wherever it leads: "/data/out" and "../out" stay below it too."""
    parts = [part for part in Path(path).parts if part != Path(path).anchor]
    return "/".join([folder, *("up" if part == ".." else part for part in parts)])


def refuse_files(config: Mapping[str, Any]) -> None:
    """Raise MemlocError where results_dir or resources_dir can be no folder: a file is in its way.

    A link that leads nowhere, or around, is in the way as well.
    """
    for key in ("results_dir", "resources_dir"):
        for place in (Path(config[key]), *Path(config[key]).parents):
            if os.path.lexists(place) and not place.is_dir():
                raise MemlocError(
                    f"configuration: {key} = {config[key]}: {place} is no folder but a file, or a "
                    "link that leads to none. Name another folder, or move it away"
                )


@dataclass(frozen=True)
class Places:
    """The folders of results and of resources, and the names of all that is in them."""

    results: str
    resources: str

    def task(self, name: str) -> str:
        """A file of a task: results/{task}/NAME."""
        return f"{self.results}/{{task}}/{name}"

    @property
    def data(self) -> str:
        """The task's examples with perturbed labels."""
        return self.task("perturbed.parquet")

    @property
    def unmarked(self) -> str:
        """The same examples before any row is marked as noisy, where noise is found."""
        return self.task("unmarked.parquet")

    @property
    def found(self) -> str:
        """How memorised each training example is, and which count as noisy, where it is found."""
        return self.task("found.tsv")

    def pair(self, name: str) -> str:
        """A file of a task and a model, over its seeds."""
        return self.task(f"{{model}}/{name}")

    def run(self, name: str) -> str:
        """A file of a seed's run."""
        return self.pair(f"seed{{seed}}/{name}")

    def subject(self, name: str) -> str:
        """A file of what techniques localise in (SUBJECTS)."""
        return self.pair(f"{{subject}}/{name}")

    def control(self, name: str) -> str:
        """A file of the control setup of a task and a model."""
        return self.pair(f"control/{name}")

    def summary(self, name: str) -> str:
        """A table over tasks and models."""
        return f"{self.results}/summary/{name}.tsv"

    def figure(self, name: str) -> str:
        """A figure's file, without its ending."""
        return f"{self.results}/figures/{name}"

    @property
    def page(self) -> str:
        """The page of results."""
        return f"{self.results}/report.html"

    def scratch(self, name: str) -> str:
        """The folder of a job's partial state."""
        return f"{self.results}/.scratch/{name}"

    def pretrained(self, ending: str = "") -> str:
        """A pre-trained model's folder, theta_P, or a file beside it."""
        return f"{self.resources}/models/{{model}}{ending}"

    def retrieved(self, ending: str) -> str:
        """A retrieved task's table (.parquet) or manifest (.manifest.json)."""
        return f"{self.resources}/tasks/{{task}}{ending}"

    def log(self, stem: str) -> str:
        """Where a rule logs what it does for a result, named without its ending."""
        return mirrored("logs", f"{stem}.log")

    def benchmark(self, stem: str) -> str:
        """Where the time that a rule takes for a result is kept."""
        return mirrored("benchmarks", f"{stem}.tsv")

    def checkpoint(self, theta: str, wildcards: Mapping[str, str], ending: str = "") -> str:
        """Folder of theta_O, theta_M1, theta_M2, theta_F or theta_P of a subject, or a file beside.

        While a run memorises, theta_M1 and theta_M2 are that epoch's; theta_O is the finished one,
        and that of the task itself where it is perturbed anew.
        """
        if theta == "theta_P":
            return self.pretrained(ending).format(**wildcards)
        subject = wildcards["subject"]
        found = re.fullmatch(r"(.+?)(?:/epoch(\d+))?", subject)
        run, epoch = found.groups() if found else (subject, None)
        control = "control/" if run.startswith("control/") else ""
        name = {
            "theta_M1": f"{subject}/perturbed/{'final' if epoch else 'memorised'}",
            "theta_M2": f"{subject}/perturbed/final",
            "theta_O": f"{run}/original/final",
            "theta_F": f"{control}frozen/final",
        }[theta]
        words = dict(wildcards)
        if theta == "theta_O":
            words["task"] = task_of(words["task"])
        return self.pair(f"{name}{ending}").format(**words)
