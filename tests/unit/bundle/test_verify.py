"""What `memloc verify` says of damaged manifests, and of folders in which one has gone on."""

import json
import tarfile

import pytest

from bundled import RUN, packed, write_tree
from memloc.__main__ import main
from memloc.bundle.archive import write_archive
from memloc.bundle.pack import MANIFEST
from memloc.store.records import record_of, recorded

SHA = "0" * 64
GOOD = {"bundle": 1, "files": {}, "left_out": [], "results": "r", "resources": "s"}


@pytest.fixture
def unpacked(tmp_path, monkeypatch):
    """A folder that a bundle was unpacked in."""
    monkeypatch.chdir(write_tree(tmp_path))
    with tarfile.open(packed(tmp_path)) as tar:
        tar.extractall(tmp_path / "theirs", filter="data")
    monkeypatch.chdir(tmp_path / "theirs")
    return tmp_path / "theirs"


def verified(capsys, *words):
    code = main(["verify", *words])
    said = capsys.readouterr()
    return code, said.out.splitlines(), said.err.splitlines()


ODD = {
    "no dict": [],
    "true": {**GOOD, "bundle": True},
    "text": {**GOOD, "bundle": "1"},
    "float": {**GOOD, "bundle": 1.0},
    "no files": {key: value for key, value in GOOD.items() if key != "files"},
    "list": {**GOOD, "files": ["a"]},
    "null": {**GOOD, "files": None},
    "entry": {**GOOD, "files": {"a": "x"}},
    "no bytes": {**GOOD, "files": {"a": {"sha256": SHA}}},
    "no digest": {**GOOD, "files": {"a": {"bytes": 1}}},
    "null digest": {**GOOD, "files": {"a": {"bytes": 1, "sha256": None}}},
    "bytes as text": {**GOOD, "files": {"a": {"bytes": "1", "sha256": SHA}}},
    "long": {**GOOD, "files": {"a" * 5000: {"bytes": 1, "sha256": SHA}}},
    "deep": {**GOOD, "files": {"a/" * 2500 + "a": {"bytes": 1, "sha256": SHA}}},
    "wide": {**GOOD, "files": {"é" * 200: {"bytes": 1, "sha256": SHA}}},
    "nothing": {**GOOD, "files": {"a\0b": {"bytes": 1, "sha256": SHA}}},
    "up": {**GOOD, "files": {"../a": {"bytes": 1, "sha256": SHA}}},
    "results": {**GOOD, "results": 5},
    "long results": {**GOOD, "results": "a" * 5000},
    "no resources": {key: value for key, value in GOOD.items() if key != "resources"},
    "left out": {**GOOD, "left_out": [1]},
}


@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_a_manifest_that_says_too_little_is_told_alike_packed_and_unpacked(
    tmp_path, monkeypatch, capsys, content
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / MANIFEST).write_text(json.dumps(content))
    (tmp_path / "a").write_text("x")
    write_archive(tmp_path / "b.tar.gz", {MANIFEST: json.dumps(content).encode()}, set())
    lines = []
    for place in (".", "b.tar.gz"):
        for windows in ((), ("--windows", "1-1")):
            code, out, err = verified(capsys, place, *windows)
            assert code == 1 and not out and len(err) == 1 and len(err[0]) < 400
            lines.append(err[0].replace("b.tar.gz", "bundle.json"))
    assert len(set(lines)) == 1 and "sent again" in lines[0]


@pytest.mark.parametrize("windows", ["", " ", ",", " , "])
def test_no_window_is_no_window(unpacked, capsys, windows):
    code, out, err = verified(capsys, ".", "--windows", windows)
    assert code == 1 and not out and "names no window" in err[0]


def make(path, text="new"):
    """A new result with its record, as a job makes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with recorded([path], {"seed": "1"}):
        if path.suffix:
            path.write_text(text)
            path.with_name(f"{path.name}.provenance.json").write_text("{}")
        else:
            path.mkdir()
            (path / "model.safetensors").write_text(text)


def test_results_made_since_are_no_faults(unpacked, capsys):
    make(unpacked / f"results/{RUN}/retrain/1-1.tsv")
    make(unpacked / "results/rte/bert/seed2/perturbed/final")
    code, out, err = verified(capsys, ".")
    assert code == 0 and not err and len(out) == 1
    assert out[0].endswith("3 results made since")  # the table, its provenance, the checkpoint


def test_what_has_no_record_stays_a_fault(unpacked, capsys):
    run = unpacked / "results" / RUN
    table, model = run / "retrain/1-1.tsv", run / "perturbed/final"
    make(table)
    table.write_text("changed")
    (run / "stray.tsv").write_text("no record")
    (run / ".records/none.tsv.json").write_text("{")
    (model / "further.bin").write_text("in a folder of the bundle")
    lost = run / "lost.tsv"
    make(lost)
    lost.unlink()
    code, out, err = verified(capsys, ".")
    assert code == 1 and not err and len(out) == 6, out
    for name, said in [
        ("retrain/1-1.tsv", "isn't as it was made"),
        ("stray.tsv", "extra"),
        (".records/none.tsv.json", "extra"),
        ("perturbed/final/further.bin", "isn't in the record"),
        ("lost.tsv", "missing"),
    ]:
        assert [line for line in out if name in line and said in line], (name, out)


def test_what_the_bundle_lists_is_compared_with_it_alone(unpacked, capsys):
    table = unpacked / f"results/{RUN}/swap.tsv"
    make(table, "made over")
    code, out, _ = verified(capsys, ".")
    changed = {line.split(": ")[1] for line in out if line.startswith("changed: ")}
    assert code == 1 and len(changed) == 2
    assert changed == {str(p.relative_to(unpacked)) for p in (table, record_of(table))}
