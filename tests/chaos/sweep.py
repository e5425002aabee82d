"""Kill every kind of job before each change that it makes on the disk, and run it again.

    make sweep

A tiny study, whose theta_M2 has memorised, is run once undisturbed. Then one job of each rule is
killed (SIGKILL) before its first change on the disk, run again and compared with the undisturbed
study, file by file; then before its second change; and so on. One program has read torch, and
every run is a fork of it. With --power, what was not synced is lost with the process (a model of a
power failure, see mutations.py). Exits with 1 if a job fails when it is run again, or leaves
anything else than undisturbed.
"""

import argparse
import json
import math
import os
import pkgutil
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pandas as pd
import torch
from transformers import BertConfig, BertForSequenceClassification

from alike import OF_TIME, content
from in_process import planned_jobs, run_script
from mutations import Disk
from study import write_study, write_task

ROOT = Path(__file__).resolve().parents[2]
TRAINING = {"epochs": 9, "learning_rate": 0.003, "batch_size": 4, "memorised_above": 0.95}
STUDY = dict(
    tasks=["toy", "other"],
    stages=["control", "centroids", "generalisation"],
    training={**TRAINING, "keep_epochs": [1]},
    retraining={"epochs": 2},
    probing={"seeds": [1], "epochs": 3, "choose_after": 1},
    control={
        "auxiliary": "aid",
        "auxiliary_learning_rate": 1.0e-3,
        "validation_tasks": ["other"],
        "learning_rates": [0.01],
        "training": {"epochs": 2},
    },
)
QUICK = STUDY | {"tasks": ["toy"], "techniques": ["swapping", "retraining"], "stages": []}
MEMORISED = 0.9  # accuracy of theta_M2 on noisy examples; else swaps of layers tell nothing apart
FINISHED = "finished"  # a file in the folder of a study that is used again
PATIENCE = 120  # seconds for what takes two
DRAFT = re.compile(r"\..+\.\w+-\d+-\w+")


@dataclass
class Tally:
    """Points of one kind of job, and what was wrong at them."""

    points: int = 0
    seconds: float = 0.0
    stuck: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)


def write(folder: Path, study: dict) -> Path:
    """The study's files; its model is drawn so widely that it memorises within a few epochs."""
    write_study(folder, **study)
    model = folder / "tiny-bert"
    config = BertConfig.from_pretrained(
        model, initializer_range=0.2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.01
    )
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(model)
    write_task(folder / "my-tasks", "other")
    write_task(folder / "my-tasks", "aid", ("a", "b", "c"))
    return folder


def import_everything() -> None:
    """For all forks to have."""
    import memloc

    sys.path[:0] = [str(ROOT / "workflow/scripts")]
    os.environ["MEMLOC_ORPHANS"] = "run"
    for name in ("torch", "transformers.models.auto.modeling_auto", "jobs", "offline"):
        import_module(name)
    for module in pkgutil.walk_packages(memloc.__path__, "memloc."):
        import_module(module.name)
    import_module("memloc.store.provenance").memloc_version()  # asks git, once


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


def remove_outputs(job) -> None:
    """As Snakemake does before it runs a job again."""
    for path in map(Path, map(str, job.output)):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of everything that a study keeps; of what is hidden, drafts and scratch."""
    found = {}
    for part in ("results", "resources", "tmp"):
        for path in (folder / part).rglob("*"):
            name = path.relative_to(folder)
            hidden = [part for part in name.parts if part.startswith(".")]
            kept = all(part == ".scratch" or DRAFT.fullmatch(part) for part in hidden)
            if kept and path.is_file():
                state = path.stat()
                found[str(name)] = (state.st_size, state.st_mtime_ns)
    return found


def differences(whole: Path, folder: Path, before: dict) -> Iterator[str]:
    """What a run again has left otherwise than the undisturbed study has it."""
    after = files(folder)
    yield from (f"{name}: only without a kill" for name in sorted(before.keys() - after.keys()))
    yield from (f"{name}: left over" for name in sorted(after.keys() - before.keys()))
    for name in sorted(after.keys() & before.keys()):
        if after[name] == before[name] or Path(name).name in OF_TIME:
            continue
        if read(whole / name) != read(folder / name):
            yield f"{name}: contents differ"


def read(path: Path) -> object:
    """What is compared of a file: records without seconds, and without the commit of memloc."""
    if path.suffix != ".json":
        return content(path)
    record = json.loads(path.read_text())
    return {key: value for key, value in record.items() if key not in ("seconds", "memloc")}


def copied(whole: Path, folder: Path) -> dict[str, tuple[int, int]]:
    """A fresh copy of the finished study to work in; its files."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder, symlinks=True)
    os.chdir(folder)
    return files(folder)


def sweep(job, whole: Path, folder: Path, most: int, power: bool) -> Tally:
    """Kill a job at each of its changes, or at `most` of them, in a copy of the finished study."""
    tally, began, name = Tally(), time.monotonic(), job.rule.name
    before = copied(whole, folder)
    remove_outputs(job)
    code, count = fork(job, folder, power=power, end=power)
    if code or (wrong := list(differences(whole, folder, before))):
        raise RuntimeError(f"{name}, undisturbed: {code or wrong}\n{said(folder)}")
    every = math.ceil(count / most)
    for last in range(1 + zlib.crc32(name.encode()) % every, count + 1, every):
        remove_outputs(job)
        if fork(job, folder, last, power)[0] != -signal.SIGKILL:
            raise RuntimeError(f"{name} was not killed at change {last} of {count}")
        remove_outputs(job)
        code, _ = fork(job, folder)
        tally.points += 1
        if code:
            tally.stuck.append(f"change {last} of {count}: status {code}\n{said(folder)}")
        elif wrong := list(differences(whole, folder, before)):
            tally.different.append(f"change {last} of {count}: {wrong}")
        if code or wrong:
            before, wrong = copied(whole, folder), []
    tally.seconds = time.monotonic() - began
    return tally


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


def one_of_each(jobs: list, only: str) -> list:
    """The last job of every rule whose name matches: in the main study before the control setup."""
    found = {job.rule.name: job for job in jobs if re.search(only, job.rule.name)}
    return list(found.values())


def run(folder: Path, quick: bool, only: str, most: int, power: bool) -> dict[str, Tally]:
    """Sweep one job of each rule that matches `only`."""
    study, target = (QUICK, "results/summary/mcog.tsv") if quick else (STUDY, None)
    import_everything()
    whole = folder / "whole"
    finished = (whole / FINISHED).exists()
    if not finished:
        shutil.rmtree(whole, ignore_errors=True)
        write(whole, study)
    os.chdir(whole)
    command = {"configfile": "study.yaml", "snakefile": "Snakefile"}
    command |= {"target": target} if target else {}
    with planned_jobs(command, forceall=True) as jobs:
        if not finished:
            finish(jobs, whole)
        found = {}
        for job in one_of_each(jobs, only):
            name = job.rule.name
            found[name] = sweep(job, whole, folder / f"copy-{os.getpid()}", most, power)
            report(name, found[name])
    return found


def report(name: str, tally: Tally) -> None:
    """A line of one kind of job, and what was wrong with it."""
    line = (name, tally.points, len(tally.stuck), len(tally.different), f"{tally.seconds:.0f}")
    print(*line, sep="\t", flush=True)
    for wrong in (*tally.stuck, *tally.different):
        print("  ", wrong, flush=True)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rules whose names match this pattern")
    parser.add_argument("--points", type=int, default=10**6, help="of a rule, at most")
    parser.add_argument("--quick", action="store_true", help="a smaller study")
    parser.add_argument("--power", action="store_true", help="lose what isn't synced")
    parser.add_argument("--folder", type=Path, help="where to run; a study there is used again")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memloc-sweep-") as temporary:
        folder = (chosen.folder or Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        print("rule", "points", "stuck", "different", "seconds", sep="\t", flush=True)
        found = run(folder, chosen.quick, chosen.only, chosen.points, chosen.power)
        os.chdir(ROOT)
    total = Tally()
    for tally in found.values():
        total.points += tally.points
        total.seconds += tally.seconds
        total.stuck += tally.stuck
        total.different += tally.different
    report("all", total)
    return 1 if total.stuck or total.different else 0


if __name__ == "__main__":
    sys.exit(main())
