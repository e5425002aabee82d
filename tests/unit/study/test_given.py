"""Given runs in the plan: what runs, what is refused, and that no rule may train over them."""

import copy
import re

import pytest
import yaml

from memloc.errors import MemlocError
from memloc.study.config import check_config
from memloc.study.study import Study
from memloc.study.techniques import TECHNIQUES
from shipped import ROOT

PAPER = yaml.safe_load((ROOT / "config.yaml").read_text())
SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"


def task(name, **columns):
    return {
        "label": name.upper(),
        "category": "own",
        "labels": ["no", "yes"],
        "columns": {"text": ["text"], "label": "label", **columns},
        "split": {"train": "train", "heldout": "validation"},
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned/config.json").write_text("{}")
    return tmp_path / "tuned"


def run(folder, **changes):
    return {"task": "a", "model": "bert", "theta_M2": str(folder), **changes}


def study(*runs, columns=None, split=None, **changes):
    config = copy.deepcopy(PAPER) | {"tasks": ["a"], "models": ["bert"], "model_seeds": [1]}
    config |= {"given": list(runs), **changes}
    check_config(config, SCHEMA)
    tasks = {n: task(n, **({"noisy": "wrong"} if columns is None else columns)) for n in "ab"}
    if split:
        tasks["a"]["split"] = split
    return Study(config, tasks | {"rte": task("rte")})


def runnable(plan):
    return set(plan.techniques), set(plan.stages) & {"centroids", "no_noise"}


ALONE = {"retraining", "probing", "rewinding-pretrained", "weight-change"}


@pytest.mark.parametrize(
    ("more", "added", "stages"),
    [
        ({}, set(), set()),
        ({"theta_M1": "F"}, {"rewinding-memorised"}, set()),
        ({"theta_O": "F"}, {"swapping", "patching"}, {"centroids"}),
        ({"train_missing": ["theta_O"]}, {"swapping", "patching"}, {"centroids"}),
        ({"train_missing": ["theta_F"]}, {"gradients"}, set()),
        ({"theta_F": "F"}, {"gradients"}, set()),
    ],
)
def test_what_runs_follows_from_what_is_there(folder, more, added, stages):
    more = {k: str(folder) if v == "F" else v for k, v in more.items()}
    plan = study(run(folder, **more))
    assert runnable(plan) == (ALONE | added, stages)
    lines = dict(plan.given_lines)
    for name in TECHNIQUES:
        assert lines[name].startswith("runs" if name in plan.techniques else "left out: it needs")
    assert "control" not in plan.stages and lines["control"].startswith("left out")
    for table in plan.summary_tables:
        assert table not in ("generalisation", "control_accuracy", "progression", "variance")


def test_each_rule_reads_only_what_is_there(folder):
    plan = study(run(folder))
    for technique in plan.techniques.values():
        if technique.rule:
            assert set(plan.given.reads(technique.rule).values()) <= {"theta_M2", "theta_P"}
    gradients = study(run(folder, theta_F=str(folder)))
    rule = gradients.techniques["gradients"].rule
    assert gradients.given.reads(rule) == {"theta_M1": "theta_M2", "theta_F": "theta_F"}
    assert gradients.given.settings(rule) == {"stand_ins": {"theta_M1": "theta_M2"}}
    whole = study(run(folder, theta_M1=str(folder), theta_F=str(folder)))
    assert whole.given.settings(rule) == {}
    assert plan.params.weight_options()["weight-change"] == {"reference": "theta_P"}


def test_without_given_runs_nothing_changes():
    plan = study()
    assert not plan.given and set(plan.techniques) == set(PAPER["techniques"])
    for technique in plan.techniques.values():
        if technique.rule:
            assert plan.given.reads(technique.rule) == {n: n for n in technique.rule.reads}
            assert plan.given.settings(technique.rule) == {}
    for place in ("seed1/perturbed/final", "frozen/final", "x"):
        for taken in (True, False):
            assert not re.fullmatch(plan.given.places(taken), place)
    assert plan.history("perturbed") == "perturbed/history.tsv" and plan.given_lines == []


@pytest.mark.parametrize("trained", [[], ["theta_O"], ["theta_F"], ["theta_F", "theta_O"]])
def test_no_rule_trains_what_isnt_to_be_trained(folder, trained):
    """Each checkpoint of a given task has one rule: it is taken in, trained, or refused."""
    plan = study(run(folder, train_missing=trained))
    places = {"theta_M2": "seed1/perturbed/final", "theta_M1": "seed1/perturbed/memorised",
              "theta_O": "seed1/original/final", "theta_F": "frozen/final"}  # fmt: skip
    for theta, place in places.items():
        pattern = f"(?P<task>{plan.given.trained_tasks(theta)})/bert/{place}"
        ways = [
            bool(re.fullmatch(pattern, f"a/bert/{place}")),
            bool(re.fullmatch(plan.given.places(taken=True), place)),
            bool(re.fullmatch(plan.given.places(taken=False), place)),
        ]
        wanted = [theta in trained, theta == "theta_M2", theta not in (*trained, "theta_M2")]
        assert ways == wanted, theta
        assert plan.given.theta_of(place) == theta
        assert re.fullmatch(pattern, f"aa/bert/{place}"), "another task is trained as ever"
        assert bool(re.fullmatch(pattern, f"a@3/bert/{place}")) == (theta in trained)


def test_a_changed_folder_is_another_source(folder):
    w = {"task": "a", "model": "bert", "checkpoint": "seed1/perturbed/final"}
    before = study(run(folder)).params.given_checkpoint(w)
    assert before["theta"] == "theta_M2" and before["source"]["folder"] == str(folder)
    (folder / "config.json").write_text("{} ")
    assert study(run(folder)).params.given_checkpoint(w) != before


REFUSED = {
    "task": ([{"task": "b"}], ["b/bert/seed1", "a/bert/seed1"]),
    "model": ([{"model": "opt"}], ["a/opt/seed1"]),
    "seed": ([{"seed": 3}], ["a/bert/seed3", "model_seeds"]),
    "twice": ([{}, {}], ["named twice"]),
    "no theta_M2": ([{"theta_M2": None}], ["given.0 names no theta_M2"]),
    "theta_P": ([{"theta_P": "F"}], ["given.0.theta_P", "model_sources"]),
    "no folder": ([{"theta_M2": "nowhere"}], ["theta_M2: nowhere is no folder"]),
    "both": ([{"theta_F": "F", "train_missing": ["theta_F"]}], ["take it out"]),
    "never trained": ([{"train_missing": ["theta_M1"]}], ["train_missing"]),
    "no revision": ([{"theta_M2": {"hub": "a/b"}}], ["theta_M2", "revision"]),
    "unknown key": ([{"theta_X": "F"}], ["unknown key", "theta_X"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_runs_that_are_refused(folder, case):
    changes, words = REFUSED[case]
    runs = [run(folder, **{k: str(folder) if v == "F" else v for k, v in one.items()})
            for one in changes]  # fmt: skip
    runs = [{k: v for k, v in one.items() if v is not None} for one in runs]
    with pytest.raises(MemlocError) as refused:
        study(*runs)
    said = str(refused.value)
    assert said.startswith("configuration: ") and "given" in said and "\n" not in said
    for word in words:
        assert word in said, said


def test_a_checkpoint_in_the_way_of_results(folder):
    results = folder.parent / "results"
    place = results / "a/bert/seed1/perturbed/final"
    place.mkdir(parents=True)
    (place / "config.json").write_text("{}")
    with pytest.raises(MemlocError, match="where the results of a/bert/seed1 go"):
        study(run(place), results_dir=str(results))
    assert study(run(place)).given


def test_a_checkpoint_in_the_way_of_another_runs_results(folder):
    results = folder.parent / "results"
    place = results / "a/bert/seed2/perturbed/final"
    place.mkdir(parents=True)
    (place / "config.json").write_text("{}")
    runs = (run(place, seed=1), run(folder, seed=2))
    with pytest.raises(MemlocError, match="would be lost"):
        study(*runs, results_dir=str(results), model_seeds=[1, 2])
    other = results / "b/bert/seed1/perturbed/final"
    other.mkdir(parents=True)
    (other / "config.json").write_text("{}")
    runs = (run(other), run(folder, task="b"))
    with pytest.raises(MemlocError, match="where the results of b/bert/seed1 go"):
        study(*runs, results_dir=str(results), tasks=["a", "b"])


def test_validation_rows_that_training_may_have_seen(folder):
    plan = study(run(folder), split={"all": "train", "share": 0.8})
    assert "CAUTION" in dict(plan.given_lines)["a"]
    assert "a" not in dict(study(run(folder)).given_lines)


def test_studies_that_are_refused(folder):
    for changes, words in [
        ({"model_seeds": [1, 2]}, "a/bert/seed2 is a run of the study and isn't given"),
        ({"columns": {}}, "columns.noisy"),
        ({"training": PAPER["training"] | {"keep_epochs": [2]}}, "training.keep_epochs"),
        ({"techniques": ["swapping"]}, "no technique can run; swapping is left out"),
    ]:
        with pytest.raises(MemlocError, match=re.escape(words)):
            study(run(folder), **changes)


def test_seeds_have_the_same_checkpoints_and_one_theta_F(folder):
    other = folder.parent / "other"
    other.mkdir()
    (other / "config.json").write_text("{}")
    seeds = {"model_seeds": [1, 2]}
    with pytest.raises(MemlocError, match="same checkpoints and train_missing"):
        study(run(folder), run(folder, seed=2, theta_O=str(other)), **seeds)
    with pytest.raises(MemlocError, match="theta_F is one for all seeds"):
        study(run(folder, theta_F=str(folder)), run(folder, seed=2, theta_F=str(other)), **seeds)
    plan = study(run(folder, theta_F=str(other)), run(folder, seed=2, theta_F=str(other)), **seeds)
    assert [(c["theta"], c["seed"]) for c in plan.given.checkpoints()] == [
        ("theta_M2", 1), ("theta_M2", 2), ("theta_F", 1)
    ]  # fmt: skip


def test_what_is_trained_beside_an_adapter_is_one_of_its_rank(folder):
    lora = {"r": 8, "alpha": 8, "dropout": 0.0, "targets": "all-linear", "base": "float32"}
    asked = run(folder, train_missing=["theta_O"])
    with pytest.raises(MemlocError, match=r"no adapter.*as an adapter of rank 8"):
        study(asked, training=PAPER["training"] | {"lora": lora})
    (folder / "adapter_config.json").write_text('{"r": 4}')
    with pytest.raises(MemlocError, match=r"rank 4.*theta_O as a whole model.*training.lora"):
        study(asked)
    with pytest.raises(MemlocError, match=r"rank 4.*as an adapter of rank 8"):
        study(asked, training=PAPER["training"] | {"lora": lora})
    study(asked, training=PAPER["training"] | {"lora": lora | {"r": 4}})
    study(run(folder))  # nothing is trained beside it
