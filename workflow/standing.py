"""Results that stand already, before a plan goes on from them: were they made as it wants them?

Snakemake knows what a result was made with only where its own metadata are: in the folder that it
ran in, and only if they weren't lost. So a result of another study in the same folder of resources,
or of other settings, would be taken as this plan's. Its own record says better.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from snakemake.exceptions import ApiError
from snakemake.logging import logger
from snakemake.settings.enums import RerunTrigger

import planning
from memloc.store.records import differences, made_with, read
from part import Part

SHOWN = 3


@dataclass(frozen=True)
class Standing:
    """A job that is not planned to run, one of its results, and what is the matter with it."""

    job: Any
    result: Path
    record: dict[str, Any] | None
    differs: list[str]


def check_results(part: Part, results: str, resources: str) -> None:
    """Refuse results that were made with other settings, or nobody knows with which.

    What Snakemake has no metadata of, and was made as this plan wants it, is made known to it: so a
    setting that is changed later makes it anew. `--touch` makes known all that has no record.
    Where params are no reason for Snakemake to run a job (`--rerun-triggers mtime`), it is said, and
    nothing is refused.
    """
    workflow = part.workflow
    if workflow.storage_registry.default_storage_provider is not None:
        return  # planning doesn't look into a storage
    planning.claim_results(workflow, results)
    found = _standing(part)
    other = [one for one in found if one.differs]
    unknown = [one for one in found if one.record is None and not _is_known(workflow, one.job)]
    if workflow.touch:
        _make_known(workflow, unknown)
        unknown = []
    reasons = [*_of_others(other, resources), *_of_unknown(unknown)]
    if reasons and RerunTrigger.PARAMS in workflow.rerun_triggers:
        raise ApiError("\n".join(reasons))  # which Snakemake shows without a trace
    for reason in reasons:
        logger.warning(reason)
    if not workflow.dryrun:
        alike = (one for one in found if one.record and not one.differs)
        _make_known(workflow, (one for one in alike if not _is_known(workflow, one.job)))


def _standing(part: Part) -> list[Standing]:
    dag, names = part.workflow.dag, part.names()
    found = []
    for job in chain.from_iterable(dag.toposorted()):
        if job.rule.name not in names or not job.output or dag.needrun(job):
            continue
        there = [path for path in map(Path, map(str, job.output)) if path.exists()]
        if there:
            records = ((path, read(path)) for path in there)
            result, record = next((pair for pair in records if pair[1]), (there[0], None))
            wanted = made_with(job.wildcards_dict, dict(job.params.items()))
            differs = differences(record, wanted) if record else []
            found.append(Standing(job, result, record, differs))
    return found


def _is_known(workflow: Any, job: Any) -> bool:
    return workflow.persistence.has_metadata(job)


def _make_known(workflow: Any, standing: Iterable[Standing]) -> None:
    for one in standing:
        if all(Path(str(file)).exists() for file in one.job.output):
            workflow.async_run(workflow.persistence.finished(one.job))


def _of_others(standing: list[Standing], resources: str) -> list[str]:
    """What is said of results that were made with other settings."""
    if not standing:
        return []
    shared = any(one.result.is_relative_to(resources) for one in standing)
    where = "resources_dir" if shared else "results_dir"
    lines = [f"{one.result} was made otherwise: {one.differs[0]}" for one in standing[:SHOWN]]
    more = [f"(and {len(standing) - SHOWN} more results)"] if standing[SHOWN:] else []
    rules = " ".join(sorted({one.job.rule.name for one in standing}))
    remedy = (
        f"Go back to those settings, or give this study a {where} of its own; or have it made anew, "
        f"for all that use it: give the same command with --forcerun {rules}"
    )
    return ["\n".join([*lines, *more, remedy])]


def _of_unknown(standing: list[Standing]) -> list[str]:
    """What is said of results of which nobody knows how they were made."""
    if not standing:
        return []
    names = ", ".join(str(one.result) for one in standing[:SHOWN])
    more = f" and {len(standing) - SHOWN} more" if standing[SHOWN:] else ""
    return [
        f"{names}{more}: there is neither a record of what this was made with nor Snakemake's "
        "metadata. Delete it, and it is made anew; or, where you know that it was made with today's "
        "settings, give the same command with --touch once."
    ]
