"""Predicted against actual: what finished jobs took, beside what the cost model said."""

import csv
import glob
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memloc.budget.budget import HOUR
from memloc.budget.devices import cpu_threads
from memloc.budget.model import Finished, Job
from memloc.budget.stages import stage_of
from memloc.store.files import read_record, reading
from memloc.study.places import CHECKPOINTS, SUBJECTS

COLUMNS = ["stage", "model", "jobs", "finished", "predicted_hours", "actual_hours", "ratio"]
READ_AT_MOST = 40  # files of a rule that are read, spread over all it has

KEPT = ("recipe", "reading", "precision", "jobs_per_gpu", "device_bytes")  # of a job's record
DEEP = {"subject": SUBJECTS, "checkpoint": CHECKPOINTS}  # wildcards that hold slashes
# A name, and what its rule allows: two rules' files may differ in that alone.
WILDCARD = re.compile(r"{(\w+)(?:,((?:[^{}]|{\d+(?:,\d*)?})*))?}")


def finished_jobs(
    patterns: Mapping[str, tuple[str, Sequence[str]]],
    at_most: int | None = READ_AT_MOST,
    root: str | Path = ".",
) -> list[Finished]:
    """Jobs whose benchmark file exists: the job, its device, its seconds, and when it ended.

    `patterns`: rule -> its benchmark file and the records that may lie beside its results, all
    with {wildcards}, or {wildcards,and what they may be}. Seconds are the benchmark's, or the
    record's where a resumed job took more.
    """
    found = []
    for rule, (benchmark, records) in patterns.items():
        files = list(_matching(benchmark, Path(root)))
        step = max(1, math.ceil(len(files) / at_most)) if at_most else 1
        for path, wildcards in files[::step]:
            seconds = benchmark_seconds(path)
            if seconds is None:
                continue
            record = _record(records, wildcards, Path(root))
            seconds = max(seconds, record.get("seconds") or 0.0)
            said = {key: record[key] for key in KEPT if record.get(key)}
            job = Job(rule, wildcards, threads=cpu_threads(record.get("device")), record=said)
            found.append((job, record.get("device"), seconds, path.stat().st_mtime))
    return found


def compare(
    predicted: Iterable[Mapping[str, Any]], finished: Iterable[Finished]
) -> list[dict[str, Any]]:
    """A row per stage and model that has finished jobs (COLUMNS); hours are wall-clock.

    `predicted`: stage rows of results/budget.tsv; the prediction is scaled to the jobs that
    finished, so that a run in its middle can be compared too.
    """
    actual: dict[tuple[str, str], list[float]] = {}
    for job, _, seconds, _ in finished:
        stage = stage_of(job.rule) or job.rule
        model = job.wildcards.get("model") if stage != "figures" else None
        actual.setdefault((stage, model or "all"), []).append(seconds)
    rows = []
    for row in predicted:
        times = actual.get((row["stage"], row["model"]))
        if row["kind"] != "stage" or not times:
            continue
        jobs = int(float(row["jobs"]))
        hours = float(row["hours"]) * len(times) / jobs
        took = sum(times) / HOUR
        names = {"stage": row["stage"], "model": row["model"], "jobs": jobs}
        names |= {"finished": len(times), "predicted_hours": hours, "actual_hours": took}
        rows.append(names | {"ratio": took / hours if hours else float("nan")})
    return rows


def _matching(pattern: str, root: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Existing files of a pattern with their wildcards, in the order of their names."""
    expression, end, seen = "", 0, set()
    for found in WILDCARD.finditer(pattern):
        name, allowed = found[1], found[2] or DEEP.get(found[1], "[^/]+")
        expression += re.escape(pattern[end : found.start()])
        expression += f"(?P={name})" if name in seen else f"(?P<{name}>{allowed})"
        end = found.end()
        seen.add(name)
    expression += re.escape(pattern[end:])
    wide = WILDCARD.sub(lambda found: "**" if found[1] in DEEP else "*", pattern)
    for name in sorted(glob.glob(wide, root_dir=root, recursive=True)):
        match = re.fullmatch(expression, name)
        if match:
            yield root / name, match.groupdict()


def benchmark_seconds(path: Path) -> float | None:
    """Wall-clock seconds of a benchmark file; None where it holds none."""
    with (
        reading(path, "Delete it: it only says how long a job took"),
        open(path, newline="", encoding="utf-8") as file,
    ):
        values = [row.get("s") for row in csv.DictReader(file, delimiter="\t")]
    try:
        return float(values[-1] or "") if values else None
    except ValueError:
        return None


def _record(patterns: Sequence[str], wildcards: Mapping[str, str], root: Path) -> dict[str, Any]:
    """The first provenance record of a job that exists; empty without one."""
    for pattern in patterns:
        path = root / WILDCARD.sub(lambda match: wildcards[match[1]], pattern)
        if record := read_record(path, "Delete it: it only says how its result was made"):
            return record
    return {}
