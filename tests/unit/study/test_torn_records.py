"""Records and model folders that planning reads, torn in every way: one line, file and remedy."""

import pytest

from memloc.budget.finished import finished_jobs
from memloc.budget.sizes import Sizes
from memloc.errors import MemlocError
from memloc.study.admission import refuse_unfit

WAYS = {
    "truncated": b'{"rows": {"train": 1',
    "empty": b"",
    "no object": b"[1, 2]",
    "no text": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
}
CONFIG = {
    "models": ["own"],
    "model_sources": {"own": {"folder": "source"}},
    "data": {"max_train": None, "max_heldout": None, "max_length": 16},
    "perturbation": {"ratio": 0.1},
    **{key: {} for key in ("training", "retraining", "generalisation")},
    "model_seeds": [1],
}
TASK = {"split": {}, "labels": ["a", "b"], "base": "toy"}


def sizes():
    return Sizes(CONFIG, {"toy": TASK}, "results", "resources")


def admit():
    refuse_unfit(CONFIG, "resources/models/{model}")


def finished():
    finished_jobs({"train": ("results/{task}/s.tsv", ["results/{task}/t.provenance.json"])})


READERS = [
    ("resources/models/own/manifest.json", lambda: sizes().model("own"), "Delete the folder"),
    ("resources/models/own/manifest.json", admit, "Delete the folder resources/models/own"),
    ("source/config.json", lambda: sizes().model("own"), "Bring the model's folder anew"),
    ("resources/tasks/toy.manifest.json", lambda: sizes().task("toy"), "Delete it"),
    ("results/toy/perturbed.parquet.provenance.json", lambda: sizes().task("toy"), "Delete it"),
    ("results/toy/t.provenance.json", finished, "Delete it"),
]


@pytest.mark.parametrize(("name", "read", "remedy"), READERS)
@pytest.mark.parametrize("way", [*WAYS, "loop", "folder"])
def test_a_torn_record_is_named_with_its_remedy(tmp_path, monkeypatch, name, read, remedy, way):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results/toy").mkdir(parents=True)
    (tmp_path / "results/toy/s.tsv").write_text("s\n1.5\n")
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if way == "loop":
        path.symlink_to(path.name)
    elif way == "folder":
        path.mkdir()
    else:
        path.write_bytes(WAYS[way])
    with pytest.raises(MemlocError) as error:
        read()
    line = str(error.value)
    assert line.startswith(name) and remedy in line
    assert "\n" not in line and len(line) < 400
