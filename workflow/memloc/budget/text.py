"""The budget in words: what a dry run prints, and the paper's own account beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memloc.budget.budget import Budget, Row
from memloc.budget.devices import is_cpu
from memloc.budget.stages import STAGES
from memloc.budget.words import align, in_bytes, in_hours, lasting, number_of
from memloc.study.published import COSTS

PAPER_TASKS = frozenset(
    [
        "wic",
        "rte",
        "mrpc",
        "cola",
        "boolq",
        "sst2",
        "sst5",
        "emotion",
        "implicithate",
        "stormfront",
        "reuters",
        "trec",
    ]
)
PAPER_MODELS = frozenset(["bert", "opt", "gpt-neo", "pythia"])
SHOWN_CHAIN = 8  # jobs of the longest chain that are named


@dataclass(frozen=True)
class Account:
    """A line of the paper's account beside this plan; hours are GPU-hours."""

    what: str
    runs: int
    low: float
    high: float
    jobs: int
    hours: float


def is_papers(config: Mapping[str, Any]) -> bool:
    """Whether a configuration is the paper's study, with all its tasks and any of its models."""
    training = config["training"]
    return (
        frozenset(config["tasks"]) == PAPER_TASKS
        and frozenset(config["models"]) <= PAPER_MODELS
        and len(config["model_seeds"]) == 3
        and (training["epochs"], training["batch_size"]) == (50, 8)
    )


def account(budget: Budget, n_models: int) -> list[Account]:
    """The paper's runs and hours for `n_models` models, beside what this plan has of them."""
    lines = []
    for key, (what, runs, low, high) in COSTS.items():
        rows = [r for r in budget.rows if r.stage in STAGES and STAGES[r.stage].account == key]
        hours, jobs = sum(row.gpu_hours for row in rows), sum(row.jobs for row in rows)
        count = runs * n_models
        lines.append(Account(what, count, count * low, count * high, jobs, hours))
    return lines


def total(budget: Budget) -> str:
    """The whole of a budget in one line."""
    low, high = budget.interval
    hours = "hours of GPU jobs" if is_cpu(budget.device) else "GPU-hours"
    between = f" ({in_hours(low)} to {in_hours(high)})" if budget.gpu_hours else ""
    return (
        f"Budget: {number_of(budget.jobs, 'job')}, {in_hours(budget.gpu_hours)} {hours}{between}"
        f", {in_hours(budget.cpu_hours)} CPU-hours, at most {in_bytes(budget.disk)} more on disk, "
        f"of which {in_bytes(budget.stays)} to stay"
    )


def budget_text(budget: Budget, config: Mapping[str, Any], refused: str | None = None) -> str:
    """The whole budget as text, to end a dry run with."""
    lines = [
        total(budget),
        "",
        *_stages(budget.rows),
        "",
        *_makespans(budget),
        f"longest chain: {lasting(budget.chain_hours)}: {_chain(budget)}",
        *budget.notes,
    ]
    if is_papers(config):
        lines += ["", *_account(account(budget, len(config["models"])))]
    if refused:
        lines += ["", f"REFUSED: {refused} A run stops before its first job."]
    return "\n".join(lines)


def _stages(rows: Sequence[Row]) -> list[str]:
    header = ["stage", "model", "jobs", "GPU-hours", "from", "to", "CPU-hours", "disk", "rate"]
    cells = [
        [
            *(row.stage, row.model, f"{row.jobs:,}"),
            *map(in_hours, (row.gpu_hours, *row.interval)),
            *(in_hours(row.cpu_hours), in_bytes(row.disk), _basis(row)),
        ]
        for row in rows
    ]
    return align([header, *cells], left=(0, 1, 8))


def _basis(row: Row) -> str:
    jobs = f", {number_of(row.factor.n, 'job')}" if row.factor.n else ""
    return f"{row.factor.basis}{jobs}"


def _makespans(budget: Budget) -> list[str]:
    # without a GPU, the jobs that ask for one share the processor
    cpu = is_cpu(budget.device)
    lead, places = ("", ("GPU job", "GPU jobs")) if cpu else ("on ", ("GPU", "GPUs"))
    lines = [
        [
            f"{lead}{span.gpus:,} {places[span.gpus > 1]}{' at once' * cpu}:",
            lasting(span.hours),
            f"peak disk {in_bytes(span.disk)}",
        ]
        for span in budget.makespans
    ]
    return align(lines, left=(0, 1, 2))


def _chain(budget: Budget) -> str:
    names = [str(job) for job in budget.chain]
    if len(names) > SHOWN_CHAIN:
        names = [*names[: SHOWN_CHAIN - 1], "...", names[-1]]
    return " > ".join(names)


def _account(lines: Sequence[Account]) -> list[str]:
    header = [
        "the paper's account (GTX 1080/2080 Ti)",
        "runs",
        "GPU-hours",
        "here: jobs",
        "GPU-hours",
    ]
    cells = [
        [
            line.what,
            f"{line.runs:,}",
            f"{in_hours(line.low)} to {in_hours(line.high)}",
            f"{line.jobs:,}" if line.jobs else "not planned",
            in_hours(line.hours) if line.jobs else "-",
        ]
        for line in lines
    ]
    return align([header, *cells], left=(0,))
