"""
What jobs cost: the budget that dry runs end with, and the time and memory that rules ask for.

A dry run of any target ends with the budget of what it plans; a run that plans more GPU-hours
than `budget.max_gpu_hours` stops before its first job. In: config, and benchmarks of finished
jobs. Out: cost_minutes and cost_mb for the rules' resources.
"""

import planning
from memloc.actual import finished_jobs
from memloc.budget import make_budget, refusal
from memloc.budget_text import budget_text
from memloc.cost_model import CostModel, Job
from memloc.sizes import Sizes

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


def budget_report():
    """What a dry run ends with."""
    planned = planned_budget()
    return budget_text(
        planned, config, refusal(planned, config["budget"]["max_gpu_hours"])
    )


def refuse_over_budget():
    """Stop a run that plans more than it may."""
    limit = config["budget"]["max_gpu_hours"]
    reason = (
        None if limit is None or workflow.touch else refusal(planned_budget(), limit)
    )
    if reason:
        raise WorkflowError(f"budget: {reason}")


planning.watch(workflow, budget_report)


onstart:
    refuse_over_budget()


def whole_study():
    """What the budget of the whole study hangs on, as keywords of `write_budget`."""
    places = ("results_dir", "resources_dir", "task_folders", "tasks_dir", "budget")
    described = ("base", "labels", "split", "expected")
    return dict(
        plan=planning.plain(planning.whole_plan(workflow)),
        config={key: value for key, value in config.items() if key not in places},
        tasks={
            name: {key: task[key] for key in described if key in task}
            for name, task in TASKS.items()
        },
        folders={"results": RESULTS, "resources": RESOURCES},
        patterns=planning.benchmark_patterns(workflow),
        gpus=config["budget"]["gpus"],
        device=config["budget"]["device"],
    )
