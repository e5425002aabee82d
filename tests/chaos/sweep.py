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
import re
import shutil
import signal
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from alike import OF_TIME, content
from forked import ROOT, finished_study, fork, said

DRAFT = re.compile(r"\..+\.\w+-\d+-\w+")


@dataclass
class Tally:
    """Points of one kind of job, and what was wrong at them."""

    points: int = 0
    seconds: float = 0.0
    stuck: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)


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
    needless = shutil.ignore_patterns("__pycache__")
    shutil.copytree(whole, folder, symlinks=True, ignore=needless)
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
            raise RuntimeError(f"{name} was not killed at change {last} of {count}\n{said(folder)}")
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


def one_of_each(jobs: list, only: str) -> list:
    """The last job of every rule whose name matches: in the main study before the control setup."""
    found = {job.rule.name: job for job in jobs if re.search(only, job.rule.name)}
    return list(found.values())


def run(folder: Path, quick: bool, only: str, most: int, power: bool) -> dict[str, Tally]:
    """Sweep one job of each rule that matches `only`."""
    whole, found = folder / "whole", {}
    with finished_study(whole, quick) as jobs:
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
