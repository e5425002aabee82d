"""What the page says that no table holds: labels, settings, records, and what was not run."""

from collections.abc import Collection, Mapping
from typing import Any

from memloc.study import techniques
from memloc.study.command import Called
from memloc.study.data_seeds import task_of

KEEP_EPOCHS = "snakemake --config 'training={keep_epochs: [1, 2, 5, 10]}'"


class PagePlan:
    """The page of a study.

    called: how Snakemake was called, for the commands that ask for more, or None for no commands;
    paper: the settings of the paper's study, beside which this study's are shown; targets: what
    this command asks for.
    """

    def __init__(
        self,
        study: Any,
        called: Called | None,
        paper: Mapping[str, Any],
        targets: Collection[str] = (),
    ):
        self.study, self.called, self.paper, self.targets = study, called, paper, targets

    def content(self) -> dict[str, Any]:
        """Keywords of the page, `report.page.write_report`."""
        names = self.study.names()
        for model, shown in names["models"].items():
            source = self.study.model_source(model)
            shown |= {"source": _origin(source), "note": source.get("note", "")}
        return {
            "title": self.study.config.get("title", "Where is memorisation?"),
            "tasks": names["tasks"],
            "models": names["models"],
            "data": self.data(),
            "settings": dict(self.study.config),
            "paper": dict(self.paper),
            "absent": self.absent(),
            "given": self.study.given_lines,
        }

    def data(self) -> dict[str, str]:
        """Each task's examples."""
        return {task: self.study.places.data.format(task=task) for task in self.study.task_names}

    def absent(self) -> dict[str, dict[str, str]]:
        """Techniques and tables that this study leaves out: their target, and how to get them."""
        study, shown = self.study, self.study.page_tables(self.targets)
        missing = {
            name: self._asked("techniques", name, study.places.run(found.table))
            for name, found in techniques.TECHNIQUES.items()
            if name not in study.techniques
        }
        missing |= {
            table: self._asked("stages", stage, study.places.summary(table))
            for stage, tables in study.stage_tables.items()
            for table in tables
            if table not in shown
        }
        if "swapping" not in study.techniques:
            table = study.places.summary("examples")
            missing["examples"] = self._asked("techniques", "swapping", table)
        if not study.kept_epochs:
            missing["progression"]["command"] = KEEP_EPOCHS if self.called else ""
        if not study.anew:
            missing["variance"]["command"] = self._more_data_seeds()
        if "correlations" not in study.summary_tables:
            table = study.places.summary("correlations")
            missing["correlations"] = {"target": table, "command": ""}
        return missing | self._left_out()

    def _left_out(self) -> dict[str, dict[str, str]]:
        """Techniques and tables that can't be made of given runs, and why."""
        study, found = self.study, {}
        if study.given:
            found = {name: study.given.why_not(t) for name, t in techniques.TECHNIQUES.items()}
            found["examples"] = found["swapping"]
            found["gradient_variants"] = study.given.why_no_stage("control")
        for stage, names in study.stage_tables.items():
            found |= dict.fromkeys(set(names) - {"events"}, study.given.why_no_stage(stage))
        return {n: {"target": "", "command": "", "why": w} for n, w in found.items() if w}

    def _more_data_seeds(self) -> str:
        """The command that perturbs the tasks anew, twice."""
        first = self.study.data_seed
        changed: dict[str, Any] = {"data_seeds": [first, first + 1, first + 2]}
        if self.called and "data_seed" in self.called.given:
            changed["data_seed"] = None
        return self.called.again(changed) if self.called else ""

    def _asked(self, key: str, name: str, target: str) -> dict[str, str]:
        changed = {key: [*self.study.config[key], name]}
        return {"target": target, "command": self.called.again(changed) if self.called else ""}

    def records(self) -> dict[str, list[str]]:
        """Records beside the results, by task; the page shows those that exist.

        A pattern stands for the jobs that retraining was split into.
        """
        of = {task: self._records_of(task) for task in self.study.task_names}
        for name in self.study.anew:
            of[task_of(name)] += self._records_anew(name)
        return of

    def _records_of(self, task: str) -> list[str]:
        study, places = self.study, self.study.places
        of_runs = [
            "original/final",
            *(f"swap-{name}.tsv" for name in study.components),
            "swap-heads.tsv",
            "no_noise.tsv",
            "centroids.tsv",
        ]
        runs = [p for name in of_runs for p in study.run_paths(places.run(name), tasks=[task])]
        control = [
            places.control(f"{kind}/final").format(task=task, model="*")
            for kind in ("frozen", "*/original", "*/perturbed")
        ]
        return [*self._records_anew(task), *(f"{path}.provenance.json" for path in runs + control)]

    def _records_anew(self, task: str) -> list[str]:
        """Records of what a task has under every data seed."""
        study, places = self.study, self.study.places
        frozen = [places.pair("frozen/final").format(task=task, model=m) for m in study.models]
        names = [
            "perturbed/final",
            *(
                "retrain/*.tsv" if name == "retraining" else found.table
                for name, found in study.techniques.items()
            ),
        ]
        runs = [p for name in names for p in study.run_paths(places.run(name), tasks=[task])]
        data = [places.data, *([places.found] if study.finds_noise else [])]
        found = [*(path.format(task=task) for path in data), *frozen, *runs]
        return [f"{path}.provenance.json" for path in found]


def _origin(source: Mapping[str, Any]) -> str:
    """Where a pre-trained model came from, in words."""
    kinds = ("hub", "package", "folder")
    return next((str(source[kind]) for kind in kinds if source.get(kind)), "")
