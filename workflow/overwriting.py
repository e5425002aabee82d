"""Plans that would train again what is there: refused where nobody asked for that, else said first.

A lost or newer file makes Snakemake plan all that hangs on it. So a folder of results that came
without its resources, or whose times a copy has mixed up, would be retrieved, perturbed and trained
anew, over the checkpoints in it.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from snakemake.exceptions import ApiError
from snakemake.io import is_flagged
from snakemake.logging import logger

from memloc.store.files import read_record
from memloc.store.records import differences, is_as_read, made_with, read, record_of
from part import Part

SHOWN = 3
GIVEN = "settings.theta"  # what only checkpoints that were given are made with
OVER_GIVEN = "was given, and this plan would have it trained: name it in given again"
OVER_TRAINED = (
    "was trained by memloc, and this plan would take in over it what given names: take its run "
    "out of given"
)
MISSING, NEWER, SAME = "is missing", "newer", "is the same, but newer"
REMEDIES = {
    MISSING: "Bring what is missing from where these results were made; a model or data can also "
    "be retrieved alone first, by the same command with that path as its target.",
    NEWER: "Where only times are mixed up, as in a copy without them, give the same command with "
    "--touch once: it compares records, and sets times.",
}


def refuse_overwriting(part: Part, resources: str) -> None:
    """Refuse to train over checkpoints unasked; say which trainings are repeated, and why."""
    workflow = part.workflow
    if workflow.touch:
        return
    planned = [job for job in _jobs(part) if workflow.dag.needrun(job)]
    trainings = [(job, found) for job in planned if (found := _checkpoints(job, resources))]
    refused = {}
    for job, folders in trainings:
        there = [folder for folder in folders if folder.is_dir()]
        if there and (causes := _unasked(workflow, job)) is not None:
            refused[job] = (there, causes)
    if refused:
        raise ApiError(_refusal(refused))  # which Snakemake shows without a trace
    if said := _repeated(workflow, trainings):
        logger.warning(said)


def refuse_over_given(part: Part) -> None:
    """Refuse a plan that takes what an earlier one was given as its own training, to train over.

    Nor may what is given replace what was trained, which took hours. A job of a rule that
    --forcerun names may do so, and no other: --forceall names no checkpoint.
    """
    names, forced = part.names(), part.workflow.dag_settings.forcerun
    for job in _jobs(part):
        takes_in = names[job.rule.name] == "take_in"
        for path in (path for path in map(Path, map(str, job.output)) if path.is_dir()):
            if job.rule.name in forced or takes_in == was_given(path, unknown=takes_in):
                continue
            said = OVER_TRAINED if takes_in else OVER_GIVEN
            raise ApiError(
                f"{path} {said}, or give this study a results_dir of its own. Or, where it may go, "
                f"give the same command with --forcerun {job.rule.name}"
            )


def was_given(folder: Path, unknown: bool = False) -> bool:
    """Whether a checkpoint was given, by its record or by what lies beside it; else `unknown`.

    Both stay where the folder itself is gone.
    """
    if record := read(folder):
        return GIVEN in record["made_with"]
    beside = folder.with_name(f"{folder.name}.provenance.json")
    said = read_record(beside, "Delete it")
    return unknown if said is None else {"theta", "source"} <= said.keys()


def _jobs(part: Part) -> Iterator[Any]:
    """All jobs behind what is asked for that are memloc's, inputs first."""
    names = part.names()
    jobs = chain.from_iterable(part.workflow.dag.toposorted())
    return (job for job in jobs if job.rule.name in names)


def _checkpoints(job: Any, resources: str) -> list[Path]:
    """Folders that a job trains; what it takes in is there to be taken in again."""
    folders = [Path(str(file)) for file in job.output if is_flagged(file, "directory")]
    folders = [folder for folder in folders if not folder.is_relative_to(resources)]
    return folders if folders and GIVEN not in made_with({}, dict(job.params.items())) else []


def _unasked(workflow: Any, job: Any) -> list[str] | None:
    """Why a job is planned, where nobody asked for it; None where somebody did.

    What was asked for: to force it or what it hangs on, other settings, other data. The latter two
    only where these results were made here, of which Snakemake has metadata.
    """
    causes: list[str] = []
    if _is_ours(workflow, job) and workflow.dag.reason(job).missing_output:
        return None  # to delete a checkpoint is the way to have it made anew, as is to let it go
    for cause in _causes(workflow.dag, job):
        found = None if workflow.dag.reason(cause).forced else _lost(workflow, cause)
        if found is None:
            return None
        causes += found
    return list(dict.fromkeys(causes))


def _causes(dag: Any, job: Any) -> Iterator[Any]:
    """A job and the planned ones that it hangs on."""
    seen, waiting = {job}, [job]
    while waiting:
        yield (found := waiting.pop())
        further = {other for other in dag.dependencies[found] if dag.needrun(other)} - seen
        seen |= further
        waiting += further


def _lost(workflow: Any, job: Any) -> list[str] | None:
    """What has become of a job's files that makes it run; None: a change that its user has made."""
    reason, is_ours = workflow.dag.reason(job), _is_ours(workflow, job)
    record = next(filter(None, (read(str(file)) for file in job.output)), None)
    if is_ours and (reason.is_provenance_triggered() or _is_changed(job, record)):
        return None
    causes = [f"{file} {MISSING}" for file in sorted(reason.missing_output)]
    if reason.is_provenance_triggered():  # without metadata Snakemake goes by the script's time
        same = "is another" if _is_changed(job, record) else SAME
        causes.append(f"the code of {job.rule.name} {same} than when {job.output[0]} was made")
    places = {path: place for place, path in enumerate(dict.fromkeys(map(str, job.input)))}
    for file in reason.updated_input - reason.updated_input_run:
        same = is_as_read(str(file), places[str(file)], record) if record else None
        if is_ours and not same:
            return None
        said = {True: SAME, False: "is another"}.get(same, f"is {NEWER}")
        causes.append(f"{file} {said} than when {job.output[0]} was made")
    return causes


def _is_ours(workflow: Any, job: Any) -> bool:
    """Whether results of a job were made here, or were taken up by an earlier run.

    Outputs that have been let go, or that were never asked for, have no metadata.
    """
    return any(workflow.persistence.metadata(file) is not None for file in job.output)


def _is_changed(job: Any, record: dict[str, Any] | None) -> bool:
    """Whether a job's settings differ from those that its result was made with."""
    wanted = made_with(job.wildcards_dict, dict(job.params.items()))
    return bool(record and differences(record, wanted))


def _refusal(refused: dict[Any, tuple[list[Path], list[str]]]) -> str:
    folders = [folder for there, _ in refused.values() for folder in there]
    causes = list(dict.fromkeys(cause for _, found in refused.values() for cause in found))
    rules = " ".join(sorted({job.rule.name for job in refused}))
    remedies = [text for word, text in REMEDIES.items() if any(word in cause for cause in causes)]
    return "\n".join(
        [
            f"This plan would train again what is there, and replace {_some(map(str, folders))}",
            f"because {_some(causes)}. Nobody asked for that, so nothing is run.",
            *remedies,
            f"To have it trained again and replaced, add --forcerun {rules}",
        ]
    )


def _repeated(workflow: Any, trainings: list[tuple[Any, list[Path]]]) -> str | None:
    """Which trainings of this plan were done before, and why they are done once more.

    What was given, and no longer is, was never trained.
    """
    dag, again, first = workflow.dag, [], []
    for job, folders in trainings:
        gone = [folder for folder in folders if not folder.is_dir() and record_of(folder).exists()]
        if not gone or dag.reason(job).forced:
            continue
        readers = sorted(str(other.output[0]) for other in dag.depending[job] if dag.needrun(other))
        needed = f" (for {readers[0]})" if readers else ""
        (first if was_given(gone[0]) else again).append(f"{gone[0]} is gone{needed}")
    count = f"{len(again)} training{'s are' if again[1:] else ' is'} repeated"
    lines = [f"{count} because {_some(again)}"] if again else []
    if first:
        lines.append(
            f"{_some(first)}. What lay there was given, and this plan trains it instead: name it "
            "in given again to have it taken in"
        )
    return "\n".join(lines) or None


def _some(said: Any) -> str:
    """A few of many, in words."""
    said = list(said)
    more = f", and {len(said) - SHOWN} more" if said[SHOWN:] else ""
    return ", ".join(said[:SHOWN]) + more
