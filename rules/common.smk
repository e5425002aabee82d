"""What all rules share: the checked configuration, names, resources and fingerprints.

In: config. Out: RESULTS, RESOURCES, TASKS, MODELS, RUNS and the helpers below. Planning
imports neither torch nor transformers, and every cluster job parses these files again.
"""

import json
import os
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

WORKFLOW = Path(workflow.basedir, "workflow")
sys.path.insert(0, str(WORKFLOW))
# Scripts run in processes of their own, and find the library and each other this way.
os.environ.update(
    PYTHONPATH=os.pathsep.join([str(WORKFLOW), str(WORKFLOW / "scripts")]),
    MEMLOC_DRIVER=str(os.getpid()),  # jobs end with it
)

import planning
from leftovers import leftover_jobs, leftover_refusal
from memloc.study import config as settings
from memloc.budget.finished import SETUPS
from memloc.budget.stages import named_windows
from memloc.errors import MemlocError
from memloc.store.fingerprint import fingerprint
from memloc.study.tasks import load_task, local_files, task_params

planning.claim_folder(workflow)  # before anything else is read

SCHEMA = WORKFLOW / "schemas" / "config.schema.yaml"
try:
    settings.read_numbers(config, SCHEMA)
    settings.check_config(config, SCHEMA)
except MemlocError as error:
    raise WorkflowError(str(error)) from None


class Tasks(dict):
    """Task files by name; one that config doesn't list is read when a target asks for it."""

    def __missing__(self, name):
        folders = [*config["task_folders"], WORKFLOW / "tasks"]
        try:
            self[name] = load_task(name, folders, config["tasks_dir"])
        except MemlocError as error:
            raise WorkflowError(str(error)) from None
        return self[name]

    def __contains__(self, name):
        """Whether there is such a task, listed or not."""
        try:
            return self[name] is not None
        except WorkflowError:
            return False


# The study's tasks are read now, so that a faulty task file stops the plan.
TASKS = Tasks()
for name in config["tasks"]:
    TASKS[name]


def refuse_ratio(task):
    """Stop a plan that retrains on a task of which half or more is noisy."""
    natural = "noisy" in TASKS[task]["columns"]
    try:
        settings.check_ratio(config["perturbation"]["ratio"], task, natural)
    except MemlocError as error:
        raise WorkflowError(str(error)) from None


if "retraining" in config["techniques"]:
    for name in config["tasks"]:
        refuse_ratio(name)

RESULTS = config["results_dir"].rstrip("/")
RESOURCES = config["resources_dir"].rstrip("/")
MODELS = config["models"]
RUN = f"{RESULTS}/{{task}}/{{model}}/seed{{seed}}"
# What a technique localises in: a seed's run, such a run while it memorised, a control model.
KEPT_EPOCHS = sorted(config["training"]["keep_epochs"])
SETUP = f"{RESULTS}/{{task}}/{{model}}/{{setup}}"


def LOG(path):
    """Where a rule logs what it does for `path`; an absolute results_dir is mirrored too."""
    return settings.mirrored("logs", path)


def BENCHMARK(path):
    """Where the time a rule takes for `path` is kept."""
    return settings.mirrored("benchmarks", path)


wildcard_constraints:
    task="[^/]+",
    model="|".join(map(re.escape, config["model_sources"])),
    seed=r"\d+",
    setup=SETUPS,
    windows=r"all|from-\d+|\d+-\d+",
    half=r"[1-9]\d*",
    component="attention|mlp",


def CODE(script, *modules):
    """What a rule's results depend on in code: its script, and library modules with their imports.

    Snakemake's own code trigger goes by the script's time, and would re-run what was only touched.
    """
    return fingerprint(*modules, script=WORKFLOW / "scripts" / script)


def model_settings(model):
    """The configuration as it holds for one model."""
    return settings.model_settings(config, model)


def SEEDS(model):
    """The model seeds that are run for one model."""
    return model_settings(model)["model_seeds"]


def RUNS(pattern):
    """`pattern` for every task, model and seed of the study."""
    return [
        pattern.format(task=task, model=model, seed=seed)
        for task in config["tasks"]
        for model in MODELS
        for seed in SEEDS(model)
    ]


def model_source(model):
    """How config describes where a model comes from and how it reads."""
    return config["model_sources"][model]


def class_names(wildcards):
    """The task's labels in the order of their class ids."""
    return TASKS[wildcards.task]["labels"]


def reading(wildcards):
    """What decides how a model reads a task's texts."""
    return {
        "class_names": class_names(wildcards),
        "separator": model_source(wildcards.model).get("separator"),
        "max_length": config["data"]["max_length"],
    }


def checkpoint(which, ending=""):
    """Input function: theta_M1, theta_M2, theta_O or theta_F of what a technique localises in.

    While a run memorises, theta_M1 and theta_M2 are that epoch's; theta_O is the finished one.
    """

    def path(wildcards):
        folder = f"{RESULTS}/{wildcards.task}/{wildcards.model}"
        parts = re.fullmatch(r"(.+?)(?:/epoch(\d+))?", wildcards.setup)
        run, epoch = parts.groups()
        control = "control/" if run.startswith("control/") else ""
        places = {
            "theta_M1": f"{wildcards.setup}/perturbed/{'final' if epoch else 'memorised'}",
            "theta_M2": f"{wildcards.setup}/perturbed/final",
            "theta_O": f"{run}/original/final",
            "theta_F": f"{control}frozen/final",
        }
        return f"{folder}/{places[which]}{ending}"

    return path


def kept(which, folder):
    """An output folder that is a checkpoint; temporary where `keep_checkpoints` lets it go.

    `which`: theta_O, theta_M1, theta_M2, theta_F; any other name is kept by `all` alone.
    """
    final = which in ("theta_O", "theta_M2", "theta_F")
    stays = {"all": True, "final": final, "none": False}
    return folder if stays[config["keep_checkpoints"]] else temp(folder)


def setup_seed(wildcards):
    """The model seed of a technique's setup; control models have their model's first one."""
    found = re.match(r"seed(\d+)", wildcards.setup)
    return int(found[1]) if found else min(SEEDS(wildcards.model))


def training_recipe(model):
    """How one model is fine-tuned; which epochs are kept changes nothing in that."""
    chosen = model_settings(model)["training"]
    return {key: value for key, value in chosen.items() if key != "keep_epochs"}


def measuring(wildcards):
    """On which examples errors of windows are measured: swapping, rewinding and patching."""
    return {
        "reading": reading(wildcards),
        "clean_examples": config["swapping"]["clean_examples"],
        "precision": config["precision"],
        "seed": config["data_seed"],
    }


def training_params(wildcards):
    """What decides a run on the perturbed labels, theta_M1's threshold included."""
    return {
        "recipe": training_recipe(wildcards.model),
        "reading": reading(wildcards),
        "precision": config["precision"],
    }


def plain_training_params(wildcards):
    """The same of a run that has no theta_M1 (theta_O, theta_F)."""
    params = training_params(wildcards)
    params["recipe"].pop("memorised_above")
    return params


def perturbation_settings(name):
    """What decides which rows and labels are trained on, as keywords of `perturb_file`."""
    task = TASKS[name]
    return dict(
        task=name,
        labels=task["labels"],
        share=task["split"].get("share"),
        natural="noisy" in task["columns"],
        ratio=config["perturbation"]["ratio"],
        data_seed=config["data_seed"],
        max_train=config["data"]["max_train"],
        max_heldout=config["data"]["max_heldout"],
    )


def retraining_recipe(wildcards):
    """How windows of one model are retrained."""
    chosen = model_settings(wildcards.model)["retraining"]
    return {key: value for key, value in chosen.items() if key != "batch"}


def probe_recipe():
    """How a probe is built and trained."""
    others = ("seeds", "states", "batch_tokens")
    return {key: value for key, value in config["probing"].items() if key not in others}


# Half/half trainings of a task, by number.
HALVES = list(range(1, config["generalisation"]["halves"] + 1))


def split_settings(wildcards):
    """What decides which examples a half trains on, as keywords of `write_half`."""
    chosen = ("splits", "stratify", "labels")
    return {
        "task": wildcards.task,
        "class_names": class_names(wildcards),
        "data_seed": config["data_seed"],
        **{key: config["generalisation"][key] for key in chosen},
    }


def half_recipe(wildcards):
    """How a model is trained on a half."""
    chosen = model_settings(wildcards.model)["generalisation"]
    others = ("halves", "splits", "stratify", "labels")
    return {key: value for key, value in chosen.items() if key not in others}


def known_layers(model):
    """Layers of a model: as config says, else its config.json or manifest; None: not known yet."""
    source = model_source(model)
    if "layers" in source:
        return source["layers"]
    for path, key in [
        (Path(RESOURCES, "models", model, "manifest.json"), "n_layers"),
        (Path(source.get("folder", RESOURCES), "config.json"), "num_hidden_layers"),
    ]:
        if path.exists() and key in (facts := json.loads(path.read_text())):
            return facts[key]
    return None


def checked_windows(wildcards):
    """Input function: the data of a retraining job, once its windows are known to exist."""
    layers = known_layers(wildcards.model)
    refuse_ratio(wildcards.task)
    try:
        if layers is not None:
            named_windows(wildcards.windows, layers)
    except MemlocError as error:
        raise WorkflowError(str(error)) from None
    return f"{RESULTS}/{wildcards.task}/perturbed.parquet"


def layer_count(model, setting):
    """Layers of a model, which planning by layers needs to know; `setting` is what asks for it."""
    known = known_layers(model)
    if known is None:
        raise WorkflowError(
            f"{setting} plans by layers, and {model!r} isn't retrieved yet: set "
            f"model_sources.{model}.layers, or retrieve the model first with target "
            f"{RESOURCES}/models/{model}"
        )
    return known


def retrain_jobs(model):
    """The jobs, by the windows in their names, that retrain.tsv of one run is made of."""
    batch = config["retraining"]["batch"]
    if batch in ("auto", "all"):
        return ["all"]
    layers = range(1, layer_count(model, f"retraining.batch: {batch}") + 1)
    if batch == "start":
        return [f"from-{start}" for start in layers]
    return [f"{start}-{end}" for start in layers for end in layers if start <= end]


def retrained(ending):
    """Input function: what the retraining jobs of one run leave behind."""
    return lambda w: expand(
        f"{SETUP}/retrain/{{windows}}{ending}", windows=retrain_jobs(w.model), **w
    )


def mem(megabytes):
    """Memory in MB that grows with every attempt."""
    return lambda wildcards, attempt: int(megabytes * attempt)


def minutes(count):
    """Run time in minutes that grows with every attempt."""
    return lambda wildcards, attempt: int(count * attempt)


def refuse_beside_leftovers():
    """Stop a run on Slurm while jobs of an earlier driver still work in its folder."""
    if workflow.executor_plugin.name != "slurm":
        return
    reason = leftover_refusal(leftover_jobs(workflow.workdir_init))
    if reason:
        raise WorkflowError(reason)


def record_results_left_behind():
    """Record the settings of results whose own driver could not: it was killed."""
    names = planning.record_unrecorded(workflow)
    if names:
        logger.warning(
            f"{len(names)} results had no record of their settings, as a killed driver leaves them. "
            f"They are taken as made with today's: {', '.join(names[:3])}"
            + (", …" if names[3:] else "")
        )
