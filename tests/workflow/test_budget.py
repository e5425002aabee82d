"""The budget that dry runs end with, and the run that is stopped by it. Dry runs, but for one."""

import os
import re
import subprocess
import sys

import pandas as pd
import pytest

from memloc.store.tables import read_tsv
from study import ROOT, copy_workflow, snakemake, write_study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_study(tmp_path_factory.mktemp("budgeted"))


def budget_of(text: str) -> str:
    """What follows Snakemake's own last words."""
    assert "Traceback" not in text, text
    return text[text.rindex("\nBudget: ") + 1 :]


def listed(text: str) -> dict[str, int]:
    """Jobs per stage of a printed budget."""
    found = {}
    rows = budget_of(text).split("\n\n")[1].splitlines()
    for line in rows[1:]:
        stage, _, jobs = line.split()[:3]
        found[stage] = found.get(stage, 0) + int(jobs.replace(",", ""))
    return found


def test_the_paper_is_planned_in_seconds_with_its_account(tmp_path):
    folder = copy_workflow(tmp_path)
    (folder / "mine.yaml").write_text("budget: {device: NVIDIA H100}\n")
    profile = ("--profile", "profiles/slurm", "--configfile", "config.yaml", "mine.yaml")
    text = snakemake(folder, "--dry-run", "--quiet", "rules", *profile).stdout
    said = budget_of(text)
    for part in ("on 1 GPU:", "on 8 GPUs:", "on 64 GPUs:", "longest chain", "11,232", "336"):
        assert part in said, said
    told = (ROOT / "docs/budget.md").read_text()
    lines = said.splitlines()
    assert lines[0] in told
    (cheapest,) = (line.partition("cheapest known: ")[2] for line in lines if "cheapest" in line)
    assert float(cheapest.split()[0]) < 65 and f"cheapest known: {cheapest}" in told
    assert listed(text)["train_perturbed"] == 12 * 4 * 3
    counts = dict(re.findall(r"^(\w+) +(\d+)$", text, flags=re.M))
    assert sum(listed(text).values()) == int(counts["total"]) - 1  # `all` is no job


def test_a_subset_has_its_own_budget(study):
    target = "results/toy/tiny/seed1/swap.tsv"
    text = snakemake(study, "--dry-run", target).stdout
    assert listed(text) == {
        **dict.fromkeys(("retrieve_task", "perturb_task", "retrieve_model"), 1),
        **dict.fromkeys(("train_original", "train_perturbed", "swap"), 1),
    }
    assert "device: CPU" in budget_of(text) or "this machine's" in budget_of(text)


def test_the_shortest_dry_run_still_ends_with_it(study):
    assert "report" in listed(snakemake(study, "--dry-run", "--quiet").stdout)


def test_a_run_over_the_limit_stops_before_its_first_job(study):
    (study / "limit.yaml").write_text("budget: {max_gpu_hours: 1.0e-5}\n")
    limit = ("--configfile", "study.yaml", "limit.yaml")
    target = "results/toy/tiny/seed1/original/final"
    dry = snakemake(study, "--dry-run", target, *limit)
    assert "REFUSED: this plan needs" in budget_of(dry.stdout)
    run = snakemake(study, target, *limit, check=False)
    assert run.returncode != 0 and "budget.max_gpu_hours" in run.stdout
    assert "Traceback" not in run.stdout
    assert not (study / "resources").exists() and not (study / "results").exists()
    assert not list((study / ".snakemake/locks").glob("*"))


def test_the_record_holds_what_a_dry_run_of_everything_says(study):
    said = snakemake(study, "--dry-run", "--forceall").stdout
    snakemake(study, "results/budget.tsv")
    frame = read_tsv(study / "results/budget.tsv")
    stages = frame[frame.kind == "stage"]
    record = stages.groupby("stage").jobs.sum().to_dict()
    assert record == listed(said)
    spans = frame[frame.kind == "makespan"]
    assert spans.gpus.tolist() == [1, 8, 64]
    assert spans.makespan_hours.is_monotonic_decreasing
    assert pd.notna(frame[frame.kind == "total"].gpu_hours).all()
    # whatever has been measured since: the plan hasn't changed
    assert "Nothing to be done" in snakemake(study, "--dry-run", "results/budget.tsv").stdout


def test_a_demo_of_any_stages_can_be_recorded(tmp_path):
    """Where benchmarks lie is read from the rules: stages added later need nothing."""
    runs = ["halves/1", "halves/2", "seed1/centroids", "seed2/centroids", "seed1/epoch2/swap"]
    runs += [f"control/{pair}/original/training" for pair in ("layers1-2", "layers3-4")]
    for name in runs:
        path = tmp_path / f"benchmarks/results/demo/bbc/minilm/{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("s\n12.5\n")
    command = [sys.executable, ROOT / "tests/unit/demo_record.py", tmp_path, "--print"]
    path = {"PYTHONPATH": str(ROOT / "workflow")}
    said = subprocess.check_output(command, cwd=tmp_path, text=True, env=os.environ | path)
    by_stage = said.split("\n\n")[0]
    shown = dict(re.findall(r"^  (\w+) .* actual +(\d+) s", by_stage, flags=re.M))
    assert shown == {
        **dict.fromkeys(("train_half", "centroids", "control_original"), "12"),
        "all": "38",
    }, said
