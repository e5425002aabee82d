"""Data sets that `datasets` loads: from a stub of the hub on loopback, and from saved folders."""

import hashlib
import io
import json
import time

import datasets
import huggingface_hub.constants
import pandas as pd
import pytest

from hub_server import COMMIT, serve
from memloc.data.columnar import read_saved, rows_of
from memloc.data.hub_datasets import load
from memloc.data.readers import ROW
from memloc.data.retrieve import retrieve
from memloc.errors import MemlocError
from memloc.store.files import read_json
from memloc.study.sources import local_files
from memloc.study.tasks import load_task, task_params
from task_files import changed, write

CLASSES = datasets.Features(
    {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["cat", "dog"])}
)
SOURCE = {"dataset": "someone/data", "revision": "main"}


def made_up(n=4, text="made up"):
    """A data set of n rows with classes."""
    rows = {"text": [f"{text} {i}" for i in range(n)], "label": [i % 2 for i in range(n)]}
    return datasets.Dataset.from_dict(rows, features=CLASSES)


def parquet(*args):
    held = io.BytesIO()
    made_up(*args).to_parquet(held)
    return held.getvalue()


def card(**files):
    """A card with a configuration per keyword: config -> split -> file."""
    configs = [
        {"config_name": name, "data_files": [{"split": s, "path": p} for s, p in splits.items()]}
        for name, splits in files.items()
    ]
    return f"---\nconfigs: {json.dumps(configs)}\n---\n".encode()


@pytest.fixture
def stub(monkeypatch, tmp_path):
    constants = huggingface_hub.constants
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    monkeypatch.setattr(datasets.config, "USE_PARQUET_EXPORT", False)
    with serve() as server:

        def offline(value):
            monkeypatch.setattr(constants, "HF_HUB_OFFLINE", value)
            monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", value)
            huggingface_hub.close_session()

        def reach(endpoint):
            monkeypatch.setattr(constants, "ENDPOINT", endpoint)
            monkeypatch.setattr(datasets.config, "HF_ENDPOINT", endpoint)
            monkeypatch.setattr(
                constants,
                "HUGGINGFACE_CO_URL_TEMPLATE",
                endpoint + "/{repo_id}/resolve/{revision}/{filename}",
            )

        server.offline, server.reach = offline, reach
        offline(False)
        reach(server.endpoint)
        huggingface_hub.HfFileSystem.clear_instance_cache()
        server.files = {
            "pets/train-00000-of-00001.parquet": parquet(),
            "pets/validation-00000-of-00001.parquet": parquet(2, "held out"),
            "cows/test.parquet": parquet(6, "cow"),
            "README.md": card(
                pets={"train": "pets/train-*", "validation": "pets/validation-*"},
                cows={"test": "cows/test.parquet"},
            ),
        }
        yield server
    huggingface_hub.close_session()


def get(stub, splits=("train", "validation"), **keys):
    waits: list[float] = []
    source = SOURCE | {"config": "pets"} | keys
    return load(
        {key: value for key, value in source.items() if value is not None},
        list(splits),
        attempts=3,
        sleep=waits.append,
    )


def test_splits_configurations_and_names_of_classes(stub):
    tables, served = get(stub)
    assert list(tables["train"]["text"]) == [f"made up {i}" for i in range(4)]
    assert list(tables["train"]["label"]) == ["cat", "dog"] * 2
    assert list(tables["validation"]["text"]) == ["held out 0", "held out 1"]
    assert tables["train"][ROW][1] == "someone/data: pets train row 2"
    assert served["commit"] == COMMIT
    names = ["pets/train-00000-of-00001.parquet", "pets/validation-00000-of-00001.parquet"]
    assert served["files"] == {
        f"someone/data: {name}": hashlib.sha256(stub.files[name]).hexdigest() for name in names
    }


def test_a_second_retrieval_downloads_nothing_and_says_the_same(stub):
    first = get(stub)[1]
    before = [path for method, path, _ in stub.asked if method == "GET" and "resolve" in path]
    assert get(stub)[1] == first
    after = [path for method, path, _ in stub.asked if method == "GET" and "resolve" in path]
    assert after == before


def test_offline_uses_the_cache(stub):
    online = get(stub)
    stub.offline(True)
    asked = len(stub.asked)
    tables, served = get(stub)
    assert served == online[1]
    assert tables["train"].equals(online[0]["train"])
    assert get(stub, revision=COMMIT)[1]["files"] == served["files"]
    assert len(stub.asked) == asked


def test_offline_without_cache_names_the_ways_out(stub):
    stub.offline(True)
    with pytest.raises(MemlocError, match=r"someone/data@main: not in the cache.*tasks_dir"):
        get(stub)
    assert not stub.asked


def test_another_commit_in_the_cache_is_not_the_one_named(stub):
    get(stub)
    stub.offline(True)
    with pytest.raises(MemlocError, match=f"newest state in the cache .* is {COMMIT}"):
        get(stub, revision="3" * 40)


def test_data_that_another_program_prepared_get_their_hashes(stub):
    datasets.load_dataset("hf://datasets/someone/data", "pets", revision="main")
    assert len(get(stub)[1]["files"]) == 2


def test_a_moved_branch_is_another_commit(stub):
    get(stub)
    stub.commit = "2" * 40
    stub.files["pets/train-00000-of-00001.parquet"] = parquet(8)
    tables, served = get(stub)
    assert served["commit"] == "2" * 40
    assert len(tables["train"]) == 8


def test_a_folder_of_the_same_name_is_not_taken_for_it(stub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "someone/data").mkdir(parents=True)
    (tmp_path / "someone/data/train.csv").write_text("text,label\nwrong,0\n")
    assert len(get(stub)[0]["train"]) == 4


@pytest.mark.parametrize(
    ("keys", "splits", "words"),
    [
        ({"config": None}, ["train"], r"someone/data@main: .*pets.*cows.*source\.config"),
        ({"config": "dogs"}, ["train"], r"dogs.*pets.*source\.config"),
        ({}, ["train", "test"], r"no split 'test'; it has 'train', 'validation'.*`split`"),
        ({"dataset": "someone/gone"}, ["train"], "no such data set, or it is private"),
    ],
)
def test_what_there_is_not_is_named_with_what_there_is(stub, keys, splits, words):
    with pytest.raises(MemlocError, match=words):
        get(stub, splits, **keys)


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (403, "GatedRepo", r"gated.*Accept its terms.*HF_TOKEN"),
        (401, "GatedRepo", r"gated.*Accept its terms.*HF_TOKEN"),
        (401, "RepoNotFound", "no such data set, or it is private"),
        (404, "RevisionNotFound", r"no such revision.*source\.revision"),
    ],
)
def test_refusals_stop_at_once(stub, status, code, words):
    stub.faults["HEAD"] = [("error", status, code)]
    with pytest.raises(MemlocError, match=words):
        get(stub)
    assert stub.requests()["HEAD"] == 1


def test_unreachable_says_so_with_remedy(stub, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # the hub's client waits a minute
    stub.reach("http://127.0.0.1:9")
    with pytest.raises(MemlocError, match=r"after 3 attempts.*network.*tasks_dir"):
        get(stub)


def test_no_script_is_run(stub):
    stub.files = {"data.py": b"raise SystemExit('run')", "README.md": b"---\n---\n"}
    with pytest.raises(MemlocError, match=r"is a script, and memloc runs no code.*refs/convert"):
        get(stub)


def test_a_repository_without_data(stub):
    stub.files = {"README.md": b"---\n---\n"}
    with pytest.raises(MemlocError, match="someone/data@main"):
        get(stub, config=None)


def test_unknown_kinds_of_files_are_refused(stub):
    stub.files = {"train.txt": b"a\nb\n"}
    with pytest.raises(MemlocError, match="of the kind 'text'"):
        get(stub, ["train"], config=None)


TEXTS = 'id,text,label\n007,NA,"cat"\n008,"2020-01-01, or so",dog\n'


def test_csv_and_json_files_are_found_by_datasets_and_read_by_us(stub):
    """Leading zeros, a text "NA" and dates stay what they are, and faults have lines."""
    stub.files = {
        "train.csv": TEXTS.encode(),
        "test.csv": TEXTS.replace("cat", "cow").encode(),
    }
    tables, served = get(stub, ["train", "test"], config=None)
    assert tables["train"].drop(columns=ROW).values.tolist() == [
        ["007", "NA", "cat"], ["008", "2020-01-01, or so", "dog"]
    ]  # fmt: skip
    assert tables["test"][ROW][0] == "someone/data: test.csv line 2"
    assert served["files"]["someone/data: train.csv"] == hashlib.sha256(TEXTS.encode()).hexdigest()
    stub.files = {"train.json": b'[{"text": "2020-01-01", "label": "01"}]'}
    stub.commit = "4" * 40
    huggingface_hub.HfFileSystem.clear_instance_cache()
    tables, _ = get(stub, ["train"], config=None)
    assert tables["train"]["text"].tolist() == ["2020-01-01"]


def test_from_task_file_to_table(stub, monkeypatch, tmp_path):
    spec = changed(
        source=SOURCE | {"config": "pets"},
        columns={"text": ["text"], "label": "label"},
        split={"train": "train", "heldout": "validation"},
        expected={"train": 4, "heldout": 2},
    )
    write(tmp_path, spec)
    task = task_params(load_task("animals", [tmp_path]))
    retrieve(task, [], tmp_path / "out.parquet", tmp_path / "m.json")
    manifest = read_json(tmp_path / "m.json")
    assert manifest["source"]["commit"] == COMMIT
    assert manifest["rows"] == {"train": 4, "heldout": 2}
    assert pd.read_parquet(tmp_path / "out.parquet")["label"].tolist() == ["cat", "dog"] * 3
    spec["source"]["sha256"] = {"train": "0" * 64}
    write(tmp_path, spec)
    with pytest.raises(MemlocError, match=r"source\.sha256\.train is 000.*The source has changed"):
        retrieve(
            task_params(load_task("animals", [tmp_path])), [], tmp_path / "o", tmp_path / "m.json"
        )


def test_classes_that_are_unknown_or_listed(tmp_path):
    """-1 is the hub's "no label"; lists of classes are named one by one."""
    features = datasets.Features({"one": CLASSES["label"], "many": datasets.List(CLASSES["label"])})
    data = datasets.Dataset.from_dict(
        {"one": [0, -1, None], "many": [[0, 1], [], None]}, features=features
    )
    rows = [row for _, row in rows_of(data, named=True)]
    assert rows == [
        {"one": "cat", "many": ["cat", "dog"]},
        {"one": None, "many": []},
        {"one": None, "many": None},
    ]


# --- folders of save_to_disk -----------------------------------------------------------------


def retrieve_saved(tmp_path, saved, **keys):
    saved.save_to_disk(tmp_path / "saved")
    spec = changed(source={"folder": "saved"}, columns={"text": ["text"], "label": "label"}, **keys)
    write(tmp_path, spec)
    task = load_task("animals", [tmp_path])
    retrieve(task_params(task), local_files(task), tmp_path / "out.parquet", tmp_path / "m.json")
    return pd.read_parquet(tmp_path / "out.parquet"), read_json(tmp_path / "m.json")


def test_a_saved_folder_with_splits(tmp_path):
    saved = datasets.DatasetDict({"train": made_up(), "test": made_up(2)})
    frame, manifest = retrieve_saved(tmp_path, saved)
    assert frame["label"].tolist() == ["cat", "dog"] * 3
    assert manifest["rows"] == {"train": 4, "heldout": 2}
    hashes = {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (tmp_path / "saved").rglob("*.arrow")
    }
    assert manifest["source"]["files"] == hashes and len(hashes) == 2


def test_a_saved_folder_of_one_table(tmp_path):
    frame, _ = retrieve_saved(tmp_path, made_up(), split={"all": "train", "share": 0.5})
    assert len(frame) == 4
    with pytest.raises(MemlocError, match=r"saved: has no split 'test'; it has 'train'"):
        read_saved(str(tmp_path / "saved"), ["train", "test"])


def test_a_changed_saved_folder_changes_the_params(tmp_path):
    retrieve_saved(tmp_path, made_up(), split={"all": "train", "share": 0.5})
    before = task_params(load_task("animals", [tmp_path]))
    made_up(6).save_to_disk(tmp_path / "saved")
    after = task_params(load_task("animals", [tmp_path]))
    assert before["source"]["content"] != after["source"]["content"]
    assert str(tmp_path) not in json.dumps(after)


@pytest.mark.parametrize("fault", ["no data set", "torn", "lacking"])
def test_folders_that_are_not_whole_are_refused(tmp_path, fault):
    made_up().save_to_disk(tmp_path / "saved")
    (file,) = (tmp_path / "saved").glob("*.arrow")
    if fault == "torn":
        file.write_bytes(file.read_bytes()[:300])
    if fault == "lacking":
        file.unlink()
    if fault == "no data set":
        for path in (tmp_path / "saved").iterdir():
            path.rename(path.with_suffix(".txt"))
    with pytest.raises(MemlocError, match=r"saved can.t be read: .*save_to_disk"):
        read_saved(str(tmp_path / "saved"), ["train"])


def test_a_saved_folder_with_a_split_without_rows(tmp_path):
    some = datasets.Dataset.from_dict({"text": ["purrs"]})
    splits = {"train": some, "test": some.select([])}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "saved")
    assert read_saved(str(tmp_path / "saved"), ["train"])["train"] == [("row 1", {"text": "purrs"})]
    with pytest.raises(MemlocError, match="one of its splits holds no rows"):
        read_saved(str(tmp_path / "saved"), ["train", "test"])
