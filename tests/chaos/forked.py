"""A tiny study that is run in one program: each job in a fork of it, torch and all else read."""

import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pandas as pd
import torch
from transformers import BertConfig, BertForSequenceClassification

from in_process import planned_jobs, read_beforehand, run_script
from mutations import Disk
from study import write_study, write_task

ROOT = Path(__file__).resolve().parents[2]
TRAINING = {"epochs": 15, "learning_rate": 0.003, "batch_size": 4, "memorised_above": 0.95}
STUDY = dict(  # with a job of every rule
    tasks=["other", "other-binary"],
    stages=["control", "centroids", "generalisation", "no_noise"],
    model_seeds=[1, 2],
    swapping={"components": ["layer", "attention", "mlp", "heads"]},
    perturbation={"ratio": 0.25},
    training={**TRAINING, "keep_epochs": [1]},
    retraining={"epochs": 2},
    probing={"seeds": [1], "epochs": 3, "choose_after": 1},
    control={
        "auxiliary": "aid",
        "auxiliary_learning_rate": 1.0e-3,
        "validation_tasks": ["other-binary"],
        "learning_rates": [0.01],
        "training": {"epochs": 2},
    },
)
QUICK = STUDY | {
    "tasks": ["toy"],
    "techniques": ["swapping", "retraining"],
    "stages": [],
    "model_seeds": [1],
    "swapping": {"components": ["layer"]},
}
TARGET = "results/summary/mcog.tsv"  # of the quick one
MEMORISED = 0.9  # accuracy of theta_M2 on noisy examples; else swaps of layers tell nothing apart
FINISHED = "finished"  # a file in the folder of a study that is used again
PATIENCE = 120  # seconds for what takes two


@contextmanager
def finished_study(whole: Path, quick: bool) -> Iterator[list]:
    """The jobs of the study in folder `whole`, which is run undisturbed if it isn't yet."""
    import_everything()
    finished = (whole / FINISHED).exists()
    if not finished:
        shutil.rmtree(whole, ignore_errors=True)
        write(whole, QUICK if quick else STUDY)
    os.chdir(whole)
    command = {"configfile": "study.yaml", "snakefile": "Snakefile"}
    command |= {"target": TARGET} if quick else {}
    with planned_jobs(command, forceall=True) as jobs:
        if not finished:
            finish(jobs, whole)
        yield jobs


def write(folder: Path, study: dict) -> Path:
    """The study's files; its model is drawn so widely that it memorises within a few epochs."""
    write_study(folder, **study)
    model = folder / "tiny-bert"
    config = BertConfig.from_pretrained(
        model, initializer_range=0.2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.01
    )
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(model)
    for name in ("other", "aid"):
        write_task(folder / "my-tasks", name, ("a", "b", "c"))
    with open(folder / "my-tasks/other.yaml", "a") as task:
        task.write("binary_labels: [a, b]\n")
    return folder


def import_everything() -> None:
    """For all forks to have."""
    sys.path[:0] = [str(ROOT / "workflow/scripts")]
    os.environ["MEMLOC_ORPHANS"] = "run"
    for name in ("jobs", "offline"):
        import_module(name)
    read_beforehand()
    import_module("memloc.store.provenance").memloc_version()  # asks git, once


def finish(jobs: list, whole: Path) -> None:
    """Run the study undisturbed, and see that theta_M2 has memorised."""
    (whole / "tmp").mkdir()
    for job in jobs:
        code, _ = fork(job, whole)
        if code:
            raise RuntimeError(f"{job.rule.name}: status {code}\n{said(whole)}")
    for path in (whole / "results").glob("*/*/seed*/perturbed/history.tsv"):
        reached = pd.read_csv(path, sep="\t").noisy_accuracy.iloc[-1]
        if reached <= MEMORISED:
            raise RuntimeError(f"{path}: theta_M2 has not memorised ({reached})")
    (whole / FINISHED).touch()


def fork(
    job, folder: Path, last: int | None = None, power: bool = False, end: bool = False
) -> tuple[int, int]:
    """Run a job in a process of its own; its exit status and the changes it made.

    `last`: it is killed before this change; `end`: the power fails when it has ended.
    """
    count = folder.with_suffix(".count")
    process = os.fork()
    if not process:
        status = 1
        try:
            signal.alarm(PATIENCE)
            os.chdir(folder)
            said = os.open(folder.with_suffix(".said"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(said, 1), os.dup2(said, 2)
            tempfile.tempdir = os.environ["TMPDIR"] = str(folder / "tmp")
            disk = Disk(folder, last, power)
            disk.install()
            run_script(job)
            disk.busy = True
            disk.lose_power() if end else None
            count.write_text(str(disk.count))
            status = 0
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    return code, int(count.read_text()) if code == 0 else 0


def said(folder: Path) -> str:
    return folder.with_suffix(".said").read_text(errors="replace")[-1500:]
