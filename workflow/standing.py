"""Results that stand already, before a plan goes on from them: were they made as it wants them?

Snakemake knows what a result was made with only where its own metadata are: in the folder that it
ran in, and only if they weren't lost. So a result of another study in the same folder of resources,
or of other settings, would be taken as this plan's. Its own record says better.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from snakemake.exceptions import ApiError
from snakemake.logging import logger
from snakemake.settings.enums import RerunTrigger

import planning
from memloc.store.records import differences, is_as_read, made_with, read
from memloc.study.noted import note_settings
from overwriting import refuse_overwriting
from part import Part

SHOWN = 3


@dataclass(frozen=True)
class Standing:
    """A job whose results this plan goes by, one of them, and what differs from what is wanted."""

    job: Any
    result: Path
    record: dict[str, Any] | None
    differs: list[str]


def check_results(part: Part, config: Mapping[str, Any]) -> None:
    """Refuse results that were made with other settings, or nobody knows with which.

    What Snakemake has no metadata of, and was made as this plan wants it, is made known to it: so a
    setting that is changed later makes it anew. `--touch` makes known all that has no record.
    Where params are no reason for Snakemake to run a job (`--rerun-triggers mtime`), nothing is
    refused; it is said.
    """
    workflow, results, resources = part.workflow, config["results_dir"], config["resources_dir"]
    if workflow.storage_registry.default_storage_provider is not None:
        return  # planning doesn't look into a storage
    planning.claim_results(workflow, results)
    found = list(_standing(part, resources))
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
    refuse_overwriting(part, resources)
    if not workflow.dryrun:
        note_settings(config, results)
        alike = (one for one in found if one.record and not one.differs)
        stays = (one for one in alike if not workflow.dag.needrun(one.job))
        _make_known(workflow, (one for one in stays if not _is_known(workflow, one.job)))


def _standing(part: Part, resources: str) -> Iterator[Standing]:
    """Results of jobs that are not planned to run, and resources that are planned to be replaced.

    The latter, unless they are forced, where they are another study's: Snakemake has no metadata.
    So are results that --touch would make this study's.
    """
    workflow, dag, names = part.workflow, part.workflow.dag, part.names()
    for job in chain.from_iterable(dag.toposorted()):
        there = [path for path in map(Path, map(str, job.output)) if path.exists()]
        if job.rule.name not in names or not there:
            continue
        if dag.needrun(job) and (
            dag.reason(job).forced
            or not (workflow.touch or there[0].is_relative_to(resources))
            or _is_known(workflow, job)
        ):
            continue
        records = ((path, read(path)) for path in there)
        result, record = next((pair for pair in records if pair[1]), (there[0], None))
        if record or not dag.needrun(job):
            yield Standing(job, result, record, _differs(workflow, job, record) if record else [])


def _differs(workflow: Any, job: Any, record: dict[str, Any]) -> list[str]:
    """What a result was made with, or of, that isn't what this plan has, in words.

    Of inputs Snakemake knows by itself where it has metadata.
    """
    found = differences(record, made_with(job.wildcards_dict, dict(job.params.items())))
    if found or _is_known(workflow, job):
        return found
    paths = dict.fromkeys(map(str, job.input))
    return [
        f"{path} is another than the one that it was made from"
        for place, path in enumerate(paths)
        if is_as_read(path, place, record) is False
    ]


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
        f"Go back to those settings, or give this study a {where} of its own. Or have it made "
        f"anew, for all that use it: give the same command with --forcerun {rules}"
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
        "metadata. Delete it, and it is made anew. Or, where you know that it was made with "
        "today's settings, give the same command with --touch once."
    ]
