"""Snakemake's jobs without Snakemake's processes: the same rules and scripts in seconds.

A job of Snakemake starts two Pythons, and reads the workflow and torch again. Here one program
has read torch, and does each command in a fork: it reads the workflow, plans, and runs the jobs'
scripts one after the other as Snakemake would call them.

    python in_process.py COMMANDS.json RESULTS.json

COMMANDS: a list of {name, folder, snakefile, configfile, config, target}; RESULTS: name -> {rc,
said, seconds}.
"""

import gc
import json
import logging
import os
import pkgutil
import runpy
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import warm

ROOT = Path(__file__).resolve().parents[2]


def main(commands: str, results: str) -> None:
    """Run all commands, as many at once as there are processors."""
    read_beforehand()
    waiting = json.loads(Path(commands).read_text())
    running: dict[int, tuple[dict, Path, float]] = {}
    found = {}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            command = waiting.pop(0)
            said = Path(results).with_name(f"{command['name']}.log")
            running[_begin(command, said)] = (command, said, time.monotonic())
        process, status = os.wait()
        command, said, since = running.pop(process)
        found[command["name"]] = {
            "rc": os.waitstatus_to_exitcode(status),
            "said": said.read_text(errors="replace"),
            "seconds": time.monotonic() - since,
        }
    Path(results).write_text(json.dumps(found))


def read_beforehand() -> None:
    """Read all that a plan or a job may need, memloc's modules among it, for all forks to have."""
    sys.path[:0] = [str(ROOT / "workflow")]
    import memloc

    for name in warm.READ:
        import_module(name)
    for module in pkgutil.walk_packages(memloc.__path__, "memloc."):
        import_module(module.name)
    from memloc.store.fingerprint import fingerprint

    for script in (ROOT / "workflow").rglob("*.py"):
        fingerprint(script=script)
    gc.freeze()  # no fork looks for garbage among it, and copies it by looking


def _begin(command: dict, said: Path) -> int:
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        code = _run(command)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(command: dict) -> int:
    """Plan and run one command; the exit status. MemlocErrors of the plan are said in one line."""
    from snakemake.exceptions import WorkflowError

    os.chdir(command["folder"])
    try:
        with planned_jobs(command) as jobs:
            for job in jobs:
                run_script(job)
    except WorkflowError as error:
        print(f"WorkflowError: {error}")
        return 1
    missing = [path for path in [command["target"]] if not Path(path).exists()]
    print("missing", missing) if missing else None
    return bool(missing)


@contextmanager
def planned_jobs(command: dict, forceall: bool = False) -> Iterator[list]:
    """The jobs with a script that a command needs, in an order in which they can run."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import (
        ConfigSettings,
        DAGSettings,
        OutputSettings,
        Quietness,
        ResourceSettings,
    )

    config = ConfigSettings(
        config=command.get("config", {}), configfiles=[Path(command["configfile"])]
    )
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        found = api.workflow(
            ResourceSettings(cores=1),
            config_settings=config,
            snakefile=Path(command["snakefile"]),
        )
        found.dag(DAGSettings(targets={command["target"]} if "target" in command else set()))
        workflow = found._workflow
        workflow._prepare_dag(
            forceall=forceall, ignore_incomplete=True, lock_warn_only=True, nolock=True
        )
        workflow._build_dag()
        jobs = (job for level in workflow.dag.toposorted() for job in level)
        yield [job for job in jobs if job.rule.script and workflow.dag.needrun(job)]


def run_script(job) -> None:
    """Run a job's script with what Snakemake would give it."""
    for path in (*job.output, *job.log):
        Path(str(path)).parent.mkdir(parents=True, exist_ok=True)
    script = ROOT / "workflow/scripts" / Path(str(job.rule.script)).name
    snakemake = SimpleNamespace(
        input=job.input._plainstrings(),
        output=job.output._plainstrings(),
        params=job.params,
        wildcards=job.wildcards,
        threads=1,
        resources=dict(job.resources.items()),
        log=job.log._plainstrings(),
        config=job.rule.workflow.config,
        rule=job.rule.name,
        scriptdir=str(script.parent),
    )
    sys.path[:0] = [str(script.parent)]
    logging.getLogger().handlers.clear()  # the last job's
    runpy.run_path(str(script), {"snakemake": snakemake})


if __name__ == "__main__":
    main(*sys.argv[1:])
