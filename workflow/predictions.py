"""What a plan costs: the budget that dry runs end with, and the time and memory of its jobs.

A dry run of any target ends with the budget of what it plans. A run that plans more GPU-hours than
`budget.max_gpu_hours` stops before its first job, as does one of more hours than
`budget.cpu_limit_hours` on a machine without a GPU.
"""

import os
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from snakemake.exceptions import ApiError
from snakemake.logging import logger

import planning
import preempted
from leftovers import jobs_in, leftover_refusal
from memloc.budget.budget import Budget, make_budget, refusal
from memloc.budget.devices import CPU, is_cpu
from memloc.budget.finished import finished_jobs
from memloc.budget.model import CostModel, Job
from memloc.budget.room import jobs_that_fit
from memloc.budget.sizes import Sizes
from memloc.budget.text import budget_text, total
from memloc.errors import MemlocError
from memloc.machine.gpus import AUTO, SLOTS, chosen_gpus, cpu_refusal, lock_folder
from memloc.machine.mps import Server
from memloc.study.sources import is_local
from memloc.study.study import Study
from overwriting import refuse_over_given
from part import Part
from readable import readable
from standing import check_results

# Where things lie, how much may be spent and how figures look: no part of what the study costs.
ELSEWHERE = ("results_dir", "resources_dir", "task_folders", "tasks_dir", "budget", "allow_cpu")
ELSEWHERE += ("devices", "figures")


class Predictions:
    """Costs of a study's jobs, calibrated with those that have finished."""

    def __init__(self, part: Part, study: Study):
        self.part, self.workflow = part, part.workflow
        self.study, self.config = study, study.config
        places = study.places
        self.faults: list[MemlocError] = []
        self.in_files = cache(self._in_files)
        self.sizes = Sizes(
            study.config, study.tasks, places.results, places.resources, self.in_files
        )

    def _in_files(self, task: str) -> dict[str, Any] | None:
        """What a task's files on this machine hold; only drivers read them."""
        if not (is_local(self.study.tasks[task]) and planning.is_driver(self.workflow)):
            return None
        from memloc.data.counted import count  # its import takes a second that other plans can save

        try:
            return count(self.study.tasks[task])
        except MemlocError as fault:
            # told once the plan stands: out of a param, Snakemake would show it with a trace
            self.faults.append(fault)
            return None

    @cached_property
    def model(self) -> CostModel:
        """The cost model, made once, when it is asked for."""
        # A single job asks only for its own resources: that isn't worth reading all records.
        driver = planning.is_driver(self.workflow)
        patterns = planning.benchmark_patterns(self.part) if driver else {}
        local = planning.is_local(self.workflow)
        device = self.config["budget"]["device"]
        asked = self.config["devices"]["jobs_per_gpu"]
        sharing = 1 if asked == AUTO else asked
        return CostModel(self.sizes, device, finished_jobs(patterns), local=local, sharing=sharing)

    def minutes(self, rule: str) -> Callable:
        """Run time to ask for; it grows with every attempt."""

        def asked(wildcards: Any, attempt: int, threads: int) -> int:
            job = Job(rule, dict(wildcards), threads=threads)
            return attempt * self.model.minutes(job)

        return readable(asked)

    def megabytes(self, rule: str) -> Callable:
        """Memory to ask for; it grows with every attempt."""

        def asked(wildcards: Any, attempt: int) -> int:
            job = Job(rule, dict(wildcards))
            return attempt * self.model.megabytes(job)

        return readable(asked)

    def examining(self, wildcards: Any, attempt: int) -> int:
        """Memory to ask for to retrieve a model and examine it.

        That holds its weights, a copy whose layers are disturbed, all gradients, and what windows
        that train side by side own: four numbers of four bytes for each of its parameters.
        """
        parameters = self.sizes.model(wildcards.model).parameters
        return attempt * int(2000 + 16e-6 * parameters)

    # --- the plan of this command ------------------------------------------------------------

    def planned(self) -> Budget:
        """The budget of what this command has planned; MemlocError for a task's faulty files."""
        jobs = planning.pending_jobs(self.part)
        budget = make_budget(jobs, self.shared_model(jobs), self.config["budget"]["gpus"])
        if self.faults:
            raise self.faults[0]
        return budget

    def _planned(self) -> Budget:
        try:
            return self.planned()
        except MemlocError as fault:
            raise ApiError(str(fault)) from None  # which Snakemake shows without a trace

    def shared_model(self, jobs: list[Job]) -> CostModel:
        """The cost model with as many jobs a GPU as there will be."""
        if self.config["devices"]["jobs_per_gpu"] != AUTO or not planning.is_local(self.workflow):
            return self.model
        gpus = len(chosen_gpus(self.config["devices"]["gpus"]))
        cores = max(1, planning.cores(self.workflow) // gpus) if gpus else None
        return self.model.under(jobs_that_fit(jobs, self.model, cores))

    def report(self) -> str:
        """What a dry run ends with; nothing where it plans another workflow's jobs alone."""
        if self.part.is_module and not planning.pending_jobs(self.part):
            return ""
        planned = self._planned()
        # Whoever names a GPU plans for another machine.
        here = is_cpu(planned.device) and self._without_gpu()
        text = budget_text(planned, self.config, self._over_budget(planned) or here or None)
        given = [f"{what}: {said}" for what, said in self.study.given_lines]
        return "\n".join([*given, *([""] if given else []), text])

    def begin(self) -> None:
        """Before the first job of a run: what may stop it.

        It is no function of a file of rules, where Snakemake shows a refusal with a trace.
        """
        self.refuse_ungiven()
        on_slurm = self.workflow.executor_plugin.name == "slurm"
        if on_slurm:
            planning.refuse(leftover_refusal(jobs_in(Path.cwd())))
        self.refuse_to_run()
        if on_slurm:
            preempted.Watch(Path.cwd()).start()
        self.share_gpus()
        self.compare_slots()

    def check(self) -> None:
        """Refuse what isn't given, what was and would be lost, and results made otherwise."""
        self.refuse_ungiven()
        refuse_over_given(self.part)
        check_results(self.part, self.config)

    def refuse_ungiven(self) -> None:
        """Stop a plan, in a line, that needs checkpoints of given runs which aren't there."""
        for job in planning.pending_jobs(self.part) if self.study.given else ():
            try:
                self.study.given.check_job(job.rule, job.wildcards)
            except MemlocError as fault:
                raise ApiError(str(fault)) from None  # which Snakemake shows without a trace

    def refuse_to_run(self) -> None:
        """Stop a run that plans more than it may; else say what it will cost."""
        if self.workflow.touch:
            return
        planned = self._planned()
        reason = self._over_budget(planned) or self._without_gpu()
        if reason:
            raise ApiError(f"budget: {reason}")
        if planned.jobs:
            logger.info(f"{total(planned)}. memloc status, in another shell, says how far it is.")

    def _over_budget(self, planned: Budget) -> str | None:
        """Why the configuration refuses this plan's GPU-hours; None when it doesn't."""
        return refusal(planned, self.config["budget"]["max_gpu_hours"])

    def _without_gpu(self) -> str | None:
        """Why this machine shouldn't run the plan: too many hours on a processor; else None."""
        if self.config["allow_cpu"] or not planning.is_local(self.workflow):
            return None
        if chosen_gpus(self.config["devices"]["gpus"]):
            return None
        # budget.device may name another machine's; these jobs would run here
        finished = finished_jobs(planning.benchmark_patterns(self.part))
        local = CostModel(self.sizes, CPU, finished)
        jobs = planning.pending_jobs(self.part)
        seconds = sum(local.estimate(job).seconds * job.gpus for job in jobs)
        return cpu_refusal(seconds / 3600, self.config["budget"]["cpu_limit_hours"])

    def share_gpus(self) -> None:
        """Let several jobs at once use a GPU of this machine: as many as fit, if none says."""
        devices = self.config["devices"]
        gpus = chosen_gpus(devices["gpus"]) if planning.is_local(self.workflow) else []
        jobs = [job for job in planning.pending_jobs(self.part) if job.gpus]
        if not gpus or not jobs or self.workflow.touch:
            return
        sharing = self.shared_model(jobs).sharing
        if devices["jobs_per_gpu"] == AUTO:
            os.environ[SLOTS] = str(sharing)
            used = min(len(gpus), planning.gpu_jobs_at_once(self.workflow) or len(gpus))
            planning.start_gpu_jobs(self.workflow, used * sharing)
        if sharing > 1:
            server = Server(lock_folder())
            found, said = server.start()
            os.environ.update(found)
            planning.at_end(self.workflow, server.stop)
            logger.info(f"devices: {sharing} jobs share a GPU, {said}")

    def compare_slots(self) -> None:
        """Say so where Snakemake starts more GPU jobs at once than they find slots, or fewer."""
        devices = self.config["devices"]
        gpus = chosen_gpus(devices["gpus"]) if planning.is_local(self.workflow) else []
        if devices["jobs_per_gpu"] == AUTO:
            return
        slots = len(gpus) * devices["jobs_per_gpu"]
        at_once = planning.gpu_jobs_at_once(self.workflow)
        if slots and at_once != slots:
            said = "any number of" if at_once is None else at_once
            logger.warning(
                f"devices: {slots} GPU slots ({len(gpus)} GPUs x {devices['jobs_per_gpu']} jobs), "
                f"but Snakemake starts {said} GPU jobs at once: use --resources gpu={slots}"
            )

    # --- the whole study ---------------------------------------------------------------------

    def whole_study(self) -> dict[str, Any]:
        """What the budget of the whole study hangs on, as keywords of `write_budget`."""
        described = ("base", "labels", "split", "expected")
        names = self.study.fetched_tasks(planning.targets(self.part))
        tasks = {name: self.study.tasks[name] for name in names}
        return dict(
            plan=planning.plain(planning.whole_plan(self.part, self.study.whole())),
            config={key: value for key, value in self.config.items() if key not in ELSEWHERE},
            tasks={
                name: {key: task[key] for key in described if key in task}
                | {"in_files": self.in_files(name)}
                for name, task in tasks.items()
            },
            folders={
                "results": self.study.places.results,
                "resources": self.study.places.resources,
            },
            patterns=planning.benchmark_patterns(self.part),
            gpus=self.config["budget"]["gpus"],
            device=self.config["budget"]["device"],
        )
