"""The whole workflow on a tiny model: results, partial re-runs, kills and bad input."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import yaml
from study import N_LAYERS, ROOT, planned, snakemake, write_study
from transformers import AutoModelForSequenceClassification, AutoTokenizer

RUN = Path("results/toy/tiny/seed1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The tiny study, run once."""
    folder = write_study(tmp_path_factory.mktemp("study"))
    snakemake(folder)
    return folder


@pytest.fixture
def copy(finished, tmp_path):
    """A finished study of a test's own, times and Snakemake's records kept."""
    folder = tmp_path / "study"
    shutil.copytree(finished, folder, symlinks=True)
    return folder


def test_a_second_run_has_nothing_to_do(finished):
    assert "Nothing to be done" in snakemake(finished, "--dry-run").stdout


def test_tables_keep_their_contract(finished):
    swap = pd.read_csv(finished / RUN / "swap.tsv", sep="\t")
    assert list(swap) == [
        *("start", "end", "noisy_error", "clean_error", "n_noisy", "n_clean"),
        "noisy_error_normalised",
    ]
    windows = [(s, e) for s in range(1, N_LAYERS + 1) for e in range(s, N_LAYERS + 1)]
    assert list(zip(swap.start, swap.end, strict=True)) == windows
    data = pd.read_parquet(finished / "results/toy/perturbed.parquet")
    train = data[data.split == "train"]
    assert (swap.n_noisy == train.noisy.sum()).all() and train.noisy.sum() == 2 * int(0.15 * 30)
    assert (train.noisy == (train.label != train.original_label)).all()
    examples = pd.read_parquet(finished / RUN / "swap_examples.parquet")
    assert list(examples) == ["index", *(f"{s}-{e}" for s, e in windows)]
    assert set(examples["index"]) == set(train[train.noisy]["index"])
    for row in swap.itertuples():
        assert row.noisy_error == pytest.approx(1 - examples[f"{row.start}-{row.end}"].mean())
    history = pd.read_csv(finished / RUN / "perturbed/history.tsv", sep="\t")
    assert list(history) == [
        *("epoch", "train_loss", "clean_accuracy", "noisy_accuracy", "validation_accuracy"),
        *("validation_macro_f1", "seconds"),
    ]
    assert list(history.epoch) == [1, 2, 3]
    mcog = pd.read_csv(finished / "results/summary/mcog.tsv", sep="\t")
    assert mcog.mcog.between(1, N_LAYERS).all() and "swapping" in set(mcog.technique)


@pytest.mark.parametrize("name", ["original/final", "perturbed/final", "perturbed/memorised"])
def test_checkpoints_are_read_by_from_pretrained(finished, name):
    folder = finished / RUN / name
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert model.config.id2label == {0: "yes", 1: "no"}
    assert model(**tokenizer("w1 w2", return_tensors="pt")).logits.shape == (1, 2)
    subprocess.run(
        ["sha256sum", "--check", f"{Path(name).name}.sha256"], cwd=folder.parent, check=True
    )
    assert not list(folder.glob("*.bin"))


def test_report_is_one_page(finished):
    page = (finished / "results/report.html").read_text()
    assert not re.search(r"""(src|href)=["'](https?:)?//""", page)
    for name in ("figures/mcog.pdf", "figures/mcog.png", "figures/matrix_swapping_toy_tiny.png"):
        assert (finished / "results" / name).stat().st_size > 1000


def test_no_scratch_is_left(finished):
    assert not [path for path in (finished / "results/.scratch").rglob("*") if path.is_file()]


def test_touching_everything_reruns_nothing(copy):
    paths = [path for path in copy.rglob("*") if ".snakemake/" not in str(path.relative_to(copy))]
    for path in sorted(paths, reverse=True):
        os.utime(path)
    assert planned(copy) == {}


def edit(path: Path) -> None:
    path.write_text(path.read_text() + "\n\nEDITED = 1\n")


@pytest.mark.parametrize(
    ("module", "included", "excluded"),
    [
        ("swapping", {"swap"}, {"train_original", "train_perturbed", "perturb_task"}),
        ("training", {"train_original", "train_perturbed"}, {"perturb_task", "retrieve_task"}),
        ("noise", {"perturb_task"}, {"retrieve_task", "retrieve_model"}),
        ("weights", {"summarise"}, {"train_perturbed", "swap"}),
    ],
)
def test_an_edited_module_reruns_its_stage_and_what_depends(copy, module, included, excluded):
    edit(copy / f"workflow/memloc/{module}.py")
    plan = planned(copy)
    assert included | {"report"} <= plan.keys() and not plan.keys() & excluded, plan


def test_a_comment_reruns_nothing(copy):
    for path in (copy / "workflow/memloc").glob("*.py"):
        path.write_text(f"# a remark\n{path.read_text()}")
    assert planned(copy) == {}


def test_a_changed_setting_reruns_what_depends_on_it(copy):
    study = yaml.safe_load((copy / "study.yaml").read_text())
    study["swapping"] = {"clean_examples": "equal"}
    (copy / "study.yaml").write_text(yaml.safe_dump(study))
    plan = planned(copy)
    assert "swap" in plan and not plan.keys() & {"train_original", "train_perturbed"}


def test_changed_data_reruns_from_retrieval(copy):
    path = copy / "my-tasks/toy/train.csv"
    path.write_text(path.read_text() + "w0 w9 w8 w7,yes\n")
    assert {"retrieve_task", "perturb_task", "train_original", "swap"} <= planned(copy).keys()


@pytest.mark.parametrize(
    ("target", "rules"),
    [
        ("resources/tasks/toy.parquet", {"retrieve_task"}),
        ("results/toy/perturbed.parquet", {"retrieve_task", "perturb_task"}),
        (
            "results/toy/tiny/frozen/final",
            {"retrieve_task", "perturb_task", "retrieve_model", "train_frozen"},
        ),
        (
            f"{RUN}/perturbed/memorised",
            {"retrieve_task", "perturb_task", "retrieve_model", "train_perturbed"},
        ),
        (
            f"{RUN}/swap.tsv",
            {"retrieve_task", "perturb_task", "retrieve_model", "train_original"}
            | {"train_perturbed", "swap"},
        ),
    ],
)
def test_single_targets_run_only_their_ancestors(tmp_path, target, rules):
    assert planned(write_study(tmp_path), target).keys() == rules


def test_killed_training_resumes_to_the_same_bits(finished, tmp_path):
    folder = write_study(tmp_path / "killed", training=TRAINING)
    whole = write_study(tmp_path / "whole", training=TRAINING)
    target = f"{RUN}/perturbed/final"
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", "study.yaml"]
    process = subprocess.Popen(
        [*command, target],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    state = folder / "results/.scratch/toy/tiny/seed1/perturbed/state/state.json"
    give_up = time.monotonic() + 120
    while not state.exists() and time.monotonic() < give_up:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert state.exists() and not (folder / target).exists()
    snakemake(folder, "--unlock")
    snakemake(folder, target, "--rerun-incomplete")
    assert "resuming after epoch" in (folder / f"logs/{RUN}/perturbed/training.log").read_text()
    snakemake(whole, target)
    digests = [(place / f"{target}.sha256").read_text() for place in (folder, whole)]
    assert digests[0] == digests[1]


TRAINING = {"epochs": 60, "learning_rate": 0.01, "memorised_above": 0.6}


def test_the_papers_study_is_planned_without_torch(tmp_path):
    script = (
        "import sys, runpy; sys.argv = ['snakemake', '--dry-run', '--quiet', 'all', '--cores', '1'];"
        "import atexit; atexit.register(lambda: print('HEAVY', sorted({'torch', 'transformers'}"
        " & set(sys.modules)), flush=True)); runpy.run_module('snakemake', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "--directory", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "HEAVY []" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]


def study_with(folder, path, value):
    write_study(folder)
    study = yaml.safe_load((folder / "study.yaml").read_text())
    place = study
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place[path[-1]] = value
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    return folder


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("training", "epoch"), 3, ["training.epoch", "did you mean 'epochs'"]),
        (("seeds",), [1], ["unknown key 'seeds'"]),
        (("tasks",), ["toyy"], ["toyy", "toy"]),
        (("models",), ["tinny"], ["tinny", "did you mean 'tiny'", "model_sources"]),
        (("perturbation", "ratio"), 1.0, ["perturbation.ratio", "1.0"]),
        (("perturbation", "ratio"), 0, ["perturbation.ratio", "0"]),
        (("precision",), "float16", ["precision", "float16", "bfloat16"]),
        (("model_sources", "tiny"), {"label": "x"}, ["model_sources.tiny", "hub, folder"]),
    ],
)
def test_bad_configuration_stops_the_plan(tmp_path, path, value, words):
    done = snakemake(study_with(tmp_path, path, value), "--dry-run", check=False)
    assert done.returncode
    for word in words:
        assert word in done.stdout, done.stdout
    assert "Traceback" not in done.stdout


def failing(folder: Path, *targets: str) -> str:
    done = snakemake(folder, *targets, check=False)
    assert done.returncode
    assert not (folder / RUN).exists(), "training had begun"
    return done.stdout


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("w0 w1,maybe", ["train.csv", "maybe", "yes"]),
        (",yes", ["toy", "empty", "drop_empty"]),
    ],
)
def test_bad_rows_stop_before_training(tmp_path, row, words):
    folder = write_study(tmp_path)
    path = folder / "my-tasks/toy/train.csv"
    path.write_text(path.read_text() + row + "\n")
    said = failing(folder)
    for word in words:
        assert word in said, said[-3000:]


def test_too_few_examples_of_a_class(tmp_path):
    folder = write_study(tmp_path, perturbation={"ratio": 0.01})
    said = failing(folder)
    assert "yes" in said and "perturbation.ratio" in said, said[-3000:]


def test_incomplete_model_is_refused(tmp_path):
    folder = write_study(tmp_path)
    model = AutoModelForSequenceClassification.from_pretrained(folder / "tiny-bert")
    weights = model.state_dict()
    weights = {k: v for k, v in weights.items() if "layer.1.output" not in k}
    model.save_pretrained(folder / "tiny-bert", state_dict=weights)
    said = failing(folder)
    assert "tiny-bert" in said and "lacks weights beyond the head's" in said


def test_one_class_is_refused(tmp_path):
    folder = write_study(tmp_path)
    path = folder / "my-tasks/toy.yaml"
    task = yaml.safe_load(path.read_text())
    task["labels"] = ["yes"]
    path.write_text(yaml.safe_dump(task))
    done = snakemake(folder, "--dry-run", check=False)
    assert done.returncode and "toy.yaml" in done.stdout and "labels" in done.stdout
