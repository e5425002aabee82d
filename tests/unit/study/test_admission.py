"""A model that can't do what is asked of it is refused while the study is planned."""

import json

import pytest

from memloc.errors import MemlocError
from memloc.study.admission import REFUSED, TRAIN_HEAD, asked_of, refuse_missing, refuse_unfit

FAULT = {"check": "some check", "outcome": REFUSED, "measured": "by .5"}


def study(**changes):
    return {
        "models": ["mine"],
        "model_sources": {"mine": {"folder": "x"}, "other": {"folder": "y"}},
        "techniques": ["swapping", "retraining"],
        "stages": ["generalisation"],
        "swapping": {"components": ["layer", "mlp"]},
        "retraining": {"train_head": False},
        "training": {"lora": None},
        **changes,
    }


def retrieved(tmp_path, *needed_by, linear=("attention.self.query", "output.dense")):
    (tmp_path / "mine").mkdir()
    exam = [{**FAULT, "needed_by": needed_by}]
    facts = {"exam": exam, "linear_layers": linear}
    (tmp_path / "mine/manifest.json").write_text(json.dumps(facts))
    return str(tmp_path / "{model}")


@pytest.mark.parametrize(
    ("needed_by", "changes"),
    [
        ("retraining", {}),
        ("mlp", {}),
        ("centroids", {"stages": ["centroids"]}),
        ("probing", {"techniques": ["probing"]}),
        (TRAIN_HEAD, {"retraining": {"train_head": True}}),
        (TRAIN_HEAD, {"model_sources": {"mine": {"retraining": {"train_head": True}}}}),
    ],
)
def test_what_the_study_asks_for_is_refused(tmp_path, needed_by, changes):
    with pytest.raises(MemlocError, match=f"mine can't be used for {needed_by} .some check.: by"):
        refuse_unfit(study(**changes), retrieved(tmp_path, needed_by))


@pytest.mark.parametrize(
    ("needed_by", "changes"),
    [
        ("attention", {}),
        ("probing", {}),
        ("mlp", {"techniques": ["retraining"]}),
        (TRAIN_HEAD, {}),
        (TRAIN_HEAD, {"techniques": [], "retraining": {"train_head": True}}),
        ("retraining", {"models": ["other"]}),
    ],
)
def test_what_it_does_not_ask_for_is_none_of_its_business(tmp_path, needed_by, changes):
    refuse_unfit(study(**changes), retrieved(tmp_path, needed_by))


@pytest.mark.parametrize("targets", ["q_proj", "uery", ["query", "q_proj"]])
def test_targets_that_name_no_linear_layer_are_refused(tmp_path, targets):
    wanted = study(training={"lora": {"r": 2, "targets": targets}})
    with pytest.raises(MemlocError, match=r"of mine is named '(q_proj|uery)'; .*'dense', 'query'"):
        refuse_unfit(wanted, retrieved(tmp_path, "probing"))


@pytest.mark.parametrize("targets", ["all-linear", "query", ["self.query", "output.dense"]])
def test_targets_that_name_linear_layers_are_not(tmp_path, targets):
    wanted = study(training={"lora": {"r": 2, "targets": targets}})
    refuse_unfit(wanted, retrieved(tmp_path, "probing"))


def test_asked_is_by_the_models_own_settings():
    config = study(model_sources={"mine": {"retraining": {"train_head": True}}, "other": {}})
    assert TRAIN_HEAD in asked_of(config, "mine") and TRAIN_HEAD not in asked_of(config, "other")


def test_a_folder_without_a_model_is_told_while_the_study_is_planned(tmp_path):
    sources = {"mine": {"folder": str(tmp_path / "own")}, "other": {"folder": "never asked for"}}
    config = study(model_sources=sources)
    for make, said in ((lambda: None, "is no folder"), ((tmp_path / "own").mkdir, "holds no conf")):
        make()
        with pytest.raises(MemlocError, match=rf"model_sources\.mine\.folder: .*own {said}"):
            refuse_missing(config)
    (tmp_path / "own/config.json").write_text("{}")
    refuse_missing(config)
    refuse_missing(study(model_sources={"mine": {"hub": "a/b"}}))
