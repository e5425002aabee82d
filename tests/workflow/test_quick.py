"""The profile `quick`: from a task of one's own to a page and a sentence; watched from outside."""

import os
import subprocess
import sys

import pytest
import yaml

from memloc.budget import journal
from memloc.store.tables import read_tsv
from study import SNAKEMAKE, snakemake, surroundings, write_study

COMMAND = (*SNAKEMAKE, "--profile", "profiles/quick")


def quick(folder, *arguments):
    return snakemake(folder, *arguments, command=COMMAND).stdout


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The tiny task and model in place of the packaged encoder, trained for seconds."""
    folder = write_study(tmp_path_factory.mktemp("quick"))
    own = {"models": ["tiny"], "model_sources": {"tiny": {"folder": "tiny-bert"}}}
    own["training"] = {"epochs": 40, "learning_rate": 0.01, "batch_size": 8}
    quick = folder / "profiles/quick/study.yaml"
    quick.write_text(yaml.safe_dump(yaml.safe_load(quick.read_text()) | own))
    return folder


def test_the_plan_counts_the_files_before_the_first_job(study):
    given = ("--config", "task_folders=[my-tasks]", "tasks=[toy]", "--")
    said = quick(study, "--dry-run", *given)
    assert "rows: counted" in said and "tokens: from words" in said
    assert not (study / "resources").exists() and not (study / journal.PLACE).exists()
    (study / "my-tasks/odd").mkdir()
    odd = (study / "my-tasks/toy.yaml").read_text().replace("toy/", "odd/")
    (study / "my-tasks/odd.yaml").write_text(odd)
    for split in ("train", "validation"):
        rows = (study / f"my-tasks/toy/{split}.csv").read_text().replace(",yes", ",yse", 1)
        (study / f"my-tasks/odd/{split}.csv").write_text(rows)
    refused = snakemake(
        study, "--config", "task_folders=[my-tasks]", "tasks=[odd]", "--",
        command=COMMAND, check=False,
    )  # fmt: skip
    assert refused.returncode and "'yse'" in refused.stdout and "Traceback" not in refused.stdout
    assert not (study / "resources").exists()


def test_it_ends_in_a_page_and_a_sentence_with_a_short_log(study):
    given = ("--config", "task_folders=[my-tasks]", "tasks=[toy]", "--")
    fetched = quick(study, *given, "fetch")
    assert "task toy: 84 rows" in fetched and "no later job needs a network" in fetched
    assert read_tsv(study / "results/quick/fetched.tsv")["name"].tolist() == ["toy", "tiny"]
    said = quick(study, *given)
    assert "input:" not in said and "output:" not in said
    page = (study / "results/quick/report.html").read_text()
    figures = {path.stem for path in (study / "results/quick/figures").glob("*.png")}
    assert any(name.startswith("matrix_swapping") for name in figures), figures
    assert any(name.startswith("techniques") for name in figures), figures
    assert page.count("<img") >= len(figures)
    run = journal.read(study)
    assert run.ended and {job.state for job in run.jobs.values()} == {journal.DONE}
    assert all(job.took > 0 for job in run.jobs.values())
    answer = said[said.index("results/quick/report.html: ") :].splitlines()[0]
    assert "had learnt" in answer
    command = [sys.executable, "workflow/scripts/show.py", "results/quick"]
    paths = surroundings(PYTHONPATH=str(study / "workflow"))
    shown = subprocess.check_output(command, cwd=study, env=os.environ | paths, text=True)
    sentence, *limits = shown.split("in a browser.\n\n")[1].splitlines()
    assert "Cost: " in shown and sentence in answer
    assert any("It rests on 1 task" in line for line in limits)
    watched = [sys.executable, "-m", "memloc", "status"]
    status = subprocess.check_output(watched, cwd=study, env=os.environ | paths, text=True)
    assert "All that was planned is done" in status
