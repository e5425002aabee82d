"""Bad input stops with an error that names key or row, value and remedy, before any training."""

from pathlib import Path

import pytest
import yaml
from transformers import AutoModelForSequenceClassification

from study import snakemake, write_study, write_task

RUN = Path("results/toy/tiny/seed1")


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
        (("techniques",), ["swaping"], ["swaping", "did you mean 'swapping'", "Known: gradients"]),
        (("perturbation", "ratio"), 1.0, ["perturbation.ratio", "1.0"]),
        (("perturbation", "ratio"), 0, ["perturbation.ratio", "0"]),
        (("training", "learning_rate"), float("nan"), ["training.learning_rate", "finite"]),
        (("training", "epochs"), 3.0, ["training.epochs", "3.0"]),
        (("probing",), {"epochs": 5, "choose_after": 5}, ["probing.choose_after", "5"]),
        (("precision",), "float16", ["precision", "float16", "bfloat16"]),
        (("model_sources", "tiny"), {"label": "x"}, ["model_sources.tiny", "hub, folder"]),
        (("perturbation", "ratio"), 0.6, ["perturbation.ratio = 0.6", "toy", "below 0.5"]),
        (("tasks",), ["a/b"], ["'a/b' can't be a name", "Rename the task file"]),
        (("tasks",), ["a{b}"], ["'a{b}' can't be a name", "Rename the task file"]),
        (("tasks",), ["summary"], ["'summary'", "folder of the results"]),
        (("model_sources", "a{b}"), {"folder": "x"}, ["'a{b}' can't be a name", "the model"]),
        (("results_dir",), "out{1}", ["results_dir", "out{1}", "braces"]),
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


@pytest.mark.parametrize("name", ["2-9", "from-3"])
def test_a_window_outside_the_model_is_refused(tmp_path, name):
    folder = write_study(tmp_path)
    said = failing(folder, f"{RUN}/retrain/{name}.tsv")
    assert name in said and "2" in said, said[-3000:]


def test_a_model_without_tokenizer_is_refused(tmp_path):
    folder = write_study(tmp_path)
    for path in (folder / "tiny-bert").glob("tokenizer*"):
        path.unlink()
    assert "there is no tokenizer" in failing(folder)


def test_half_the_labels_may_be_noisy_where_nothing_is_retrained(tmp_path):
    folder = study_with(tmp_path, ("perturbation", "ratio"), 0.5)
    only = ("--config", "techniques=[swapping]", "--")
    assert snakemake(folder, "--dry-run", *only, f"{RUN}/swap.tsv").returncode == 0
    asked = snakemake(folder, "--dry-run", *only, f"{RUN}/retrain/all.tsv", check=False)
    assert asked.returncode and "layer retraining of task 'toy'" in asked.stdout


def test_two_figures_of_one_name_are_refused(tmp_path):
    folder = write_study(tmp_path, tasks=["a", "a_b"], models=["c", "b_c"])
    for name in ("a", "a_b"):
        write_task(folder / "my-tasks", name)
    study = yaml.safe_load((folder / "study.yaml").read_text())
    study["model_sources"] = {name: {"folder": "tiny-bert"} for name in ("c", "b_c")}
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    done = snakemake(folder, "--dry-run", check=False)
    assert done.returncode and "Traceback" not in done.stdout
    for word in ("a_b/c", "a/b_c", "Rename a task or model"):
        assert word in done.stdout, done.stdout
    # without the one, the other's name is read as what it is
    alone = snakemake(folder, "--dry-run", "--config", "models=[c]", "--",
                      "results/figures/centroids_a_b_c.png")  # fmt: skip
    assert "results/a_b/c/seed1/centroids.tsv" in alone.stdout


def test_a_key_twice_stops_the_plan_wherever_settings_come_from(tmp_path):
    folder = write_study(tmp_path)
    twice = "tasks: [toy]\nmodels: [tiny]\ntasks: [toyy]\n"
    indented = "config:\n" + "".join(f"  {line}\n" for line in twice.splitlines())
    (folder / "twice.yaml").write_text(twice)
    (folder / "own").mkdir()
    (folder / "own/config.yaml").write_text(indented)
    defaults = (folder / "config.yaml").read_text()
    for words, where in [
        (["--configfile", "twice.yaml"], "twice.yaml, line 3"),
        (["--profile", "own"], "own/config.yaml, line 4"),
        ([], f"config.yaml, line {len(defaults.splitlines()) + 1}"),
    ]:
        if not words:
            (folder / "config.yaml").write_text(defaults + "tasks: [toy]\n")
        done = snakemake(folder, "--dry-run", *words, check=False)
        assert done.returncode and f"{where}: the key 'tasks' is given twice" in done.stdout
        assert "Traceback" not in done.stdout
