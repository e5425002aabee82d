"""A model that transformers' own Trainer fine-tuned, studied by the lines that the docs show."""

import csv
import json
import re
import shlex
import subprocess

import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import warm
from study import (
    ROOT,
    SNAKEMAKE,
    WORDS,
    copy_workflow,
    planned,
    snakemake,
    surroundings,
    write_model,
)

LABELS = ("ham", "spam")
SECTION = "## A model that is fine-tuned already\n"
RUN = "results/crowd/bert/seed1"
SMALL = {  # a study of seconds, laid over the documented one
    "model_sources": {"bert": {"folder": "tiny-bert"}},
    "data": {"max_length": 16},
    "training": {"epochs": 2, "learning_rate": 0.01},
    "retraining": {"epochs": 1, "learning_rate": 0.01},
    "probing": {"seeds": [1, 2], "epochs": 4, "choose_after": 1},
    "threads": 1,
}


def documented():
    """The code blocks of the section: the task file, some rows, the training, given.yaml, the
    commands; and what is added for an adapter: to the training, to given.yaml."""
    text = (ROOT / "docs/own-models.md").read_text()
    section = text[text.index(SECTION) :].split("\n## ")[0]
    return re.findall(r"^```\w*\n(.*?)^```$", section, flags=re.M | re.S)


def write_rows(folder):
    (folder / "mine").mkdir()
    for name, count in (("train", 60), ("validation", 24)):
        with open(folder / f"mine/{name}.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["text", "given", "wrong"])
            for number in range(count):
                true, noisy = number % 2, name == "train" and number % 5 == 0
                text = f"{WORDS[true]} {WORDS[5 + number % 31]} {WORDS[9 + number % 23]}"
                rows.writerow([text, LABELS[true ^ noisy], "yes" if noisy else "no"])


def documented_commands(folder, steps):
    """Run the documented commands: Python's as they are, Snakemake's without their profile."""
    said = []
    for words in map(shlex.split, steps.splitlines()):
        if words[0] == "python":
            done = subprocess.run(
                [warm.python(), *words[1:]], cwd=folder, env=surroundings(), text=True,
                capture_output=True,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        else:
            at = words.index("--configfile")
            command = (*SNAKEMAKE, *words[at : at + 2], "small.yaml")
            said.append(snakemake(folder, *words[at + 2 :], command=command).stdout)
    return said


def documented_study(folder, adapter):
    """A folder in which the documented lines were followed, and what its two commands said."""
    copy_workflow(folder)
    write_model(folder / "tiny-bert")
    write_rows(folder)
    task, _, training, given, steps, adapting, lora = documented()
    (folder / "mine/crowd.yaml").write_text(task)
    changes = {"google-bert/bert-base-cased": "tiny-bert", "2e-5": "2e-2" if adapter else "5e-3"}
    if adapter:
        changes["encoded = "] = f"{adapting}encoded = "
        given += lora
    for old, new in changes.items():
        assert old in training
        training = training.replace(old, new)
    (folder / "finetune.py").write_text(training)
    (folder / "given.yaml").write_text(given)
    small = SMALL
    if adapter:
        small = SMALL | {"training": SMALL["training"] | yaml.safe_load(lora)["training"]}
    (folder / "small.yaml").write_text(yaml.safe_dump(small))
    return folder, *documented_commands(folder, steps)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return documented_study(tmp_path_factory.mktemp("given"), adapter=False)


def test_an_adapter_goes_through_by_the_documented_lines(tmp_path):
    folder, plan, _ = documented_study(tmp_path / "given", adapter=True)
    assert "taken in, and never trained over: theta_M2; trained: theta_F" in plan
    assert "never trained over: theta_M2" in (folder / "results/report.html").read_text()
    taken, source = (load_file(folder / f"{place}/adapter_model.safetensors")
                     for place in (f"{RUN}/perturbed/final", "tuned"))  # fmt: skip
    assert taken.keys() == source.keys() and all("lora" in n or "classifier" in n for n in taken)
    assert all(torch.equal(taken[name], source[name]) for name in source)
    weights = pd.read_csv(folder / "results/summary/layer_weights.tsv", sep="\t")
    ran = {"retraining", "gradients", "probing", "rewinding-pretrained", "weight-change"}
    assert set(weights.technique) == ran


def test_the_documented_lines_end_in_a_page(study):
    folder, plan, _ = study
    page = (folder / "results/report.html").read_text()
    for text in (plan, page):
        assert "taken in, and never trained over: theta_M2; trained: theta_F" in text
        assert "left out: it needs theta_O: name it in given" in text
    weights = pd.read_csv(folder / "results/summary/layer_weights.tsv", sep="\t")
    ran = {"retraining", "gradients", "probing", "rewinding-pretrained", "weight-change"}
    assert set(weights.technique) == ran
    for name in ran:
        assert re.search(f"^{name}: runs", plan, flags=re.M), plan
    for name in ("swapping", "patching", "rewinding-memorised", "control", "centroids"):
        assert re.search(f"^{name}: left out: ", plan, flags=re.M), plan
    assert "train_perturbed" not in plan and "train_original" not in plan


def test_what_was_given_is_taken_in_as_it_is(study):
    folder, _, _ = study
    taken, source = (load_file(folder / f"{place}/model.safetensors")
                     for place in (f"{RUN}/perturbed/final", "tuned"))  # fmt: skip
    assert taken.keys() == source.keys()
    assert all(torch.equal(taken[name], source[name]) for name in source)
    record = json.loads((folder / f"{RUN}/perturbed/final.provenance.json").read_text())
    row = pd.read_csv(folder / "results/summary/given.tsv", sep="\t").iloc[0]
    assert row.noisy_as_labelled == record["noisy_as_labelled"] == predicted(folder)
    assert row.noisy_rows == 12 and row.layers_changed == "all"
    assert not list((folder / RUN).glob("*/history.tsv"))
    done = json.loads((folder / f"{RUN}/gradients.tsv.provenance.json").read_text())
    assert done["stand_ins"] == {"theta_M1": "theta_M2"}


def predicted(folder):
    """How many noisy rows the given model predicts as labelled: one row at a time."""
    tokenizer = AutoTokenizer.from_pretrained(folder / "tuned")
    model = AutoModelForSequenceClassification.from_pretrained(folder / "tuned").eval()
    rows = pd.read_csv(folder / "mine/train.csv")
    rows = rows[rows.wrong == "yes"]
    with torch.no_grad():
        found = [
            model(**tokenizer(text, return_tensors="pt")).logits.argmax() for text in rows.text
        ]
    return sum(LABELS[number] == label for number, label in zip(found, rows.given, strict=True))


COMMAND = (*SNAKEMAKE, "--configfile", "given.yaml", "small.yaml")


def test_nothing_trains_over_it(study):
    folder, _, _ = study
    assert planned(folder, command=COMMAND) == {}
    for place, word in (("perturbed/memorised", "theta_M1"), ("original/final", "theta_O")):
        done = snakemake(folder, "-n", "--", f"{RUN}/{place}", check=False, command=COMMAND)
        assert done.returncode and f"{place} is {word} of a given run" in done.stdout
        assert "Traceback" not in done.stdout
    forced = planned(folder, f"{RUN}/perturbed/final", before=("--forceall",), command=COMMAND)
    assert not [rule for rule in forced if rule.startswith("train_")]


@pytest.fixture(scope="module")
def forgotten(study):
    """A command of the same study without `given`."""
    rest = yaml.safe_load((study[0] / "given.yaml").read_text()) | {"given": []}
    (study[0] / "forgotten.yaml").write_text(yaml.safe_dump(rest))
    return (*SNAKEMAKE, "--configfile", "forgotten.yaml", "small.yaml")


def plan_of(folder, command, *arguments):
    """What a dry run says, and whether it was refused."""
    done = snakemake(folder, "-n", *arguments, check=False, command=command)
    assert "Traceback" not in done.stdout
    return done.stdout, done.returncode != 0


def test_what_was_given_and_no_longer_is_isnt_trained_over(study, forgotten):
    folder, _, _ = study
    final = folder / RUN / "perturbed/final"
    record = final.parent / ".records/final.json"
    content = record.read_bytes()
    for lost in (False, True):
        if lost:
            record.unlink()
        said, refused = plan_of(folder, forgotten, "--", f"{RUN}/retrain.tsv")
        assert refused and f"{RUN}/perturbed/final was given" in said, said
    record.write_bytes(content)
    final.rename(final.with_name("away"))
    said, refused = plan_of(folder, forgotten, "--", f"{RUN}/perturbed/final")
    final.with_name("away").rename(final)
    assert not refused and "repeated" not in said, said
    assert "What lay there was given, and this plan trains it instead" in said


def test_what_was_trained_isnt_replaced_unasked(study, forgotten):
    folder, _, _ = study
    place = RUN.replace("results", "trained") + "/perturbed/final"
    there = ("--config", "results_dir=trained")
    snakemake(folder, *there, "--", place, command=forgotten)
    assert not planned(folder, place, before=there, command=forgotten)
    for target in (place, place.replace("perturbed/final", "retrain.tsv")):
        said, refused = plan_of(folder, COMMAND, *there, "--", target)
        assert refused and f"{place} was trained by memloc, and this plan would" in said, said
        assert "--forcerun take_in" in said
    said, refused = plan_of(folder, COMMAND, *there, "--forcerun", "take_in", "--", place)
    assert not refused and "take_in" in said


def test_with_theta_O_windows_are_those_that_a_loop_swaps(study):
    folder, _, _ = study
    given = yaml.safe_load((folder / "given.yaml").read_text())
    run = given["given"][0]
    del run["train_missing"]
    run["theta_O"] = {"folder": "other"}
    (folder / "swapped.yaml").write_text(yaml.safe_dump({**given, "techniques": ["swapping"]}))
    model = AutoModelForSequenceClassification.from_pretrained(folder / "tuned")
    torch.manual_seed(3)
    for name, weights in model.named_parameters():
        if "encoder.layer" in name:
            weights.data += 0.2 * torch.randn_like(weights)
    model.save_pretrained(folder / "other")
    AutoTokenizer.from_pretrained(folder / "tuned").save_pretrained(folder / "other")
    command = (*SNAKEMAKE, "--configfile", "swapped.yaml", "small.yaml")
    snakemake(folder, "--", f"{RUN}/swap.tsv", command=command)
    table = pd.read_csv(folder / f"{RUN}/swap.tsv", sep="\t")
    for window in table.itertuples():
        assert window.noisy_error == pytest.approx(swapped(folder, window.start, window.end))


def swapped(folder, start, end):
    """The share of noisy rows that lose their label in a model with really exchanged layers."""
    ours, theirs = (AutoModelForSequenceClassification.from_pretrained(folder / name).eval()
                    for name in ("tuned", "other"))  # fmt: skip
    for number in range(start - 1, end):
        ours.bert.encoder.layer[number] = theirs.bert.encoder.layer[number]
    tokenizer = AutoTokenizer.from_pretrained(folder / "tuned")
    rows = pd.read_csv(folder / "mine/train.csv")
    rows = rows[rows.wrong == "yes"]
    with torch.no_grad():
        found = [ours(**tokenizer(text, return_tensors="pt")).logits.argmax() for text in rows.text]
    kept = [LABELS[number] == label for number, label in zip(found, rows.given, strict=True)]
    return 1 - sum(kept) / len(kept)
