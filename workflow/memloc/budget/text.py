"""The budget in words: what a dry run prints, and the paper's own account beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memloc.budget.budget import GB, Budget, Row
from memloc.budget.rates import is_cpu
from memloc.budget.stages import STAGES
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


def budget_text(budget: Budget, config: Mapping[str, Any], refused: str | None = None) -> str:
    """The whole budget as text, to end a dry run with."""
    low, high = budget.interval
    between = f" ({_hours(low)} to {_hours(high)})" if budget.gpu_hours else ""
    lines = [
        f"Budget: {_count(budget.jobs, 'job')}, {_hours(budget.gpu_hours)} GPU-hours{between}, "
        f"{_hours(budget.cpu_hours)} CPU-hours, at most {_bytes(budget.disk)} more on disk, "
        f"of which {_bytes(budget.stays)} to stay",
        "",
        *_stages(budget.rows),
        "",
        *_makespans(budget),
        f"longest chain: {_span(budget.chain_hours)}: {_chain(budget)}",
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
            *map(_hours, (row.gpu_hours, *row.interval)),
            *(_hours(row.cpu_hours), _bytes(row.disk), _basis(row)),
        ]
        for row in rows
    ]
    return _align([header, *cells], left=(0, 1, 8))


def _basis(row: Row) -> str:
    jobs = f", {_count(row.factor.n, 'job')}" if row.factor.n else ""
    return f"{row.factor.basis}{jobs}"


def _makespans(budget: Budget) -> list[str]:
    # without a GPU, the jobs that ask for one share the processor
    cpu = is_cpu(budget.device)
    lead, places = ("", ("GPU job", "GPU jobs")) if cpu else ("on ", ("GPU", "GPUs"))
    lines = [
        [
            f"{lead}{span.gpus:,} {places[span.gpus > 1]}{' at once' * cpu}:",
            _span(span.hours),
            f"peak disk {_bytes(span.disk)}",
        ]
        for span in budget.makespans
    ]
    return _align(lines, left=(0, 1, 2))


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
            f"{_hours(line.low)} to {_hours(line.high)}",
            f"{line.jobs:,}" if line.jobs else "not planned",
            _hours(line.hours) if line.jobs else "-",
        ]
        for line in lines
    ]
    return _align([header, *cells], left=(0,))


def _align(rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(widths[i]) if i in left else cell.rjust(widths[i])
            for i, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _hours(hours: float) -> str:
    if hours == 0:
        return "-"
    if hours < 0.01:
        return "<0.01"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"


def _span(hours: float) -> str:
    if hours >= 48:
        days, rest = divmod(round(hours), 24)
        return f"{days} d {rest} h"
    if hours >= 1:
        whole, minutes = divmod(round(60 * hours), 60)
        return f"{whole} h {minutes:02d} min"
    return f"{max(1, round(60 * hours))} min"


def _bytes(count: float) -> str:
    if count >= 1e12:
        return f"{count / 1e12:.1f} TB"
    return f"{count / GB:.1f} GB" if count >= GB else f"{max(1, round(count / 1e6))} MB"
