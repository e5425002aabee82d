"""Task files: what is accepted, what is refused and in which words."""

import json
import subprocess
import sys

import pytest

from memloc.errors import MemlocError
from memloc.study.sources import local_files
from memloc.study.tasks import (
    as_text,
    label_map,
    load_task,
    task_names,
    task_params,
    text_columns,
)
from shipped import ROOT, SHIPPED, TABLE_1
from task_files import ROWS, SPEC, changed, write

# name: (classes, training rows)


def refuse(tmp_path, spec, *words, name="animals"):
    write(tmp_path, spec)
    with pytest.raises(MemlocError) as caught:
        load_task(name, [tmp_path])
    for word in words:
        assert word in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", task_names([SHIPPED]))
def test_shipped_files_are_valid(name):
    task = load_task(name, [SHIPPED])
    assert task["name"] == name
    assert len(task["labels"]) >= 2


@pytest.mark.parametrize("name", TABLE_1)
def test_paper_tasks_state_table_1(name):
    task = load_task(name, [SHIPPED])
    expected = task["expected"]
    size = expected.get("train") or int(task["split"]["share"] * expected["all"])
    assert (len(task["labels"]), size) == TABLE_1[name]
    assert sum(expected["label_counts"].values()) == expected.get("train", expected.get("all"))
    assert list(expected["label_counts"]) and set(expected["label_counts"]) == set(task["labels"])
    assert task["category"] in ("nlu", "sentiment", "hate", "topic")
    assert {"hub", "dataset"} & set(task["source"])


@pytest.mark.parametrize("name", ["sst5", "emotion", "implicithate", "trec", "reuters"])
def test_binary_variants_keep_the_two_commonest(name):
    whole, two = load_task(name, [SHIPPED]), load_task(f"{name}-binary", [SHIPPED])
    counts = whole["expected"]["label_counts"]
    commonest = sorted(counts, key=counts.get)[-2:]
    assert set(two["labels"]) == set(commonest)
    assert two["labels"] == [label for label in whole["labels"] if label in commonest]
    assert two["expected"]["label_counts"] == {label: counts[label] for label in two["labels"]}
    assert "heldout" not in two["expected"]
    assert two["base"] == name
    assert two["label"].endswith("(binary)")


def test_planning_imports_nothing_heavy():
    code = (
        "import sys, json; import memloc.study.tasks; "
        "print(json.dumps([m for m in ('torch', 'pandas', 'numpy', 'pyarrow', 'huggingface_hub')"
        " if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "workflow",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == []


def test_first_folder_wins(tmp_path):
    write(tmp_path, changed(label="Mine"), name="rte")
    assert load_task("rte", [tmp_path, SHIPPED])["label"] == "Mine"


def test_params_change_with_the_users_data_and_not_with_its_place(tmp_path):
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
        write(place, SPEC, train_csv=ROWS, test_csv=ROWS)
    here, there = (task_params(load_task("animals", [place])) for place in places)
    assert here == there
    assert str(tmp_path) not in json.dumps(here)
    (places[1] / "train.csv").write_text(ROWS + "meows,cat\n")
    assert task_params(load_task("animals", [places[1]])) != here


def test_renaming_in_figures_changes_no_params(tmp_path):
    write(tmp_path, SPEC, train_csv=ROWS, test_csv=ROWS)
    before = task_params(load_task("animals", [tmp_path]))
    write(tmp_path, changed(label="Beasts", category="zoo"))
    assert task_params(load_task("animals", [tmp_path])) == before


def test_order_of_splits_in_the_file_does_not_matter(tmp_path):
    write(tmp_path, SPEC, train_csv=ROWS, test_csv=ROWS)
    first = task_params(load_task("animals", [tmp_path]))
    files = dict(reversed(SPEC["source"]["files"].items()))
    write(tmp_path, changed(source={"files": files}))
    assert task_params(load_task("animals", [tmp_path])) == first


def test_tasks_dir_serves_in_place_of_the_source(tmp_path):
    place = tmp_path / "rte"
    place.mkdir()
    for split in ("train", "validation"):
        (place / f"{split}.tsv").write_text("sentence1\tsentence2\tlabel\na\tb\t0\n")
    task = load_task("rte", [SHIPPED], tmp_path)
    assert sorted(local_files(task)) == [str(place / "train.tsv"), str(place / "validation.tsv")]
    assert task["expected"] == load_task("rte", [SHIPPED])["expected"]


def test_tasks_dir_without_the_task(tmp_path):
    with pytest.raises(MemlocError, match=r"rte/train\.\(tsv.*leave this task out"):
        load_task("rte", [SHIPPED], tmp_path)


def test_tasks_dir_with_two_candidates(tmp_path):
    (tmp_path / "rte").mkdir()
    for ending in ("tsv", "csv.gz"):
        (tmp_path / "rte" / f"train.{ending}").touch()
    with pytest.raises(MemlocError, match=r"train\.tsv and train\.csv\.gz.*Keep one"):
        load_task("rte", [SHIPPED], tmp_path)


def test_unknown_task_suggests_names():
    with pytest.raises(MemlocError, match=r"unknown task 'rtee'.*Did you mean rte"):
        load_task("rtee", [SHIPPED])
    with pytest.raises(MemlocError, match="Did you mean emotion-binary"):
        load_task("emotions-binary", [SHIPPED])


def test_binary_of_two_classes_is_refused():
    with pytest.raises(MemlocError, match="two classes already"):
        load_task("rte-binary", [SHIPPED])


def test_binary_needs_its_key(tmp_path):
    refuse(tmp_path, changed(labels=["a", "b", "c"]), "binary_labels", name="animals-binary")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"labels": ["cat", "cat"]}, ["labels lists 'cat' twice"]),
        ({"labels": ["cat"]}, ["labels", "at least two classes"]),
        ({"labels": [True, False]}, ["labels.", "in quotes"]),
        ({"lables": ["cat"]}, ["unknown key 'lables'", "did you mean 'labels'"]),
        ({"columns": None}, ["columns", "required"]),
        ({"columns": {"text": ["text"]}}, ["columns.label or label_from_score"]),
        ({"columns": {"text": ["label"], "label": "kind"}}, ["'label'", "`text|label`"]),
        ({"columns": {"text": ["text"], "label": "kind", "corrected": "c"}}, ["columns.noisy"]),
        ({"split": {"train": "train", "heldout": "validation"}}, ["source.files.validation"]),
        ({"split": {"all": "train", "share": 1.5}}, ["split"]),
        ({"label_values": {"cow": [1]}}, ["label_values mentions 'cow'", "'cat', 'dog'"]),
        ({"label_values": {"cat": [1], "dog": ["1"]}}, ["'1' stands for both 'cat' and 'dog'"]),
        ({"binary_labels": ["cat", "cow"]}, ["binary_labels mentions 'cow'"]),
        ({"source": {"files": {"train": "a"}, "hub": "a/b", "package": "a==1"}}, ["both `hub`"]),
        ({"source": {}}, ["source names no data", "`dataset`"]),
        ({"source": {"dataset": "a/b", "files": {"train": "a"}}}, ["both `dataset` and `files`"]),
        ({"source": {"folder": "a", "format": "csv"}}, ["both `folder` and `format`"]),
        ({"source": {"files": {"train": "a"}, "config": "x"}}, ["both `files` and `config`"]),
        ({"source": {"hub": "a/b"}}, ["source.hub needs source.files"]),
        ({"source": {"files": {"train": "a"}, "sha256": "0" * 64}}, ["one checksum", "per split"]),
        ({"labels": ["1", "1.0"]}, ["labels '1' and '1.0' are read as one"]),
        ({"labels": ["cat", " "]}, ["blank name", "label_values"]),
        ({"labels": ["x" * 9999]}, ["at least two classes"]),
        ({"labels": [*map(str, range(999)), *map(str, range(999))]}, ["twice"]),
        ({"labels": [*map(str, range(9999))], "binary_labels": ["1", "x"]}, ["mentions 'x'"]),
        ({"split": {"all": "train", "share": float("nan")}}, ["split.share", "between 0 and 1"]),
        ({"columns": {"text": ["x|a", "x|b"], "label": "kind"}}, ["two columns 'x'"]),
        ({"columns": {"text": ["|a"], "label": "kind"}}, ["a column ''"]),
        ({"columns": {"text": ["__row__"], "label": "kind"}}, ["'__row__'", "uses itself"]),
        ({"source": "x" * 9999}, ["source"]),
        ({"source": {"files": {"train": "a"}, "package": "a"}}, ["source.package"]),
        ({"source": {"files": {"train": "a"}, "format": "xls"}}, ["source.format", "xls"]),
    ],
)
def test_refusals_name_file_key_and_remedy(tmp_path, keys, words):
    said = refuse(tmp_path, changed(**keys), *words)
    assert "animals.yaml" in said and len(said) < 1500 and "\n" not in said


def test_key_given_twice(tmp_path):
    (tmp_path / "animals.yaml").write_text("label: a\nlabel: b\n")
    with pytest.raises(MemlocError, match=r"animals\.yaml, line 2: .*'label' is given twice"):
        load_task("animals", [tmp_path])


def test_merged_keys_may_be_overridden(tmp_path):
    path = write(tmp_path, changed(split=None))
    path.write_text(path.read_text() + "split: {<<: {share: 0.5, all: train}, share: 0.8}\n")
    assert load_task("animals", [tmp_path])["split"] == {"all": "train", "share": 0.8}


def test_broken_yaml_and_missing_file(tmp_path):
    (tmp_path / "broken.yaml").write_text("label: [a\n")
    with pytest.raises(MemlocError, match=r"broken\.yaml.*can't be read") as caught:
        load_task("broken", [tmp_path])
    assert "\n" not in str(caught.value)
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(MemlocError, match="key: value"):
        load_task("empty", [tmp_path])
    write(tmp_path, SPEC)
    with pytest.raises(MemlocError, match=r"train\.csv, which does not exist"):
        local_files(
            load_task("animals", [tmp_path]) | {"source": {"files": {"train": ["train.csv"]}}}
        )


def test_one_mapping_serves_all_spellings(tmp_path):
    write(tmp_path, changed(label_values={"cat": [0, False, "Felis"], "dog": [1, True]}))
    names = label_map(load_task("animals", [tmp_path]))
    for raw in (0, "0", 0.0, "0.0", -0.0, "-0.0", False, "False", "false", "Felis", "cat"):
        assert names[as_text(raw)] == "cat"
    for raw in (1, "1", 1.0, "1.00", True, "TRUE", "dog", " dog "):
        assert names[as_text(raw)] == "dog"


def test_text_columns_take_their_first_name(tmp_path):
    spec = changed(columns={"text": ["question|sentence1", "passage"], "label": "kind"})
    write(tmp_path, spec)
    assert text_columns(load_task("animals", [tmp_path])) == ["question", "passage"]


ODD = ["\ufeffcat", "c\0at", "ca\ud800t", "cat\n", "cat\uffff", "\ufdd0"]


@pytest.mark.parametrize("name", ODD, ids=ascii)
@pytest.mark.parametrize("key", ["label", "labels"])
def test_labels_that_no_figure_can_show(tmp_path, key, name):
    value = name if key == "label" else [name, "dog"]
    refuse(tmp_path, changed(**{key: value}), "animals.yaml", key, "U+")


@pytest.mark.parametrize("name", ["Ünïcödé", "猫", "قط", "🐈\u200d⬛", "a b-c_d/1"])
def test_labels_of_any_writing_are_taken(tmp_path, name):
    write(tmp_path, changed(labels=[name, "dog"], label=name))
    assert load_task("animals", [tmp_path])["labels"] == [name, "dog"]


@pytest.mark.parametrize(
    "files",
    [
        {"train": "train.csv", "test": "./train.csv"},
        {"train": ["train.csv", "link.csv"], "test": "test.csv"},
        {"train": "a.zip!rows.csv", "test": "sub/../a.zip!rows.csv"},
    ],
)
def test_a_file_named_twice(tmp_path, files):
    (tmp_path / "link.csv").symlink_to("train.csv")
    (tmp_path / "sub").mkdir()
    refuse(tmp_path, changed(source={"files": files}), "source.files names", "Name each file once")


def test_a_file_may_be_named_for_a_split_that_is_not_read(tmp_path):
    files = {"train": "train.csv", "test": "test.csv", "validation": "train.csv"}
    write(tmp_path, changed(source={"files": files}), train_csv=ROWS, test_csv=ROWS)
    assert load_task("animals", [tmp_path])


@pytest.mark.parametrize(
    "content",
    ["a: 2024-13-45", "[" * 20_000, "a: &x [*x]\n? [1]\n: 2", "a: !!python/object:os.system x",
     "a: " + "9" * 5000, "%TAG ! x", "a: \0"],
)  # fmt: skip
def test_whatever_yaml_stumbles_at_is_one_line(tmp_path, content):
    (tmp_path / "odd.yaml").write_text(content)
    with pytest.raises(MemlocError) as caught:
        load_task("odd", [tmp_path])
    line = str(caught.value)
    assert "odd.yaml" in line and "\n" not in line and len(line) < 700
