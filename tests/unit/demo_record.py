"""What a demo's jobs took, as recorded for the test of the cost model.

    PYTHONPATH=workflow python tests/unit/demo_record.py [FOLDER] [--print]

records the finished demo in FOLDER (default: this checkout) and prints how well its first half
predicts the second; with --print the record stays as it is. Worth recording: a run that nothing
else on the machine disturbed. Rules and their records are read from the workflow itself, so that
stages added later need nothing here.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import yaml

from memloc.budget.devices import cpu_threads
from memloc.budget.finished import finished_jobs
from memloc.budget.model import CostModel, Finished, Job
from memloc.budget.sizes import Sizes
from memloc.budget.stages import stage_of
from memloc.store.tables import read_tsv, write_tsv
from memloc.study.tasks import load_task

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests/unit/demo_benchmarks.tsv"
COLUMNS = ["rule", "wildcards", "device", "seconds", "ended"]
DEMO = ROOT / "profiles/demo/study.yaml"
DEVICE = "CPU (1 threads)"  # of jobs without a record
# Retrieval hangs on the network; the budget's own job runs before all others.
LEFT_OUT = ("retrieve_task", "retrieve_model", "budget")


def second_half(
    finished: Sequence[Finished],
    model_of: Callable[[list[Finished]], CostModel],
    by_stage: bool = True,
) -> dict[str, tuple[float, float]]:
    """Per stage, seconds predicted and actual of the later half of the jobs. Under "all": the sum.

    `model_of(finished)` makes a CostModel, which the earlier half calibrates: that of each stage's
    jobs (`by_stage`; stages with a single job are left out), or of all jobs' seconds in the order
    they ended, where a stage may have no earlier job to learn from.
    """
    first, later = (_halves_by_stage if by_stage else _halves_in_time)(finished)
    model: CostModel = model_of(first)
    sums: dict[str, tuple[float, float]] = {}
    for job, _, seconds, _ in later:
        for name in (stage_of(job.rule) or job.rule, "all"):
            predicted, actual = sums.get(name, (0.0, 0.0))
            sums[name] = (predicted + model.estimate(job).seconds, actual + seconds)
    return sums


def _halves_by_stage(finished: Sequence[Finished]) -> tuple[list[Finished], list[Finished]]:
    first: list[Finished] = []
    later: list[Finished] = []
    for stage in dict.fromkeys(stage_of(job.rule) for job, *_ in finished):
        own = sorted((f for f in finished if stage_of(f[0].rule) == stage), key=lambda f: f[3])
        half = (len(own) + 1) // 2
        first, later = first + own[:half], later + own[half:]
    return first, later


def _halves_in_time(finished: Sequence[Finished]) -> tuple[list[Finished], list[Finished]]:
    """Jobs that ended while half of all seconds were spent, and the others."""
    ordered = sorted(finished, key=lambda f: f[3])
    half, spent = sum(seconds for _, _, seconds, _ in ordered) / 2, 0.0
    for place, (_, _, seconds, _) in enumerate(ordered):
        spent += seconds
        if spent > half:
            return ordered[: place + 1], ordered[place + 1 :]
    return ordered, []


def demo_config() -> dict:
    """The demo's configuration: what differs, laid over the study's."""
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    for key, value in yaml.safe_load(DEMO.read_text()).items():
        config[key] = {**config[key], **value} if isinstance(value, dict) else value
    return config


def demo_patterns() -> dict[str, tuple[str, list[str]]]:
    """Where each rule's benchmark and records lie, see `actual.finished_jobs`."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import ConfigSettings, OutputSettings, Quietness, ResourceSettings

    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        plan = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(configfiles=[DEMO]),
            snakefile=ROOT / "Snakefile",
            workdir=ROOT,
        )
        workflow = plan._workflow
        import part
        import planning

        return planning.benchmark_patterns(part.Part.of(workflow))


def measure(folder: Path) -> list[Finished]:
    """Jobs of a finished demo."""
    found = finished_jobs(demo_patterns(), at_most=None, root=folder)
    return [
        (job, device or DEVICE, *rest)
        for job, device, *rest in found
        if stage_of(job.rule) and job.rule not in LEFT_OUT
    ]


def write_record(jobs: list[Finished]) -> None:
    """Write jobs to RECORD, times from the first end on."""
    first = min(ended for *_, ended in jobs)
    rows = [
        {"rule": job.rule, "wildcards": " ".join(f"{k}={v}" for k, v in job.wildcards.items())}
        | {"device": device, "seconds": seconds, "ended": round(ended - first)}
        for job, device, seconds, ended in sorted(jobs, key=lambda found: found[3])
    ]
    write_tsv(pd.DataFrame(rows), RECORD, COLUMNS)


def read_record() -> list[Finished]:
    """The jobs in RECORD."""
    jobs = []
    for row in read_tsv(RECORD, COLUMNS).to_dict("records"):
        wildcards = dict(pair.split("=", 1) for pair in str(row["wildcards"]).split())
        job = Job(row["rule"], wildcards, threads=cpu_threads(row["device"]))
        jobs.append((job, row["device"], row["seconds"], row["ended"]))
    return jobs


def later_half(jobs: list[Finished], by_stage: bool = True) -> dict[str, tuple[float, float]]:
    """Per stage and for all: seconds predicted and actual of the later half of the jobs.

    Halves of every stage's jobs, or of the whole run in time.
    """
    config = demo_config()
    names = [*config["tasks"], config["control"]["auxiliary"]]
    tasks = {name: load_task(name, [ROOT / "workflow/tasks"]) for name in names}
    sizes = Sizes(config, tasks, "not yet", "not yet")
    return second_half(jobs, lambda first: CostModel(sizes, None, first), by_stage)


def show(title: str, found: dict[str, tuple[float, float]]) -> None:
    """Print predicted and actual seconds by stage, those of all last."""
    print(f"\n{title}")
    for stage, (predicted, actual) in sorted(found.items(), key=lambda entry: entry[0] == "all"):
        off = f"{predicted / actual - 1:+.0%}"
        print(f"  {stage:26} predicted {predicted:7.0f} s  actual {actual:7.0f} s  {off:>6}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--print", action="store_true", help="leave the record as it is")
    chosen = parser.parse_args()
    measured = measure(chosen.folder.resolve())
    if not measured:
        print(f"no finished demo in {chosen.folder}: what {RECORD.name} holds")
        measured = read_record()
    elif not chosen.print:
        write_record(measured)
    show("the later half of every stage's jobs:", later_half(measured))
    show("the later half of the run, in time:", later_half(measured, by_stage=False))
