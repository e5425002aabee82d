"""Snakemake's plan as the budget sees it: with `part`, what reads Snakemake's own objects.

The budget sits in a handler on Snakemake's logger, which the workflow adds while it is read: it
needs no installation and no option, and every profile has it. A logger plugin would have to be
installed beside Snakemake and named by every profile, and a profile that names a plugin which
isn't installed is refused before anything is planned.
"""

import atexit
import logging
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, TypeVar

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.exceptions import ApiError, WorkflowError
from snakemake.io import is_flagged
from snakemake.iocontainers import Wildcards
from snakemake.logging import logger
from snakemake.resources import Resource
from snakemake_interface_executor_plugins.settings import ExecMode
from snakemake_interface_logger_plugins.common import LogEvent

from driver import Folder, Results
from memloc.budget.model import Job
from part import Part

Handler = TypeVar("Handler", bound=logging.Handler)
READING_SECONDS = 15.0  # for which a command may read the workflow before it counts as a run


class BudgetHandler(logging.Handler):
    """Once a plan stands: `begin()` before a run's first job; `text()`, shown at a dry run's end.

    Before both, and also where nothing is to be done, comes `check()` of what stands already.
    (Snakemake's `onstart` would not be called for a module of another workflow.)
    """

    def __init__(
        self,
        begin: Callable[[], None],
        check: Callable[[], None],
        text: Callable[[], str],
        is_dry: Callable[[], bool],
    ):
        super().__init__()
        self.begin, self.check, self.text, self.is_dry = begin, check, text, is_dry
        self.planned, self.said = False, ""

    def emit(self, record: logging.LogRecord) -> None:
        """Take note that there is a plan; nothing is planned where nothing is to be done."""
        if record.msg == NOTHING_TO_BE_DONE_MSG:
            self.check()
        elif getattr(record, "event", None) == LogEvent.RUN_INFO and not self.planned:
            if self.is_dry():
                self.said = self.text()
            else:
                self.begin()
            self.check()
            self.planned = True

    def close(self) -> None:
        """Called when Snakemake stops logging, after all that it has to say."""
        if self.planned and self.is_dry():
            self.planned = False
            if self.said:
                print(f"\n{self.said}", file=sys.stdout, flush=True)
        super().close()


class OneDriver(logging.Handler):
    """Stops a run in a folder where another driver is at work, before anything is planned.

    While the workflow is read, it isn't known yet whether anything is to run. Nothing but a record
    of the log comes between that and Snakemake's search for unfinished files.
    """

    def __init__(self, workflow: Any, folder: str | Path):
        super().__init__()
        self.workflow, self.folder = workflow, Folder(folder)
        self.results: dict[Path, Results] = {}
        self.begun = False
        if not self._is_dry:
            self.folder.claim(reads=True)  # another's claim matters once something is to run

    @property
    def _is_dry(self) -> bool:
        return self.workflow.output_settings.dryrun

    def emit(self, record: logging.LogRecord) -> None:
        """Begin with the first record after the workflow has been read."""
        runs = self.workflow.execution_settings is not None
        if not self.begun and (runs or self.workflow.dag is not None):
            self.begun = True
            self.begin(runs and not self._is_dry)

    def begin(self, runs: bool) -> None:
        """Refuse to run beside another driver; what else is asked for goes on, and is told."""
        other = self.folder.claim(patience=READING_SECONDS if runs else 0)
        if not runs:
            self.folder.release()
        if other is None:
            return
        if runs and self.workflow.execution_settings.lock:
            raise ApiError(other.refusal)  # which Snakemake shows without a trace
        if self._is_dry:
            self.workflow.dag_settings.force_incomplete = True
        logger.warning(other.remark)

    def hold(self, results: str) -> None:
        """Refuse to run on results that a driver in another folder works on; a dry run is told."""
        path = Path(results).resolve()
        held = Results(path)
        if path in self.results or (self._is_dry and not held.place.exists()):
            return
        other = held.claim()
        if other and self.workflow.execution_settings.lock and not self._is_dry:
            raise ApiError(other.refusal)
        if other:
            logger.warning(other.remark)
        if self._is_dry:
            held.release()
        else:
            self.results[path] = held

    def close(self) -> None:
        """Called when Snakemake stops logging, at its end."""
        for folder in (self.folder, *self.results.values()):
            folder.release()
        super().close()


def is_driver(workflow: Any) -> bool:
    """Whether this process plans, rather than running one job of a plan."""
    return workflow.exec_mode == ExecMode.DEFAULT


def is_local(workflow: Any) -> bool:
    """Whether jobs run on this machine; a dry run of a cluster's profile knows by its `jobs`."""
    if workflow.dryrun:
        return workflow.resource_settings.nodes is None
    return workflow.local_exec


def local_copy(workflow: Any, path: str) -> str:
    """Where a job leaves a file that no rule declares as its output.

    With a default storage that is beside the local copies of what goes to the storage.
    """
    provider = workflow.storage_registry.default_storage_provider
    if provider is None:
        return path
    prefix = workflow.storage_settings.default_storage_prefix
    return str(provider.object(f"{prefix}/{path}" if prefix else path).local_path())


def gpu_jobs_at_once(workflow: Any) -> int | None:
    """How many jobs with gpu=1 Snakemake runs at once (--resources gpu=N); None: any number."""
    return _number(workflow.global_resources.get("gpu"))


def cores(workflow: Any) -> int:
    """Cores that jobs on this machine may use."""
    return _number(workflow.global_resources.get("_cores")) or 1


class AtEnd(logging.Handler):
    """Does something once Snakemake stops logging, at its end, whatever it ends with."""

    def __init__(self, workflow: Any, finish: Callable[[], None]):
        super().__init__()
        self.workflow, self.finish = workflow, finish
        atexit.register(finish)  # an error may end it before

    def emit(self, record: logging.LogRecord) -> None:
        """Nothing that happens before the end matters."""

    def close(self) -> None:
        """Called when Snakemake stops logging."""
        self.finish()
        super().close()


def at_end(workflow: Any, finish: Callable[[], None]) -> None:
    """Have `finish` called when a command ends; it must bear to be called twice."""
    logger.addHandler(AtEnd(workflow, finish))


def start_gpu_jobs(workflow: Any, count: int) -> None:
    """Have Snakemake run so many jobs with gpu=1 at once from now on, where it counts them."""
    if gpu_jobs_at_once(workflow) is not None:
        workflow.register_resource("gpu", count)


def targets(part: Part) -> set[str]:
    """What this command asks for, rules or files; nothing while the workflow is still read."""
    settings, names = part.workflow.dag_settings, part.names()
    return {names.get(target, target) for target in settings.targets} if settings else set()


def watch(
    part: Part, begin: Callable[[], None], check: Callable[[], None], text: Callable[[], str]
) -> None:
    """Have a run begin with `begin()` and `check()`, and a dry run check and end with `text()`."""
    if is_driver(part.workflow) and not part.is_watched:
        part.is_watched = True
        logger.addHandler(BudgetHandler(begin, check, text, lambda: part.workflow.dryrun))


def claim_folder(workflow: Any) -> None:
    """Let one driver at a time work in a folder; the second is told of the first."""
    if is_driver(workflow) and not _claimant(workflow):
        logger.addHandler(OneDriver(workflow, Path.cwd()))


def claim_results(workflow: Any, results: str) -> None:
    """Let one driver at a time work on a folder of results, from whichever working folder."""
    if claimant := _claimant(workflow):
        claimant.hold(results)


def _claimant(workflow: Any) -> OneDriver | None:
    return handler_of(workflow, OneDriver)


def handler_of(workflow: Any, kind: type[Handler]) -> Handler | None:
    """The handler of a kind on Snakemake's logger that serves this workflow, if there is one."""
    found = (h for h in logger.handlers if isinstance(h, kind) and h.workflow is workflow)
    return next(found, None)


def pending_jobs(part: Part) -> list[Job]:
    """The jobs of memloc in Snakemake's plan, before the first has run."""
    workflow, names, chosen = part.workflow, part.names(), _chosen(part)
    places = {job: place for place, job in enumerate(chosen)}
    return [
        Job(
            rule=names[job.rule.name],
            wildcards=dict(job.wildcards_dict),
            outputs=_outputs(job.output),
            needs=tuple(sorted(places[j] for j in workflow.dag.dependencies[job] if j in places)),
            gpus=_gpus(job.resources),
            threads=rule_threads(workflow, job.rule),
            minutes=_number(job.resources.get("runtime")),
        )
        for job in chosen
    ]


def numbered_jobs(part: Part) -> list[tuple[int, Job]]:
    """The same by Snakemake's own numbers, by which they also know what they need."""
    numbers = [part.workflow.dag.jobid(job) for job in _chosen(part)]
    return [
        (number, replace(job, needs=tuple(numbers[place] for place in job.needs)))
        for number, job in zip(numbers, pending_jobs(part), strict=True)
    ]


def benchmarks(workflow: Any) -> dict[int, Path]:
    """Snakemake's number of each planned job -> where the time that it takes will stand."""
    planned = (job for job in workflow.dag.needrun_jobs(exclude_finished=False) if job.benchmark)
    return {workflow.dag.jobid(job): Path(str(job.benchmark)) for job in planned}


def _chosen(part: Part) -> list[Any]:
    # at the end of a dry run Snakemake takes all jobs as finished
    planned = part.workflow.dag.needrun_jobs(exclude_finished=False)
    names = part.names()
    ours = [job for job in planned if job.output and job.rule.name in names]
    # Snakemake's order varies: a plan read twice must give the same figures.
    return sorted(ours, key=lambda job: str(job.output[0]))


def refuse(reason: str | None) -> None:
    """Stop this run where there is a reason to."""
    if reason:
        raise WorkflowError(reason)


def rule_threads(workflow: Any, rule: Any) -> int:
    """Threads a rule's jobs get: what it asks for, on this machine no more than --cores.

    A dry run for a cluster has one core, and would show every job with one thread.
    """
    asked = _number(rule.resources.get("_cores")) or 1
    cores = workflow.global_resources["_cores"].value
    return min(asked, cores) if is_local(workflow) and cores else asked


def whole_plan(part: Part, files: Iterable[str]) -> list[Job]:
    """All jobs behind files, finished or not, found from the rules alone.

    Snakemake's own plan holds what one command asks for; the record of the study's budget must
    not hang on that.
    """
    return _Walk(part).jobs(files)


def reached(part: Part, files: Iterable[str]) -> list[str]:
    """All files behind files, those included, that the rules make or read."""
    walk = _Walk(part)
    walk.jobs(files)
    return sorted(walk.makers)


def plain(jobs: Iterable[Job]) -> list[tuple]:
    """Jobs as plain values for a rule's params: what `summary.budget.write_budget` reads."""
    return [
        (j.rule, dict(j.wildcards), [list(o) for o in j.outputs], list(j.needs), j.gpus, j.threads)
        for j in jobs
    ]


class _Walk:
    """From target files to jobs, through the rules' outputs and inputs."""

    def __init__(self, part: Part):
        self.names = part.names()
        rules = part.workflow.rules
        self.rules = [rule for rule in rules if rule.output and rule.name in self.names]
        # what Snakemake has planned already needn't be looked for among the rules
        dag = part.workflow.dag
        jobs = [] if dag is None else dag.jobs
        self.planned = {str(file): job for job in jobs for file in job.output}
        self.found: list[Job] = []
        self.places: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self.makers: dict[str, int | None] = {}

    def jobs(self, files: Iterable[str]) -> list[Job]:
        for file in files:
            self.maker(file)
        return self.found

    def maker(self, path: str) -> int | None:
        """Position of the job that makes a file; None for a file that no rule makes."""
        if path not in self.makers:
            planned = self.planned.get(path)
            if planned is not None and planned.rule.name in self.names:
                self.makers[path] = self.job(planned.rule, planned.wildcards, planned)
            else:
                rule = next((rule for rule in self.rules if rule.is_producer(path)), None)
                self.makers[path] = rule and self.job(rule, _wildcards(rule, path))
        return self.makers[path]

    def job(self, rule: Any, wildcards: Wildcards, planned: Any = None) -> int:
        key = (rule.name, tuple(sorted(wildcards.items())))
        if key not in self.places:
            inputs = planned.input if planned else rule.expand_input(wildcards)[0]
            outputs = planned.output if planned else rule.expand_output(wildcards)[0]
            needs = {self.maker(str(file)) for file in inputs} - {None}
            self.places[key] = len(self.found)
            self.found.append(
                Job(
                    rule=self.names[rule.name],
                    wildcards=dict(wildcards),
                    outputs=_outputs(outputs),
                    needs=tuple(sorted(needs)),
                    gpus=_gpus(rule.resources),
                    threads=_number(rule.resources.get("_cores")) or 1,
                )
            )
        return self.places[key]


def _wildcards(rule: Any, path: str) -> Wildcards:
    """What a rule's wildcards are for one of its outputs."""
    return Wildcards(fromdict=rule.get_wildcards(path))


def benchmark_patterns(part: Part) -> dict[str, tuple[str, list[str]]]:
    """Rule -> its benchmark file, and the records beside its outputs; both with {wildcards}."""
    names = part.names()
    return {
        names[rule.name]: (str(rule.benchmark), _records(rule.output))
        for rule in part.workflow.rules
        if rule.name in names and rule.benchmark
    }


def _records(outputs: Iterable[Any]) -> list[str]:
    # a checkpoint's folder may be gone: its record lies beside it too
    return [
        record
        for file in outputs
        for record in (
            f"{file}.provenance.json",
            *([f"{file}/provenance.json"] if is_flagged(file, "directory") else []),
        )
    ]


def _outputs(files: Iterable[Any]) -> tuple[tuple[str, bool], ...]:
    return tuple((PurePath(str(file)).name, bool(is_flagged(file, "temp"))) for file in files)


def _gpus(resources: Any) -> int:
    """GPUs that a job asks for; on Slurm `gres` may stand for one, or for a share of one."""
    return _number(resources.get("gpu")) or int(resources.get("gres") is not None)


def _number(resource: Any) -> int | None:
    """A resource's number; None for one that is missing, a text, or only known per job."""
    if isinstance(resource, Resource):
        resource = None if resource.is_evaluable() else resource.value
    return resource if isinstance(resource, int) else None
