"""
What jobs cost: the budget that dry runs end with, and the time and memory that rules ask for.

A dry run of any target ends with the budget of what it plans; a run that plans more GPU-hours
than `budget.max_gpu_hours` stops before its first job, as does one of more hours than
`budget.cpu_limit_hours` on a machine without a GPU. In: config, and benchmarks of finished
jobs. Out: cost_minutes and cost_mb for the rules' resources.
"""

from snakemake.logging import logger

import planning
from memloc.budget.finished import finished_jobs
from memloc.budget.budget import make_budget, refusal
from memloc.budget.text import budget_text
from memloc.budget.model import CostModel, Job
from memloc.budget.rates import CPU, is_cpu
from memloc.budget.sizes import Sizes
from memloc.machine.gpus import chosen_gpus, cpu_refusal

SIZES = Sizes(config, TASKS, RESULTS, RESOURCES)
_COST_MODELS = []


def cost_model():
    """The cost model, calibrated with the jobs that have finished; made once, when asked for."""
    if not _COST_MODELS:
        # A single job asks only for its own resources: that isn't worth reading all records.
        patterns = (
            planning.benchmark_patterns(workflow)
            if planning.is_driver(workflow)
            else {}
        )
        _COST_MODELS.append(
            CostModel(
                SIZES,
                config["budget"]["device"],
                finished_jobs(patterns),
                local=planning.is_local(workflow),
            )
        )
    return _COST_MODELS[0]


def cost_minutes(rule):
    """Run time to ask for, from the cost model; grows with every attempt."""

    def asked(wildcards, attempt, threads):
        job = Job(rule, dict(wildcards), threads=threads)
        return attempt * readably(cost_model().minutes, job)

    return asked


def cost_mb(rule):
    """Memory in MB to ask for, from the cost model; grows with every attempt."""

    def asked(wildcards, attempt):
        job = Job(rule, dict(wildcards))
        return attempt * readably(cost_model().megabytes, job)

    return asked


def readably(cost, job):
    """The cost of a job; what a target's name gets wrong, such as a window, without a trace."""
    try:
        return cost(job)
    except MemlocError as error:
        raise WorkflowError(str(error)) from None


def planned_budget():
    """The budget of what this command has planned."""
    jobs = planning.pending_jobs(workflow)
    return make_budget(jobs, cost_model(), config["budget"]["gpus"])


def over_budget(planned):
    """Why the configuration refuses this plan's GPU-hours; None when it doesn't."""
    return refusal(planned, config["budget"]["max_gpu_hours"])


def without_gpu():
    """Why this machine shouldn't run the plan: too many hours on a processor; None when it may."""
    if config["allow_cpu"] or not planning.is_local(workflow):
        return None
    if chosen_gpus(config["devices"]["gpus"]):
        return None
    # budget.device may name another machine's; these jobs would run here
    local = CostModel(SIZES, CPU, finished_jobs(planning.benchmark_patterns(workflow)))
    seconds = sum(
        local.estimate(job).seconds * job.gpus
        for job in planning.pending_jobs(workflow)
    )
    return cpu_refusal(seconds / 3600, config["budget"]["cpu_limit_hours"])


def budget_report():
    """What a dry run ends with."""
    planned = planned_budget()
    # Whoever names a GPU plans for another machine.
    here = is_cpu(planned.device) and without_gpu()
    return budget_text(planned, config, over_budget(planned) or here or None)


def refuse_to_run():
    """Stop a run that plans more than it may."""
    if workflow.touch:
        return
    limited = config["budget"]["max_gpu_hours"] is not None
    reason = over_budget(planned_budget()) if limited else None
    reason = reason or without_gpu()
    if reason:
        raise WorkflowError(f"budget: {reason}")


def compare_slots():
    """Say so where Snakemake starts more GPU jobs at once than they find slots, or fewer."""
    devices = config["devices"]
    gpus = chosen_gpus(devices["gpus"]) if planning.is_local(workflow) else []
    slots = len(gpus) * devices["jobs_per_gpu"]
    at_once = planning.gpu_jobs_at_once(workflow)
    if slots and at_once != slots:
        said = "any number of" if at_once is None else at_once
        logger.warning(
            f"devices: {slots} GPU slots ({len(gpus)} GPUs x {devices['jobs_per_gpu']} jobs), but "
            f"Snakemake starts {said} GPU jobs at once: use --resources gpu={slots}"
        )


planning.watch(workflow, budget_report)


onstart:
    refuse_beside_leftovers()
    refuse_to_run()
    compare_slots()
    record_results_left_behind()


def budgeted_tasks():
    """The study's tasks, and those that the control setup adds."""
    names = [*config["tasks"]]
    if "control" in [*STAGES, *requested()]:
        names += [config["control"]["auxiliary"], *control_tasks()]
    return {name: TASKS[name] for name in dict.fromkeys(names)}


def whole_study():
    """What the budget of the whole study hangs on, as keywords of `write_budget`."""
    places = ("results_dir", "resources_dir", "task_folders", "tasks_dir", "budget")
    places += ("allow_cpu", "devices")
    described = ("base", "labels", "split", "expected")
    return dict(
        plan=planning.plain(planning.whole_plan(workflow)),
        config={key: value for key, value in config.items() if key not in places},
        tasks={
            name: {key: task[key] for key in described if key in task}
            for name, task in budgeted_tasks().items()
        },
        folders={"results": RESULTS, "resources": RESOURCES},
        patterns=planning.benchmark_patterns(workflow),
        gpus=config["budget"]["gpus"],
        device=config["budget"]["device"],
    )
