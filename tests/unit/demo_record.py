"""What a demo's jobs took, as recorded for the test of the cost model.

    python tests/unit/demo_record.py [FOLDER]

records the finished demo in FOLDER (default: this checkout) and prints how well its first half
predicts the second. Worth recording: a run that nothing else on the machine disturbed.
"""

import sys
from pathlib import Path

import pandas as pd
import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "workflow"))

from memloc.actual import finished_jobs, second_half  # noqa: E402
from memloc.cost_model import CostModel, Finished, Job  # noqa: E402
from memloc.rates import cpu_threads  # noqa: E402
from memloc.sizes import Sizes  # noqa: E402
from memloc.tables import read_tsv, write_tsv  # noqa: E402
from memloc.tasks import load_task  # noqa: E402

RECORD = ROOT / "tests/unit/data/demo_benchmarks.tsv"
KEYS = ("task", "model", "seed", "windows")
COLUMNS = ["rule", *KEYS, "device", "seconds", "ended"]
PAIR, RUN = "results/demo/{task}/{model}", "results/demo/{task}/{model}/seed{seed}"
PLACES = {
    "train_original": (f"{RUN}/original/training", f"{RUN}/original/final/provenance"),
    "train_perturbed": (f"{RUN}/perturbed/training", f"{RUN}/perturbed/final/provenance"),
    "train_frozen": (f"{PAIR}/frozen/training", f"{PAIR}/frozen/final/provenance"),
    "swap": (f"{RUN}/swap", f"{RUN}/swap.tsv.provenance"),
    "retrain": (f"{RUN}/retrain/{{windows}}", f"{RUN}/retrain/{{windows}}.tsv.provenance"),
    "gradients": (f"{RUN}/gradients", f"{RUN}/gradients.tsv.provenance"),
    "probe": (f"{RUN}/probe", f"{RUN}/probes.tsv.provenance"),
}


def demo_config() -> dict:
    """The demo's configuration: what differs, laid over the study's."""
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    for key, value in yaml.safe_load((ROOT / "profiles/demo/study.yaml").read_text()).items():
        config[key] = {**config[key], **value} if isinstance(value, dict) else value
    return config


def measure(folder: Path) -> list[Finished]:
    """Device jobs of a finished demo; those without a record ran on the CPU."""
    patterns = {
        rule: (f"benchmarks/{benchmark}.tsv", [f"{record}.json"])
        for rule, (benchmark, record) in PLACES.items()
    }
    found = finished_jobs(patterns, at_most=None, root=folder)
    return [(job, device or "CPU (1 threads)", *rest) for job, device, *rest in found]


def write_record(jobs: list[Finished]) -> None:
    """Write jobs to RECORD, times from the first end on."""
    first = min(ended for *_, ended in jobs)
    rows = [
        {"rule": job.rule, **{key: job.wildcards.get(key, "") for key in KEYS}}
        | {"device": device, "seconds": seconds, "ended": round(ended - first)}
        for job, device, seconds, ended in jobs
    ]
    write_tsv(pd.DataFrame(rows), RECORD, COLUMNS)


def read_record() -> list[Finished]:
    """The jobs in RECORD."""
    jobs = []
    for row in read_tsv(RECORD, COLUMNS).to_dict("records"):
        wildcards = {key: str(row[key]) for key in KEYS if row[key] != ""}
        job = Job(row["rule"], wildcards, threads=cpu_threads(row["device"]))
        jobs.append((job, row["device"], row["seconds"], row["ended"]))
    return jobs


def later_half(jobs: list[Finished]) -> dict[str, tuple[float, float]]:
    """Per stage and for all: seconds predicted and actual of the later half of the jobs."""
    config = demo_config()
    tasks = {name: load_task(name, [ROOT / "workflow/tasks"]) for name in config["tasks"]}
    sizes = Sizes(config, tasks, "not yet", "not yet")
    return second_half(jobs, lambda first: CostModel(sizes, None, first))


if __name__ == "__main__":
    write_record(measure(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT)))
    for stage, (predicted, actual) in later_half(read_record()).items():
        off = f"{predicted / actual - 1:+.0%}"
        print(f"{stage}: predicted {predicted:.0f} s, actual {actual:.0f} s, {off}")
