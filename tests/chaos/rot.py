"""Let one file of every kind that a job reads decay, and see that the job refuses it by name.

    make rot SEED=0

runs the tiny study once (or takes a finished one, --folder). Then, for every rule and every kind of
file that it reads, one file has a random bit flipped, and then its end cut off; times stay as they
are. What the rule's script does before it computes must refuse both. For every rule one such job is
run for real. Prints what was tried; exits with 1 when anything was taken.
"""

import argparse
import os
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any

from in_process import read_beforehand, run_script
from memloc.errors import MemlocError
from memloc.store.records import check
from study import snakemake, write_study

ROOT = Path(__file__).resolve().parents[2]
UNREAD = ("retrieve_task",)  # reads a user's own files, which have no record


@dataclass
class Tally:
    """What was tried, and what was taken though it had decayed."""

    kinds: int = 0
    tried: int = 0
    jobs: int = 0
    taken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        verdict = "TAKEN" if self.taken else "all refused by name"
        lines = [
            f"kinds of files: {self.kinds}, counted for each rule that reads them",
            f"decayed:        {self.tried} times a bit flipped, or the end cut off",
            f"jobs run:       {self.jobs}, one of each rule",
            f"verdict:        {verdict}",
        ]
        return "\n".join([*lines, *self.taken])


def jobs_of(folder: Path) -> list[Any]:
    """All jobs of a finished study that read something, as Snakemake plans them."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import (
        ConfigSettings,
        DAGSettings,
        OutputSettings,
        Quietness,
        ResourceSettings,
    )

    os.chdir(folder)
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        config = ConfigSettings(configfiles=[Path("study.yaml")])
        found = api.workflow(
            ResourceSettings(cores=1), config_settings=config, snakefile=Path("Snakefile")
        )
        found.dag(DAGSettings())
        workflow = found._workflow
        workflow._prepare_dag(
            forceall=False, ignore_incomplete=True, lock_warn_only=True, nolock=True
        )
        workflow._build_dag()
        jobs = sorted(workflow.dag.jobs, key=lambda job: str(job.output))
        read = [job for job in jobs if job.rule.script and job.rule.name not in UNREAD]
        for job in read:  # they are worked out once, from files that are whole
            assert job.params is not None and job.resources
        return read


def read_by(job: Any) -> Iterator[tuple[Path, Path]]:
    """(what is checked, one file of it) for all that a job reads, provenance included."""
    for path in map(Path, map(str, job.input)):
        inner = sorted(p for p in path.rglob("[!.]*") if p.is_file()) if path.is_dir() else [path]
        yield from ((path, file) for file in inner)
    beside = [path for paths in job.params.get("records", {}).values() for path in paths]
    for path in [*beside, *job.params.get("manifests", {}).values()]:
        yield from ((Path(found), Path(found)) for found in glob(path))


def kind(path: Path, file: Path) -> str:
    """A file's kind: its name, but for the numbers and names of what it is about."""
    name = re.sub(r"\d+", "N", file.name)
    if "figures" in file.parts:
        name = f"figure{file.suffix}"
    return f"{path.name}/{name}" if path != file else name


@contextmanager
def decayed(file: Path, draw: random.Random, cut: bool) -> Iterator[None]:
    """A file with one bit flipped or its end cut off, and as it was afterwards."""
    content, times = file.read_bytes(), file.stat()
    bad, place = bytearray(content), draw.randrange(max(len(content), 1))
    if cut or not content:
        bad = bad[:place] if content else bytearray(b"\n")
    else:
        bad[place] ^= 1 << draw.randrange(8)
    try:
        file.write_bytes(bad)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        yield
    finally:
        file.write_bytes(content)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def refusal(path: Path) -> str:
    """What is said of a result before it is read; nothing if it is taken."""
    try:
        check(path)
    except MemlocError as error:
        return str(error)
    return ""


def run_for_real(job: Any) -> str:
    """What a job's script says, run in a process of its own; nothing if it ended well."""
    log = Path(str(job.log[0]))
    process = os.fork()
    if not process:
        code = 1
        try:
            with open(os.devnull, "w") as nothing:
                os.dup2(nothing.fileno(), 2)
            run_script(job)
            code = 0
        except SystemExit as error:
            code = 1 if error.code else 0
        finally:
            os._exit(code)
    return log.read_text() if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) else ""


def sweep(folder: Path, seed: int) -> Tally:
    """Let files of a finished study decay, one after the other."""
    read_beforehand()
    draw, tally = random.Random(seed), Tally()
    seen: dict[tuple[str, str], list] = {}
    for job in jobs_of(folder):
        for path, file in read_by(job):
            seen.setdefault((job.rule.name, kind(path, file)), []).append((job, path, file))
    tally.kinds = len(seen)
    for (rule, _), chances in seen.items():
        _, path, file = draw.choice(chances)
        for cut in (False, True):
            with decayed(file, draw, cut):
                tally.tried += 1
                if str(file) not in refusal(path):
                    tally.taken.append(f"{rule}: {file}, {'cut' if cut else 'flipped'}")
    for rule in dict.fromkeys(rule for rule, _ in seen):
        job, _, file = draw.choice([one for key in seen if key[0] == rule for one in seen[key]])
        with decayed(file, draw, cut=False):
            tally.jobs += 1
            if str(file) not in run_for_real(job):
                tally.taken.append(f"{rule}: {file}, by a job")
    return tally


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the files and bits")
    parser.add_argument("--folder", type=Path, help="a finished tiny study")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memloc-rot-") as temporary:
        folder = chosen.folder or write_study(Path(temporary))
        if not chosen.folder:
            snakemake(folder)
        tally = sweep(folder, chosen.seed)
        os.chdir(ROOT)
    print(tally)
    return 1 if tally.taken else 0


if __name__ == "__main__":
    sys.exit(main())
