"""The hub path against a stub on loopback: retries, time-outs, cut downloads, clear refusals."""

import functools
import io
import time
import types

import huggingface_hub.constants
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hub_server import COMMIT, serve
from memloc.data import hub as hub_module
from memloc.data.hub import fetch
from memloc.data.retrieve import retrieve
from memloc.errors import MemlocError
from memloc.store.files import read_json
from memloc.study.tasks import load_task, task_params
from task_files import changed, write

FILE = "data/train-00000-of-00001.parquet"


def parquet(n: int = 4) -> bytes:
    """A made-up table of n rows as parquet bytes."""
    table = pa.table(
        {"text": [f"made up {i}" for i in range(n)], "label": [i % 2 for i in range(n)]}
    )
    held = io.BytesIO()
    pq.write_table(table, held)
    return held.getvalue()


@pytest.fixture
def stub(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    # The client library has pauses of its own, which a test need not sit out.
    impatient = types.SimpleNamespace(**vars(time) | {"sleep": lambda seconds: None})
    for module in ("utils._http", "file_download"):
        monkeypatch.setattr(f"huggingface_hub.{module}.time", impatient)
    # Offline mode is built into the client, which tests set; make one without it.
    huggingface_hub.close_session()
    with serve() as server:
        server.files = {FILE: parquet(), "data/test.parquet": parquet(2)}
        server.cache = tmp_path / "cache"
        yield server
    huggingface_hub.close_session()


def get(stub, files=(FILE,), repo="someone/data", revision="main", **options):
    waits: list[float] = []
    options = {"attempts": 3, "timeout": 5, "sleep": waits.append} | options
    found = fetch(repo, revision, list(files), endpoint=stub.endpoint, cache=stub.cache, **options)
    return *found, waits


def test_files_and_commit(stub):
    paths, commit, waits = get(stub, [FILE, "data/test.parquet"])
    assert [path.read_bytes() for path in paths] == list(stub.files.values())
    assert commit == COMMIT
    assert waits == []


def test_later_files_are_asked_of_the_first_ones_commit(stub):
    get(stub, [FILE, "data/test.parquet"])
    assert all(COMMIT in path for _, path, _ in stub.asked if "test.parquet" in path)


def test_second_retrieval_downloads_nothing(stub):
    get(stub)
    before = stub.requests()["GET"]
    get(stub)
    assert stub.requests()["GET"] == before


@pytest.mark.parametrize("status", [500, 503, 429])
def test_server_trouble_is_waited_out(stub, status):
    stub.faults["GET"] = [status] * 2
    paths, _, _ = get(stub, attempts=4)
    assert paths[0].read_bytes() == stub.files[FILE]


def test_cut_download_ends_whole(stub):
    stub.files[FILE] = parquet(5000)
    stub.faults["GET"] = ["cut"]
    paths, _, _ = get(stub)
    assert paths[0].read_bytes() == stub.files[FILE]


def test_slow_server_times_out_and_is_asked_again(stub):
    stub.faults["HEAD"] = ["slow"]
    paths, _, _ = get(stub, timeout=0.2, attempts=100)  # one of which is answered in time
    assert paths[0].exists()
    assert stub.requests()["HEAD"] >= 2


def test_unreachable_says_so_with_remedy(stub):
    stub.endpoint = "http://127.0.0.1:9"
    with pytest.raises(MemlocError, match=r"after 3 attempts.*network.*tasks_dir"):
        get(stub)


def test_waits_grow(stub):
    stub.endpoint = "http://127.0.0.1:9"
    waits: list[float] = []
    with pytest.raises(MemlocError):
        get(stub, pause=1.0, sleep=waits.append)
    assert waits == [1.0, 2.0]


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (403, "GatedRepo", "gated.*Accept its terms.*HF_TOKEN"),
        (401, "RepoNotFound", "no such data set, or it is private.*source.hub"),
        (404, "RevisionNotFound", "no such revision.*source.revision"),
        (404, "EntryNotFound", "no such file.*source.files"),
    ],
)
def test_refusals_stop_at_once(stub, status, code, words):
    stub.faults["HEAD"] = [("error", status, code)]
    with pytest.raises(MemlocError, match=words):
        get(stub)
    assert stub.requests()["HEAD"] == 1


def test_offline_without_cache_names_the_ways_out(stub, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(MemlocError, match=r"switched off.*tasks_dir"):
        get(stub)
    assert not stub.asked


def test_offline_uses_the_cache(stub, monkeypatch):
    paths, commit, _ = get(stub)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert get(stub)[:2] == (paths, commit)


def test_programming_errors_are_not_retried(monkeypatch):
    def broken(*_, **__):
        raise KeyError("ours")

    monkeypatch.setattr(hub_module, "hf_hub_download", broken)
    with pytest.raises(KeyError):
        fetch("someone/data", "main", [FILE])


def test_from_task_file_to_table_through_the_hub(stub, monkeypatch, tmp_path, caplog):
    """A branch that moves between two retrievals is reported, with both commits."""
    real = functools.partial(fetch, endpoint=stub.endpoint, cache=stub.cache)
    monkeypatch.setattr(hub_module, "fetch", real)
    files = {"train": FILE, "test": "data/test.parquet"}
    spec = changed(
        source={"hub": "someone/data", "revision": "refs/convert/parquet", "files": files},
        columns={"text": ["text"], "label": "label"},
        label_values={"cat": [0], "dog": [1]},
        expected={"train": 4, "heldout": 2},
    )
    write(tmp_path, spec)
    task = task_params(load_task("animals", [tmp_path]))
    output, manifest = tmp_path / "out.parquet", tmp_path / "manifest.json"
    retrieve(task, [], output, manifest)
    first = read_json(manifest)
    assert first["source"]["commit"] == COMMIT
    assert first["differs_from_earlier"] == []

    stub.commit = "2" * 40
    stub.files[FILE] = parquet(4).replace(b"made", b"MADE")
    retrieve(task, [], output, manifest)
    second = read_json(manifest)
    assert second["source"]["commit"] == "2" * 40
    assert f"commit: was {COMMIT}, is {'2' * 40}" in second["differs_from_earlier"]
    assert "differs from an earlier retrieval: files" in caplog.text

    stub.files[FILE] = parquet(6)
    stub.commit = "3" * 40
    with pytest.raises(MemlocError, match=r"expected\.train is 4, but the source has 6"):
        retrieve(task, [], output, manifest)
