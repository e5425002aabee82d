"""Studies that find their noisy rows: what is planned, what decides, and what is refused."""

import copy

import pytest
import yaml

from memloc.budget.sizes import Sizes
from memloc.errors import MemlocError
from memloc.study import noise
from memloc.study.config import check_config
from memloc.study.merging import laid_over
from memloc.study.study import Study
from shipped import ROOT

PAPER = yaml.safe_load((ROOT / "config.yaml").read_text())
SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"
TASK_FILE = {
    "label": "T", "category": "nlu", "labels": ["no", "yes"], "columns": {"text": ["text"]},
    "split": {"train": "train", "heldout": "test"}, "expected": {"train": 100, "heldout": 20},
}  # fmt: skip
TASKS = {name: copy.deepcopy(TASK_FILE) for name in [*PAPER["tasks"], "a", "b"]}


def config(found=None, **changes):
    """The paper's settings for tasks a and b and two models; noise is found unless changed."""
    perturbation = {"noise": "found", "found": found or {}}
    small = {"tasks": ["a", "b"], "models": ["opt", "bert"], "stages": []}
    merged = laid_over(PAPER, {**small, "perturbation": perturbation, **changes})
    check_config(merged, SCHEMA)
    return merged


def test_halves_are_made_of_rows_without_marks_only_where_these_are_found():
    found, injected = Study(config(), TASKS), Study({**PAPER, "tasks": ["a", "b"]}, TASKS)
    assert found.halved == found.places.unmarked != found.places.data
    assert injected.halved == injected.places.data and not injected.finds_noise
    word = {"task": "a"}
    assert found.params.unmarked(word)["unmarked"] and "finding" in found.params.labelling(word)
    assert injected.params.labelling(word) == injected.params.perturbation(word)


def test_which_rows_and_models_decide():
    assert noise.criterion(config()) == {"threshold": 0.5}
    assert noise.criterion(config({"share": 0.1})) == {"share": 0.1}
    assert noise.criterion(config({"threshold": 0.7, "by": "opt"})) == {"threshold": 0.7}
    assert noise.finders(config()) == ["bert", "opt"]  # sorted: their order changes nothing
    assert noise.finders(config({"by": "opt"})) == ["opt"]


@pytest.mark.parametrize(
    "found, changes, said",
    [
        ({"threshold": 0.5, "share": 0.1}, {}, "both a threshold and a share: leave one"),
        ({"by": "pythia"}, {}, r"found.by = pythia is none .*opt, bert.*: name one"),
        ({"share": 0.5}, {}, r"perturbation.found.share = 0.5"),
        ({"threshold": 0}, {}, r"perturbation.found.threshold = 0"),
        ({"treshold": 0.4}, {}, r"treshold"),
        (
            {},
            {"generalisation": {"labels": "original"}},
            r"labels = original: .*set",
        ),
        ({}, {"generalisation": {"halves": 19}}, r"halves = 19 .*to 20 or more, or splits: pairs"),
        ({}, {"generalisation": {"halves": 7, "splits": "pairs"}}, r"halves = 7 .* 8 or more$"),
        ({}, {"data_seeds": [0, 1]}, r"data_seeds .*give one data_seed"),
    ],
)
def test_settings_that_contradict_each_other_stop_the_plan(found, changes, said):
    with pytest.raises(MemlocError, match=said):
        config(found, **changes)


def test_settings_of_found_noise_need_it():
    with pytest.raises(MemlocError, match=r"labels are perturbed: set perturbation.noise: found"):
        config(perturbation={"found": {"share": 0.1}})


def test_enough_halves_are_enough():
    config(generalisation={"halves": 8, "splits": "pairs"})
    config(generalisation={"halves": 20})


def test_marked_tasks_and_the_control_setup_are_refused():
    marked = copy.deepcopy(TASKS)
    marked["b"]["columns"]["noisy"] = "wrong"
    with pytest.raises(MemlocError, match=r"task 'b' marks its own .*remove columns.noisy"):
        Study(config(), marked)
    with pytest.raises(MemlocError, match=r"stages: control .* leave control out"):
        Study(config(stages=["control"]), TASKS)
    plan = Study(config(), TASKS)
    with pytest.raises(MemlocError, match=r"stages: control"):
        plan.control.auxiliary_data({"task": "a", "model": "bert", "pair": "layers1-2"})


def test_a_ratio_plays_no_part_where_noise_is_found():
    perturbation = {"noise": "found", "found": {"share": 0.02}, "ratio": 0.9}
    plan = Study(config(perturbation=perturbation, techniques=["retraining"]), TASKS)
    sizes = Sizes(plan.config, TASKS, "nowhere", "nowhere")
    assert sizes.task("a").train == 100 and sizes.task("a").noisy == 2


def test_how_well_noise_is_found_is_asked_only_where_it_is_known():
    both = ["generalisation", "detection"]
    stage = {"stages": ["generalisation"]}
    known = Study(laid_over(PAPER, {"tasks": ["a", "b"], **stage}), TASKS)
    assert known.stage_tables["generalisation"] == both
    assert Study(config(**stage), TASKS).stage_tables["generalisation"] == both[:1]
    original = laid_over(PAPER, {"generalisation": {"labels": "original"}, **stage})
    assert Study(original, TASKS).stage_tables["generalisation"] == both[:1]
