"""The control setup on a tiny model: what its target makes, and what its checks refuse."""

import re

import pandas as pd
import pytest
import yaml
from transformers import AutoModelForSequenceClassification

from study import ROOT, copy_folder, planned, snakemake, write_model, write_study, write_task

SUMMARY = "results/summary"
CONTROL = {
    "auxiliary": "aid",
    "auxiliary_learning_rate": 1.0e-3,
    "pairs": [[1, 3]],  # layers apart
    "validation_tasks": ["other"],
    "learning_rates": [0.02],
    "training": {"epochs": 2},
}


def control_study(folder, **changes):
    study = dict(tasks=["toy", "other"], techniques=["swapping", "gradients"], stages=[])
    write_study(folder, **{**study, "control": CONTROL, **changes})
    write_model(folder / "tiny-bert", layers=3)
    write_task(folder / "my-tasks", "other")
    write_task(folder / "my-tasks", "aid", ("a", "b", "c"))
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The tiny study with its control setup, asked for by its target."""
    folder = control_study(tmp_path_factory.mktemp("control"))
    snakemake(folder, "control")
    return folder


def test_the_target_makes_tables_figures_and_the_page(finished):
    accuracy = pd.read_csv(finished / SUMMARY / "control_accuracy.tsv", sep="\t")
    assert set(accuracy.technique) == {"swapping", "gradients"}
    assert set(accuracy.pair) == {"layers1-3"} and set(accuracy.k) == {1, 2}
    assert set(accuracy.design) == {"apart"} and accuracy.chance.round(6).eq(0.666667).all()
    assert accuracy.accuracy.between(0, 1).all() and (accuracy.accuracy == accuracy.shuffled).all()
    assert set(zip(accuracy.technique, accuracy.scores, strict=True)) == {
        ("swapping", "weights"), ("swapping", "one-layer"), ("gradients", "weights"),
    }  # fmt: skip
    techniques = pd.read_csv(finished / SUMMARY / "control_techniques.tsv", sep="\t")
    assert (
        set(techniques[techniques.k == 1].claim) == {"too few tasks"} and (techniques.n == 1).all()
    )
    assert set(accuracy[accuracy.role == "validation"].task) == {"other"}
    variants = pd.read_csv(finished / SUMMARY / "gradient_variants.tsv", sep="\t")
    assert len(variants) == 8 * 2 and variants.paper.isna().all()
    training = pd.read_csv(finished / SUMMARY / "control_training.tsv", sep="\t")
    assert len(training) == 2 * 3 and set(training.pair) == {"layers1-3", "frozen"}
    assert set(training.learning_rate) <= {0.01, 0.02}
    assert (training[training.pair == "frozen"].rates_tried == 1).all()
    page = (finished / "results/report.html").read_text()
    assert "figure-control_accuracy" in page and "figure-gradient_variants_tiny" in page
    assert "a random guess gets" in page and "two layers apart from each other" in page
    assert not [p for p in (finished / "results/.scratch").rglob("*") if p.is_file()]


def test_control_models_are_read_by_from_pretrained(finished):
    folder = finished / "results/toy/tiny/control"
    for name in ("layers1-3/original/final", "layers1-3/perturbed/memorised", "frozen/final"):
        model = AutoModelForSequenceClassification.from_pretrained(folder / name)
        assert model.config.id2label == {0: "yes", 1: "no"}


def test_the_page_keeps_what_was_asked_for_once(finished):
    assert planned(finished) == {}
    assert planned(finished, "control") == {}


def test_other_tasks_neither_need_the_control_setup_nor_train_it(finished):
    """What was asked for once is no part of a study that it can't be made for, or isn't for yet."""
    write_task(finished / "my-tasks", "third")
    for tasks in ("[toy]", "[aid]", "[toy,other,third]"):
        plan = planned(finished, before=("--config", f"tasks={tasks}"))
        assert "report" in plan and not [name for name in plan if "control" in name]


def test_a_missing_table_is_made_again_for_the_page(finished):
    table = finished / SUMMARY / "gradient_variants.tsv"
    table.rename(finished / "aside.tsv")
    assert planned(finished).get("summarise_variants") == 1
    (finished / "aside.tsv").rename(table)
    assert planned(finished) == {}


def test_thresholds_train_only_what_they_can_change(finished):
    (finished / "lower.yaml").write_text("training: {memorised_above: 0.7}\n")
    plan = planned(finished, before=("--configfile", "study.yaml", "lower.yaml"))
    assert plan["control_perturbed"] == 2
    assert not {"control_original", "control_frozen", "train_original"} & set(plan)
    (finished / "lower.yaml").write_text("control: {accuracy_above: 0.9}\n")
    plan = planned(finished, before=("--configfile", "study.yaml", "lower.yaml"))
    assert plan["control_original"] == 2 and "control_frozen" not in plan


def test_the_budget_leaves_out_finished_jobs_of_other_studies(finished, tmp_path):
    """Their records lie beside those of this study, whose configuration doesn't describe them."""
    folder = tmp_path / "study"
    copy_folder(finished, folder)
    for name in ("other", "aid"):
        (folder / f"my-tasks/{name}.yaml").unlink()
    study = yaml.safe_load((folder / "study.yaml").read_text())
    study["model_sources"]["renamed"] = study["model_sources"].pop("tiny")
    study |= {"tasks": ["toy"], "models": ["renamed"]}
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    snakemake(folder, "results/budget.tsv")
    assert set(pd.read_csv(folder / "results/budget.tsv", sep="\t").model) <= {"all", "renamed"}


def test_pairs_on_the_command_line_and_no_frozen_model_that_nobody_reads(tmp_path):
    folder = control_study(tmp_path, techniques=["swapping"])
    pairs = ("--config", "control={pairs: [[1, 2]], auxiliary: aid, validation_tasks: []}")
    plan = planned(folder, "control", before=pairs)
    assert plan["control_original"] == 2 and "control_frozen" not in plan


def test_without_the_target_the_page_says_how_to_get_it(tmp_path):
    plan = planned(control_study(tmp_path))
    assert "report" in plan and not [name for name in plan if name.startswith("control")]


@pytest.mark.parametrize(
    ("changes", "target", "words"),
    [
        ({"auxiliary": "toy", "tasks": ["toy"]}, "all", ["control.auxiliary", "'toy'", "another"]),
        ({"pairs": [[2, 4]]}, "control", ["control.pairs", "[2, 4]", "model of 3"]),
        ({"pairs": [[3, 1]]}, "control", ["control.pairs", "[3, 1]", "lower one first"]),
        ({"validation_tasks": ["mrpc"]}, "control", ["validation_tasks", "'mrpc'", "toy, other"]),
        ({}, "results/aid/tiny/control/frozen/final", ["control.auxiliary", "'aid'"]),
        ({}, "results/toy/tiny/control/layers2-4/swap.tsv", ["[2, 4]", "within 1 to 3"]),
        ({"training": {"keep_epochs": [1]}}, "all", ["control.training.keep_epochs"]),
        ({"auxiliary": "nothing"}, "control", ["nothing"]),
        ({"accuracy_above": 1}, "control", ["control.accuracy_above"]),
        ({"learning_rates": 0.1}, "control", ["control.learning_rates", "as [0.1]"]),
        ({"pairs": "first"}, "control", ["control.pairs = 'first': give auto or a list"]),
        ({}, "results/toy/tiny/control/layers01-02/swap.tsv", ["No rule to produce"]),
        (
            {"validation_tasks": []},
            "results/figures/gradient_variants_tiny.png",
            ["control.validation_tasks names no task"],
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(tmp_path, changes, target, words):
    folder = control_study(tmp_path, control={**CONTROL, **changes})
    study = yaml.safe_load((folder / "study.yaml").read_text())
    study["model_sources"]["tiny"]["layers"] = 3
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    done = snakemake(folder, "--dry-run", "--", target, check=False)
    assert done.returncode, done.stdout
    for word in words:
        assert word in done.stdout, done.stdout
    assert "Traceback (most recent" not in done.stdout  # Snakemake's own names lines of rules alone


def test_the_papers_study_includes_the_control_setup():
    text = (ROOT / "config.yaml").read_text()
    assert "control" in yaml.safe_load(text)["stages"]
    assert re.search(r"validation_tasks: auto", text)
