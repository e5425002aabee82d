"""The compute budget of a plan: jobs, GPU-hours, CPU-hours, disk and makespans.

A plan is a list of jobs that know each other by position. Planning imports this module, and
nothing here or below may import torch or pandas.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memloc.budget.devices import is_cpu
from memloc.budget.knobs import knobs_line
from memloc.budget.model import CostModel, Job
from memloc.budget.parts import Fit, fit, groups_of
from memloc.budget.rates import Factor
from memloc.budget.room import too_large
from memloc.budget.schedule import Item, longest_chain, peak_bytes, schedules
from memloc.budget.sizes import Sizes
from memloc.budget.space import device_bytes
from memloc.budget.speed import BFLOAT16, used_precision
from memloc.budget.stages import STAGES, on_device, stage_of
from memloc.budget.words import in_bytes, number_of
from memloc.budget.work import Facts
from memloc.study.params import lora_of

COLUMNS = [
    *("kind", "stage", "model", "jobs", "hours", "gpu_hours", "gpu_hours_low"),
    *("gpu_hours_high", "cpu_hours", "disk_gb", "gpus", "makespan_hours", "basis", "measured_jobs"),
]
HOUR, GB = 3600.0, 1e9


@dataclass(frozen=True)
class Row:
    """A stage and model of the budget; `hours` are its jobs' wall-clock hours."""

    stage: str
    model: str
    jobs: int
    hours: float
    gpu_hours: float
    cpu_hours: float
    disk: float
    factor: Factor

    @property
    def interval(self) -> tuple[float, float]:
        """Least and most GPU-hours."""
        off = self.factor.interval(self.jobs)
        return self.gpu_hours / off, self.gpu_hours * off


@dataclass(frozen=True)
class Makespan:
    """Hours a plan takes on so many GPUs, and bytes it then holds on disk at once."""

    gpus: int
    hours: float
    disk: float


@dataclass(frozen=True)
class Budget:
    """What a plan will cost.

    chain: the jobs of the longest chain, which no number of GPUs shortens; stays: bytes that are
    still there in the end; `notes`: on what the figures rest, a line each.
    """

    rows: list[Row]
    makespans: list[Makespan]
    chain: list[Job]
    chain_hours: float
    device: str
    stays: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def jobs(self) -> int:
        """Jobs of all stages."""
        return sum(row.jobs for row in self.rows)

    @property
    def gpu_hours(self) -> float:
        """Expected GPU-hours."""
        return sum(row.gpu_hours for row in self.rows)

    @property
    def interval(self) -> tuple[float, float]:
        """Least and most GPU-hours, as if all stages were off the same way."""
        intervals = [row.interval for row in self.rows]
        return sum(low for low, _ in intervals), sum(high for _, high in intervals)

    @property
    def cpu_hours(self) -> float:
        """Hours of CPU threads held, those of GPU jobs included."""
        return sum(row.cpu_hours for row in self.rows)

    @property
    def disk(self) -> float:
        """Most bytes held at once, whatever the number of GPUs."""
        return max(span.disk for span in self.makespans)


def make_budget(jobs: Sequence[Job], model: CostModel, gpus: Iterable[int]) -> Budget:
    """The budget of a plan, per stage and model, on each number of `gpus`."""
    items = [model.item(job) for job in jobs]
    chain = longest_chain(items)
    # so many jobs share a GPU; a job that asks for several of them is none of memloc's
    spans = schedules(items, [count * model.sharing for count in gpus])
    return Budget(
        rows=_rows(jobs, items, model),
        makespans=[
            Makespan(count // model.sharing, found.makespan / HOUR, peak_bytes(items, found))
            for count, found in spans.items()
        ],
        chain=[jobs[i] for i in chain],
        chain_hours=sum(items[i].seconds for i in chain) / HOUR,
        device=model.device,
        stays=sum(item.kept for item in items),
        notes=_notes(jobs, model),
    )


def _rows(jobs: Sequence[Job], items: Sequence[Item], model: CostModel) -> list[Row]:
    groups: dict[tuple[str, str], list[int]] = {}
    for i, job in enumerate(jobs):
        stage = stage_of(job.rule) or job.rule
        own = job.wildcards.get("model") if stage != "figures" else None
        groups.setdefault((stage, own or "all"), []).append(i)
    places = {name: place for place, name in enumerate(STAGES)}
    rows = []
    for stage, name in sorted(groups, key=lambda key: (places.get(key[0], len(places)), key)):
        found = groups[stage, name]
        rows.append(
            Row(
                stage,
                name,
                len(found),
                sum(items[i].seconds for i in found) / HOUR,
                sum(items[i].seconds * jobs[i].gpus for i in found) / model.sharing / HOUR,
                sum(items[i].seconds * jobs[i].threads for i in found) / HOUR,
                sum(items[i].kept + items[i].passing for i in found),
                model.estimate(jobs[found[0]]).factor,
            )
        )
    return rows


def _notes(jobs: Sequence[Job], model: CostModel) -> list[str]:
    """On what the figures rest: device, rates, rows, tokens and models."""
    pairs = {(j.wildcards["task"], j.wildcards.get("model")) for j in jobs if "task" in j.wildcards}
    tasks = {pair: model.sizes.task(*pair) for pair in pairs}
    names = {j.wildcards["model"] for j in jobs if "model" in j.wildcards}
    sizes = {name: model.sizes.model(name) for name in names}
    measured = sum(on_device(m.stage) for m in model.measured)
    rates = (
        f"{measured} finished device jobs"
        if measured
        else "default, no device job has finished yet"
    )
    notes: list[str | None] = [
        f"device: {model.device} ({model.device_basis}); rates: {rates}{_setting(model)}"
    ]
    if saved := sum(model.saved_bytes(job) for job in jobs):
        notes.append(f"partial state: {in_bytes(saved)} are written in all")
    rows = {name: size.rows_basis for (name, _), size in tasks.items()}
    tokens = {pair: size.tokens_basis for pair, size in tasks.items()}
    for title, bases in (("rows", rows), ("tokens", tokens)):
        if bases:
            notes.append(f"{title}: {_tally(bases)}")
    notes += [_memory(name, model.sizes) for name in sorted(names) if _adapted(name, model)]
    notes.append(_side_by_side(jobs, model))
    notes.append(too_large(jobs, model))
    if sizes:
        notes.append(f"model sizes: {_tally({n: s.basis for n, s in sizes.items()})}")
    notes.append(knobs_line(jobs, model))
    return [note for note in notes if note]


def _setting(model: CostModel) -> str:
    """How a GPU is used: the precision it computes in, and how many jobs share it."""
    if is_cpu(model.device):
        return ""
    shared = f", {number_of(model.sharing, 'job')} a GPU"
    return f"; {used_precision(model.device, model.sizes.config['precision'])}{shared}"


def _adapted(name: str, model: CostModel) -> bool:
    return lora_of(model.sizes.settings(name)) is not None


def _memory(name: str, sizes: Sizes) -> str:
    """What the device must hold, of a model with adapters: a base, and the windows' adapters."""
    held = device_bytes(Facts({"model": name}, sizes))
    layers = sizes.model(name).layers
    return (
        f"device memory: {name}: {in_bytes(held['base'])} for the base, and "
        f"{in_bytes(held['windows'])} where all {layers * (layers + 1) // 2} windows' adapters "
        "retrain side by side; activations come on top"
    )


def _side_by_side(jobs: Sequence[Job], model: CostModel) -> str | None:
    """In how many groups each model's windows retrain, where they don't all fit the device."""
    found: dict[str, list[Fit]] = {}
    for job in jobs:
        parts = model.work(job).steps[0].parts if job.rule == "retrain" else None
        if parts:
            fits = found.setdefault(job.wildcards["model"], [])
            rate = model.rate(job.threads)
            fits.append(fit(parts, rate.room, rate.precision == BFLOAT16))
    said = [text for name, fits in sorted(found.items()) if (text := groups_of(name, fits))]
    return f"windows side by side: {'; '.join(said)}" if said else None


def _tally(bases: Mapping[Any, str]) -> str:
    """ "9 counted, 3 task file", or the one basis that holds for all."""
    counts = {basis: list(bases.values()).count(basis) for basis in sorted(set(bases.values()))}
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {basis}" for basis, count in counts.items())


def refusal(budget: Budget, most: float | None) -> str | None:
    """Why a plan must not run under `budget.max_gpu_hours`; None when it may."""
    if most is None or budget.gpu_hours <= most:
        return None
    return (
        f"this plan needs {budget.gpu_hours:,.1f} GPU-hours, more than budget.max_gpu_hours = "
        f"{most:g}. Ask for fewer targets, tasks, models or seeds, or raise the limit."
    )


def table(budget: Budget) -> list[dict[str, Any]]:
    """The budget as rows of results/budget.tsv (COLUMNS), nan where a column has no meaning.

    kind: "stage" per stage and model, "total", and "makespan" per number of GPUs, "chain".
    """
    rows = [
        {
            "kind": "stage",
            "stage": row.stage,
            "model": row.model,
            "jobs": row.jobs,
            "hours": row.hours,
            "gpu_hours": row.gpu_hours,
            "gpu_hours_low": row.interval[0],
            "gpu_hours_high": row.interval[1],
            "cpu_hours": row.cpu_hours,
            "disk_gb": row.disk / GB,
            "basis": row.factor.basis,
            "measured_jobs": row.factor.n,
        }
        for row in budget.rows
    ]
    low, high = budget.interval
    total = {"kind": "total", "stage": "all", "model": "all", "jobs": budget.jobs}
    total |= {"hours": sum(row.hours for row in budget.rows)}
    total |= {"gpu_hours": budget.gpu_hours, "gpu_hours_low": low, "gpu_hours_high": high}
    total |= {"cpu_hours": budget.cpu_hours, "disk_gb": budget.disk / GB}
    total |= {"basis": "; ".join(budget.notes)}
    rows.append(total)
    whole = {"stage": "all", "model": "all", "jobs": budget.jobs}
    rows += [
        {"kind": "makespan", **whole, "gpus": span.gpus, "makespan_hours": span.hours}
        | {"disk_gb": span.disk / GB, "basis": "list schedule of the plan"}
        for span in budget.makespans
    ]
    chain = {"kind": "chain", "stage": "all", "model": "all", "jobs": len(budget.chain)}
    chain |= {"makespan_hours": budget.chain_hours}
    rows.append(chain | {"basis": " > ".join(map(str, budget.chain))})
    return [{name: row.get(name, float("nan")) for name in COLUMNS} for row in rows]
