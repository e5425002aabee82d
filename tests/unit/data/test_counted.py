"""What a plan counts in a task's own files is what retrieval will find in them."""

import json

import pandas as pd
import pytest

from memloc.budget.sizes import Sizes
from memloc.data import counted
from memloc.data.counted import count
from memloc.data.retrieve import retrieve
from memloc.errors import MemlocError
from memloc.study.sources import local_files
from memloc.study.tasks import load_task, task_params
from task_files import changed, write

TRAIN = "text,kind\npurrs a lot!,cat\nbarks,dog\nflies,bird\nbarks,dog\n"
TEST = "text,kind\nhisses,cat\n"
CONFIG = {
    "data": {"max_train": None, "max_heldout": None, "max_length": 16},
    "perturbation": {"ratio": 0.15, "found": {}},
}


def task(folder, train=TRAIN, **keys):
    write(
        folder, changed(filters={"drop_labels": ["bird"]}, **keys), train_csv=train, test_csv=TEST
    )
    return load_task("animals", [folder])


def sizes(folder, found):
    results = str(folder / "results")
    return Sizes(
        CONFIG, {"animals": found}, results, str(folder / "res"), lambda name: count(found)
    )


def test_rows_are_those_that_retrieval_leaves(tmp_path):
    found = task(tmp_path)
    manifest = tmp_path / "res/tasks/animals.manifest.json"
    before = sizes(tmp_path, found).task("animals")
    retrieve(task_params(found), local_files(found), tmp_path / "res/tasks/a.parquet", manifest)
    after = sizes(tmp_path, found).task("animals")
    assert count(found)["rows"] == json.loads(manifest.read_text())["rows"]
    assert (before.train, before.validation, before.rows_basis) == (3, 0, "counted")
    assert (before.train, before.test, before.rows_basis) == (
        *(after.train, after.test),
        after.rows_basis,
    )


def test_words_of_training_texts_by_hand(tmp_path):
    """purrs a lot ! | barks | barks: 4, 1 and 1 words; an input has some 1.1 x 1 + 2 tokens."""
    found = task(tmp_path)
    median, spread = count(found)["words"]
    assert median == 1 and spread > 0
    size = sizes(tmp_path, found).task("animals")
    assert size.median == pytest.approx(3.1) and size.tokens_basis == "from words"


@pytest.mark.parametrize(("text", "words"), [
    ("It's 3.5 km.", 8), ("猫が好き", 4), ("кот, пёс", 3), ("", 0), ("한국어 text", 4),
])  # fmt: skip
def test_writing_without_spaces_counts_characters(text, words):
    frame = pd.DataFrame({"text": [text]})
    assert counted._words(frame)[0] == max(1, words)


def test_several_text_columns_are_one_input():
    frame = pd.DataFrame({"a": ["one two"] * 3, "b": ["three"] * 3})
    assert counted._words(frame) == [3, 0]


def test_a_faulty_file_is_refused_by_the_plan_as_by_retrieval(tmp_path):
    found = task(tmp_path, train=TRAIN.replace("flies,bird", "flies,brid"))
    with pytest.raises(MemlocError) as planned:
        sizes(tmp_path, found).task("animals")
    with pytest.raises(MemlocError) as retrieved:
        retrieve(
            task_params(found), local_files(found), tmp_path / "a.parquet", tmp_path / "a.json"
        )
    assert str(planned.value) == str(retrieved.value) and "brid" in str(planned.value)


def test_large_files_and_data_from_elsewhere_are_not_read(tmp_path, monkeypatch):
    found = task(tmp_path)
    monkeypatch.setattr(counted, "LARGEST", 10)
    assert count(found) is None
    assert sizes(tmp_path, found).task("animals").rows_basis == "assumed"
    source = {"hub": "me/animals", "files": {"train": "a.csv", "test": "b.csv"}}
    write(tmp_path, changed(source=source))
    assert count(load_task("animals", [tmp_path])) is None
