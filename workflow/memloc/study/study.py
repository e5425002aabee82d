"""The plan of a study: which runs, tables and figures it has, and where they are.

A Study knows its configuration, its task files and what already lies in its folders; it knows
nothing of Snakemake, whose rules ask it. Planning imports this module: no torch, no pandas.
"""

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.study import config as settings
from memloc.study import data_seeds, noise, techniques
from memloc.study.admission import model_facts, source_facts
from memloc.study.control import ControlPlan, possible
from memloc.study.figures import KINDS
from memloc.study.given import GivenPlan
from memloc.study.params import Params
from memloc.study.places import Places
from memloc.study.progression import ProgressionPlan

Tasks = Mapping[str, Mapping[str, Any]]
Run = dict[str, Any]  # task, model and seed, and facts that hold for it
HEADS = "heads"  # of swapping.components: a table of heads rather than of windows
DATA_SEEDS = "data_seeds"  # a stage where there are several
NO_NOISE = "no_noise"  # the stage that swaps between models which saw no noise
EXAMPLE_TABLES = ["examples", "example_shares", "example_ranks"]


class Study:
    """What a configuration asks for.

    config: as checked by `config.check_config`; tasks: loaded task files by name, those that no
    configuration lists too. Raises MemlocError where the configuration contradicts itself.
    """

    def __init__(self, config: settings.Config, tasks: Tasks):
        self.config, self.tasks = config, tasks
        self.places = Places(config["results_dir"].rstrip("/"), config["resources_dir"].rstrip("/"))
        self.task_names: list[str] = list(config["tasks"])
        self.data_seed, *further = data_seeds.data_seeds(config)
        # tasks perturbed anew: of these come the tables of runs alone, and their variance
        self.anew = [data_seeds.anew(t, seed) for seed in further for t in self.task_names]
        self.models: list[str] = list(config["models"])
        self.kept_epochs: list[int] = sorted(config["training"]["keep_epochs"])
        self.given = GivenPlan(self)
        asked = techniques.chosen(config["techniques"])
        self.techniques = {n: t for n, t in asked.items() if not self.given.why_not(t)}
        self.given_lines = self.given.lines(asked)
        if not self.techniques:
            name, why = self.given_lines[1]
            raise MemlocError(f"configuration: given: no technique can run; {name} is {why}")
        self.window_techniques = [n for n, found in self.techniques.items() if found.windows]
        # what is swapped: whole layers, and their attention or feed-forward blocks apart
        swapped = config["swapping"]["components"] if "swapping" in self.techniques else []
        self.components: list[str] = [name for name in swapped if name != HEADS]
        self.heads = HEADS in swapped
        self.halves = list(range(1, config["generalisation"]["halves"] + 1))
        self.finds_noise = noise.finds_noise(config)
        self.params = Params(self)
        self.control = ControlPlan(self)
        self.progression = ProgressionPlan(self)
        if "retraining" in self.techniques:
            for task in self.task_names:
                self.check_ratio(task)
        for task in self.task_names if self.anew else ():
            data_seeds.refuse_own_noise(task, self.task(task))
        if NO_NOISE in config["stages"] and not self.given.why_no_stage(NO_NOISE):
            self._check_no_noise()
        if self.finds_noise:
            noise.refuse_marked(self.tasks, self.task_names)
            if "control" in config["stages"]:
                noise.refuse_control()
        self._check_figure_names()

    # --- tasks ---------------------------------------------------------------------------

    def task(self, name: str) -> Mapping[str, Any]:
        """The task file of a task, which is also that of the task perturbed anew."""
        return self.tasks[data_seeds.task_of(name)]

    def data_seed_of(self, name: str) -> int:
        """The data seed that perturbs a task of this name."""
        further = data_seeds.further_seed(name)
        return self.data_seed if further is None else further

    @property
    def halved(self) -> str:
        """The examples that halves are made of: those of no marks where the halves find these."""
        return self.places.unmarked if self.finds_noise else self.places.data

    @property
    def detects_noise(self) -> bool:
        """Whether halves that learn noisy labels can be asked how well they find the known ones."""
        labels = self.config["generalisation"]["labels"]
        return not self.finds_noise and labels == "perturbed"

    # --- models and runs -----------------------------------------------------------------

    def model_settings(self, model: str) -> settings.Config:
        """The configuration as it holds for one model."""
        return settings.model_settings(self.config, model)

    def model_source(self, model: str) -> Mapping[str, Any]:
        """How the configuration describes where a model comes from and how it reads."""
        return self.config["model_sources"][model]

    def seeds(self, model: str) -> list[int]:
        """The model seeds that are run for one model."""
        return self.model_settings(model)["model_seeds"]

    def next_seed(self, model: str, seed: int) -> int:
        """The model seed whose theta_O is mixed with this one's; after the last comes the first.

        Raises MemlocError for a model with one seed alone.
        """
        seeds = self.seeds(model)
        if len(seeds) < 2:
            raise MemlocError(
                f"stages: {NO_NOISE} mixes θ_O of two seeds, and {model} has only seed {seeds[0]}: "
                f"give it two or more in model_seeds, or leave {NO_NOISE} out of stages"
            )
        return seeds[(seeds.index(seed) + 1) % len(seeds)] if seed in seeds else seeds[0]

    def _check_no_noise(self) -> None:
        if "swapping" not in self.techniques:
            raise MemlocError(
                f"stages: {NO_NOISE} is compared with layer swapping: name swapping in techniques, "
                f"or leave {NO_NOISE} out of stages"
            )
        for model in self.models:
            self.next_seed(model, self.seeds(model)[0])

    def run_list(
        self,
        models: Collection[str] | None = None,
        tasks: Collection[str] | None = None,
        **facts: Any,
    ) -> list[Run]:
        """task, model and seed of runs, in the order of their paths; `facts` hold for all."""
        return [
            dict(task=task, model=model, seed=seed, **facts)
            for task in (self.task_names if tasks is None else tasks)
            for model in (self.models if models is None else models)
            for seed in self.seeds(model)
        ]

    def run_paths(self, pattern: str, **chosen: Any) -> list[str]:
        """A file of each of these runs."""
        return [pattern.format(**run) for run in self.run_list(**chosen)]

    def trainings(self) -> list[Run]:
        """task, model, seed and labels of every run that trains layers: theta_O, then theta_M2."""
        both = ["original", "perturbed"] if "theta_O" in self.given.there else ["perturbed"]
        return [run for labels in both for run in self.run_list(labels=labels)]

    def has(self, theta: str) -> bool:
        """Whether the study's runs have a checkpoint; those that aren't given have all."""
        return theta in self.given.there

    def history(self, labels: str) -> str:
        """The name of a run's table of accuracies: by epoch, or as a given checkpoint has them."""
        theta = {"original": "theta_O", "perturbed": "theta_M2"}[labels]
        return f"{labels}/{'final.measured.tsv' if self.given.taken(theta) else 'history.tsv'}"

    def pair_list(self) -> list[dict[str, str]]:
        """task and model of every pair of the study, in the order of their paths."""
        return [dict(task=task, model=model) for task in self.task_names for model in self.models]

    def pair_paths(self, name: str) -> list[str]:
        """A file of every pair."""
        return [self.places.pair(name).format(**pair) for pair in self.pair_list()]

    def known_layers(self, model: str) -> int | None:
        """Layers of a model: as configured, else by its config.json or manifest; None: unknown."""
        source = self.model_source(model)
        if "layers" in source:
            return source["layers"]
        folder = Path(self.places.pretrained().format(model=model))
        retrieved = (model_facts(folder) or {}).get("n_layers")
        if retrieved is not None or "folder" not in source:
            return retrieved
        return (source_facts(source["folder"]) or {}).get("num_hidden_layers")

    def layer_count(self, model: str, setting: str) -> int:
        """Layers of a model, which planning by layers needs to know; `setting` asks for it."""
        known = self.known_layers(model)
        if known is None:
            raise MemlocError(
                f"{setting} plans by layers, and {model!r} isn't retrieved yet: set "
                f"model_sources.{model}.layers, or retrieve the model first with target "
                f"{self.places.pretrained().format(model=model)}"
            )
        return known

    def check_ratio(self, task: str) -> None:
        """Raise MemlocError where layer retraining would have no clean example to train on."""
        own = self.finds_noise or "noisy" in self.task(task)["columns"]
        settings.check_ratio(self.config["perturbation"]["ratio"], task, own)

    def retrain_jobs(self, model: str) -> list[str]:
        """The jobs, by the windows in their names, that retrain.tsv of one subject is made of."""
        batch = self.config["retraining"]["batch"]
        if batch in ("auto", "all"):
            return ["all"]
        layers = range(1, self.layer_count(model, f"retraining.batch: {batch}") + 1)
        if batch == "start":
            return [f"from-{start}" for start in layers]
        return [f"{start}-{end}" for start in layers for end in layers if start <= end]

    def whole_window_job(self, model: str, windows: str) -> str | None:
        """The retraining job that has the window of all layers, by which errors are normalised.

        None: the job `windows` has it itself.
        """
        if windows in ("all", "from-1"):
            return None
        if windows.startswith("from-"):
            return "from-1"
        whole = f"1-{self.layer_count(model, f'retraining window {windows} alone')}"
        return None if windows == whole else whole

    # --- what there is to compare --------------------------------------------------------

    @property
    def compared(self) -> bool:
        """Whether there are two techniques or two models to correlate."""
        return len(self.techniques) > 1 or len(self.models) > 1

    @property
    def depth_compared(self) -> bool:
        """Whether depth of memorisation has something to be correlated with."""
        return "generalisation" in self.stages or (
            "centroids" in self.stages and "probing" in self.techniques
        )

    @property
    def many_classes(self) -> list[str]:
        """The tasks of more than two classes."""
        return [task for task in self.task_names if len(self.tasks[task]["labels"]) > 2]

    @property
    def binarised(self) -> bool:
        """Whether a task is there with all its classes and with two."""
        return any(f"{task}-binary" in self.task_names for task in self.task_names)

    def table_paths(self, technique: str, **chosen: Any) -> list[str]:
        """The tables of one technique of these runs."""
        return self.run_paths(self.places.run(self.techniques[technique].table), **chosen)

    def example_paths(self) -> list[str]:
        """The tables per example of all runs of techniques of windows, in the order of the runs."""
        names = [self.techniques[name].examples for name in self.window_techniques]
        return [path for name in names for path in self.run_paths(self.places.run(name))]

    def component_table(self, component: str) -> str:
        """What a run's swapping of one component leaves behind."""
        return self.places.run("swap.tsv" if component == "layer" else f"swap-{component}.tsv")

    # --- stages --------------------------------------------------------------------------

    @cached_property
    def stage_tables(self) -> dict[str, list[str]]:
        """The summary tables that each further part of the study adds."""
        return {
            "centroids": ["events", "centroids"],
            "generalisation": ["generalisation", *(["detection"] if self.detects_noise else [])],
            "control": self.control.tables,
            NO_NOISE: ["no_noise"],
            "progression": ["progression"],
            DATA_SEEDS: ["variance"],
        }

    @cached_property
    def stages(self) -> list[str]:
        """The further parts of this study. Epochs that are kept make one, as do data seeds.

        The control setup is also a target of its own: once it has been run, it stays.
        """
        found = [*self.config["stages"], *(["progression"] if self.kept_epochs else [])]
        found += [DATA_SEEDS] if self.anew else []
        if not possible(self.config["control"], self.task_names):
            found = [stage for stage in found if stage != "control"]
        if "control" not in found and not self.finds_noise and self._control_is_finished():
            found.append("control")
        return [stage for stage in found if not self.given.why_no_stage(stage)]

    def _control_is_finished(self) -> bool:
        """Whether the target was run, and all models that this study needs are there.

        A model that the study has come to need is trained when the target is asked for again.
        """
        tables = [Path(self.places.summary(name)) for name in self.control.tables]
        return any(table.exists() for table in tables) and self.control.trained()

    def requested(self, targets: Collection[str]) -> list[str]:
        """Stages asked for by their own target, which are none of the study's."""
        if "control" in targets and self.given:
            raise MemlocError(f"target control: {self.given.why_no_stage('control')}")
        return [stage for stage in ("control",) if stage not in self.stages and stage in targets]

    def fetched_tasks(self, targets: Collection[str] = ()) -> list[str]:
        """The tasks whose data are needed: the study's, and those that the control setup adds."""
        names = [*self.task_names]
        if "control" in [*self.stages, *self.requested(targets)]:
            names += [self.config["control"]["auxiliary"], *self.control.tasks()]
        return list(dict.fromkeys(names))

    # --- tables --------------------------------------------------------------------------

    @cached_property
    def summary_tables(self) -> list[str]:
        """Names of the tables over tasks and models."""
        probing = "probing" in self.techniques
        names = ["layer_weights", "mcog", "one_layer", "training", "sensitivity"]
        names += ["given"] if self.given else []
        names += ["probe_f1", "label_f1"] if probing else []
        names += ["correlations"] if self.compared or self.depth_compared else []
        names += ["components", "component_mcog"] if len(self.components) > 1 else []
        names += [HEADS] if self.heads else []
        names += EXAMPLE_TABLES if "swapping" in self.techniques else []
        names += ["edits", "windows"] if self.window_techniques else []
        names += [table for stage in self.stages for table in self.stage_tables[stage]]
        if probing and "events" not in names:
            names.append("events")  # those of probes
        return names

    def page_tables(self, targets: Collection[str] = ()) -> list[str]:
        """Names of the tables on the page: the study's, and those of stages asked for."""
        further = self.requested(targets)
        return self.summary_tables + [t for stage in further for t in self.stage_tables[stage]]

    def correlated_tables(self) -> dict[str, str]:
        """Tables that correlations are made of as well, where they are made."""
        names = ("events", "generalisation")
        return {name: self.places.summary(name) for name in names if name in self.summary_tables}

    # --- figures -------------------------------------------------------------------------

    @cached_property
    def figures(self) -> list[dict[str, Any]]:
        """name, kind and wildcards of every figure."""
        return self.figures_of(["", *self.stages])

    def page_figures(self, targets: Collection[str] = ()) -> list[dict[str, Any]]:
        """The figures on the page: the study's, and those of stages asked for."""
        return self.figures + self.figures_of(self.requested(targets))

    @property
    def figure_formats(self) -> list[str]:
        """Endings of the files of every figure."""
        return self.config["figures"]["format"]

    def figure_files(self, figures: Collection[Mapping[str, Any]], *endings: str) -> list[str]:
        """Their files of some kinds, such as png; of all kinds where none is named."""
        return [
            f"{self.places.figure(figure['name'])}.{ending}"
            for ending in endings or self.figure_formats
            for figure in figures
        ]

    def figures_of(self, stages: Collection[str], asked: bool = False) -> list[dict[str, Any]]:
        """name, kind and wildcards of the figures of some stages; "" is the main part.

        asked: those that are drawn only where somebody asks for them.
        """
        return [
            dict(name=found.name.format(**words), kind=kind, wildcards=words)
            for stage in stages
            for kind, found in KINDS.items()
            if found.stage == stage and found.asked == asked
            for words in found.drawn_for(self)
        ]

    def _check_figure_names(self) -> None:
        """Refuse a study in which two figures would be one file: tasks a, a_b, models b_c, c."""
        seen: dict[str, Mapping[str, Any]] = {}
        for figure in self.figures + self.figures_of(["", *self.stages], asked=True):
            name, other = figure["name"], seen.get(figure["name"])
            if other:
                pair = " and ".join(
                    str(Path(*found["wildcards"].values())) for found in (other, figure)
                )
                raise MemlocError(
                    f"configuration: tasks, models: the figures of {pair} would both be "
                    f"{self.places.figure(name)}.png. Rename a task or model so that it holds "
                    "no '_'"
                )
            seen[name] = figure

    @cached_property
    def shown_names(self) -> dict[str, dict[str, Any]]:
        """names() of the study's tasks, for hundreds of figures."""
        return self.names()

    def whole(self) -> list[str]:
        """The files that the whole study ends in: page, tables and figures."""
        tables = [self.places.summary(name) for name in self.summary_tables]
        return [self.places.page, *tables, *self.figure_files(self.figures)]

    # --- names ---------------------------------------------------------------------------

    def names(self, tasks: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
        """Labels and categories of tasks and labels of models, for figures and the page."""
        shown = self.task_names if tasks is None else tasks
        return {
            "tasks": {
                name: {key: self.tasks[name][key] for key in ("label", "category")}
                for name in shown
            },
            "models": {
                name: {"label": self.model_source(name).get("label", name)} for name in self.models
            },
        }
