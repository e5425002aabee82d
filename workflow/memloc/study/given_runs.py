"""The runs that a configuration gives, read and checked against the study.

Planning imports this module: no torch, no pandas.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.store.files import read_record
from memloc.store.records import read
from memloc.study.admission import refuse_no_model

THETAS = ("theta_M2", "theta_M1", "theta_O", "theta_F")
WHERE = "configuration: given:"
BRING = "Bring the adapter anew, as peft's save_pretrained writes it"
Run = Mapping[str, Any]


def plain_run(run: Run) -> Run:
    """A run as the plan uses it: its seed, its list of what to train, and sources as mappings."""
    sources = {name: run[name] for name in THETAS if name in run}
    mapped = {n: {"folder": s} if isinstance(s, str) else dict(s) for n, s in sources.items()}
    facts = dict(task=run["task"], model=run["model"], seed=run.get("seed", 1))
    return facts | {"train_missing": sorted(run.get("train_missing", []))} | mapped


def key_of(run: Run) -> tuple[str, str, int]:
    """task, model and seed of a run."""
    return run["task"], run["model"], run["seed"]


def named(key: Sequence[Any]) -> str:
    """How messages name a run, by its key."""
    return f"{key[0]}/{key[1]}/seed{key[2]}"


def check_runs(runs: Sequence[Run], study: Any) -> None:
    """Raise MemlocError unless the runs given are those of the study, and can be studied."""
    _check_names(runs, [key_of(run) for run in study.run_list()])
    for run in runs:
        where = f"{WHERE} {named(key_of(run))}"
        _check_alike(run, runs[0], where)
        for theta in (name for name in THETAS if name in run):
            if "folder" in run[theta]:
                if taken_content(copy_of(study.places, theta, run), run[theta]["folder"]) is None:
                    check_folder(run[theta]["folder"], f"{where}: {theta}")
                _check_apart(run, theta, runs, study.places.results)
        if "theta_F" in run:
            _check_one_frozen(run, runs)
        _check_adapter(run, study.model_settings(run["model"])["training"].get("lora"))
    _check_setting(study)


def _check_names(runs: Sequence[Run], asked: Sequence[Sequence[Any]]) -> None:
    """Raise MemlocError unless each run of the study is given once, and no other."""
    keys = [key_of(run) for run in runs]
    for key in keys:
        if key not in asked:
            raise MemlocError(
                f"{WHERE} {named(key)} is none of the study's runs ({_some(asked)}): correct it, "
                "or set tasks, models and model_seeds to what is given"
            )
        if keys.count(key) > 1:
            raise MemlocError(f"{WHERE} {named(key)} is named twice: give runs seeds of their own")
    for wanted in asked:
        if wanted not in keys:
            raise MemlocError(
                f"{WHERE} {named(wanted)} is a run of the study and isn't given: name its "
                "theta_M2, or set tasks, models and model_seeds to what is given (a study is given "
                "all of its runs, or none)"
            )


def _some(keys: Sequence[Sequence[Any]]) -> str:
    return ", ".join(map(named, keys[:3])) + (", …" if keys[3:] else "")


def _check_alike(run: Run, first: Run, where: str) -> None:
    """Raise MemlocError unless a run has the same checkpoints as the first one."""
    for theta in run["train_missing"]:
        if theta in run:
            raise MemlocError(f"{where}: train_missing names {theta}, which is given: take it out")
    ours, theirs = ([n for n in THETAS if n in one] + one["train_missing"] for one in (run, first))
    if ours != theirs:
        raise MemlocError(
            f"{where} has {', '.join(ours)}, but {named(key_of(first))} has {', '.join(theirs)}: "
            "give all runs of a study the same checkpoints and train_missing"
        )


def copy_of(places: Any, theta: str, run: Run) -> str:
    """Where a run's checkpoint is taken in."""
    return str(places.checkpoint(theta, dict(run, subject=f"seed{run['seed']}")))


def taken_content(copy: str, folder: str) -> str | None:
    """The hash of what a given folder held when it was taken in; None where it wasn't, or differs.

    copy: where it was taken in. Where the folder is there, what it holds now counts alone. Where it
    is gone, as with a bundle's receiver, the record of the copy says what it was.
    """
    record = None if Path(folder).expanduser().exists() else read(copy)
    made = record["made_with"] if record else {}
    if made.get("settings.source.folder") != json.dumps(folder):
        return None
    return str(json.loads(made["settings.source.content"]))


def check_folder(name: str, where: str) -> None:
    """Raise MemlocError where a folder holds no model."""
    if not Path(name, "adapter_config.json").expanduser().exists():
        refuse_no_model(name, where)


def _check_apart(run: Run, theta: str, runs: Sequence[Run], results: str) -> None:
    """Raise MemlocError for a folder among the results of any run of the study: jobs replace it."""
    folder = Path(run[theta]["folder"]).expanduser().resolve()
    for one in runs:
        if folder.is_relative_to(Path(results, one["task"], one["model"]).resolve()):
            raise MemlocError(
                f"{WHERE} {named(key_of(run))}: {theta}: {run[theta]['folder']} lies where the "
                f"results of {named(key_of(one))} go, and would be lost: move it elsewhere, or "
                "name another results_dir"
            )


def _check_one_frozen(run: Run, runs: Sequence[Run]) -> None:
    """Raise MemlocError where seeds of one task and model name different theta_F."""
    pair = key_of(run)[:2]
    if any(key_of(one)[:2] == pair and one["theta_F"] != run["theta_F"] for one in runs):
        raise MemlocError(
            f"{WHERE} {named(key_of(run))}: theta_F is one for all seeds of a task and model: name "
            "the same one in each"
        )


def _check_adapter(run: Run, lora: Mapping[str, Any] | None) -> None:
    """Raise MemlocError where what train_missing names would be built otherwise than theta_M2.

    lora: the settings that it would be trained by. A theta_M2 of the hub is compared when it is
    taken in, and so are targets.
    """
    if not run["train_missing"] or "folder" not in run["theta_M2"]:
        return
    where = f"{WHERE} {named(key_of(run))}: theta_M2"
    folder = Path(run["theta_M2"]["folder"]).expanduser()
    adapter = read_record(folder / "adapter_config.json", BRING)
    ours, theirs = adapter and adapter.get("r"), lora and lora["r"]
    if ours == theirs:
        return
    missing = " and ".join(run["train_missing"])
    have = f"an adapter of rank {ours}" if adapter else "no adapter"
    built = f"an adapter of rank {theirs}" if lora else "a whole model"
    raise MemlocError(
        f"{where} is {have}, and train_missing would train {missing} as {built}: set training.lora "
        "to what theta_M2 was trained with (null for a whole model), or leave out train_missing"
    )


def _check_setting(study: Any) -> None:
    """Raise MemlocError for what makes no sense beside given runs."""
    for task in study.task_names:
        if "noisy" not in study.task(task)["columns"]:
            raise MemlocError(
                f"{WHERE} nothing says which rows of task {task!r} the given model was trained on "
                "with noisy labels: mark them in the data, and name that column as columns.noisy "
                f"in {task}.yaml"
            )
    for key, value in (("training.keep_epochs", study.kept_epochs), ("data_seeds", study.anew)):
        if value:
            raise MemlocError(
                f"configuration: {key} means nothing beside given runs, which are trained already, "
                "on the task's own noise: leave it out"
            )
