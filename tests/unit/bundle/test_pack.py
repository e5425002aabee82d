"""What goes into a bundle, what stops it, and what verify says of its files."""

import json
import os
import shutil
import tarfile
import time

import pytest

from bundled import CONFIG, RESOURCES, RESULTS, RUN, packed, write_tree
from driver import Results
from memloc.__main__ import main
from memloc.bundle.compare import in_archive, in_folder, in_results
from memloc.errors import MemlocError
from memloc.store.files import write_json
from memloc.store.records import FOLDER, record_of, recorded
from shipped import ROOT


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(write_tree(tmp_path))
    return tmp_path


def names(bundle):
    with tarfile.open(bundle) as tar:
        return {member.name for member in tar if member.isreg()}


def test_a_bundle_is_the_same_to_the_byte_whenever_it_is_packed(study, tmp_path):
    one = packed(study, "one.tar.gz").read_bytes()
    for path in study.rglob("*"):
        os.utime(path, (time.time() - 5000, time.time() - 5000))
    (study / "results/report.html").chmod(0o600)
    assert packed(study, "two.tar.gz").read_bytes() == one
    assert str(study).encode() not in one


def test_what_goes_along_by_choice(study):
    everything = {f"results/{name}" for name in RESULTS}
    models = {name for name in everything if name.endswith(".safetensors")}
    final = {f"results/{RUN}/{name}/final/model.safetensors" for name in ("original", "perturbed")}
    texts = {"results/rte/perturbed.parquet", "results/report.html"}
    own = {f"resources/{name}" for name in RESOURCES if "other" not in name}
    large = {"resources/models/bert/model.safetensors", "resources/tasks/rte.parquet"}
    cases = [
        (dict(checkpoints="all"), everything | own),
        ({}, (everything - models) | final | own),
        (dict(checkpoints="none", resources=False), (everything - models) | (own - large)),
        (
            dict(texts=False),
            ((everything - models) | final | own) - texts - {"resources/tasks/rte.parquet"},
        ),
    ]
    for choice, wanted in cases:
        bundle = packed(study, **choice)
        there = {name for name in names(bundle) if ".records" not in name}
        assert there - {"bundle.json", "study.yaml"} == wanted, choice
        assert not in_archive(bundle).faults


def test_the_lines_say_what_is_inside(study, capsys):
    assert main(["bundle", "--texts", "no"]) == 0
    assert "left out: " in (said := capsys.readouterr().out) and "yours" not in said
    assert main(["bundle"]) == 0
    said = capsys.readouterr().out
    assert "are they yours to pass on?" in said and "models" in said and "kB" in said


def refuse(folder, said):
    with pytest.raises(MemlocError) as error:
        packed(folder)
    assert said in str(error.value)


def test_what_is_half_made_changed_or_a_link_stops_it(study):
    swap = study / "results" / RUN / "swap.tsv"
    text, record = swap.read_bytes(), record_of(swap).read_bytes()
    record_of(swap).unlink()
    refuse(study, "swap.tsv has no record")
    record_of(swap).write_bytes(record)
    swap.write_bytes(text.replace(b"1", b"2"))
    refuse(study, "swap.tsv isn't as it was made: sha256")
    swap.write_bytes(text)
    (study / "results" / RUN / "link").symlink_to("/etc")
    refuse(study, f"{RUN}/link is a link")
    (study / "results" / RUN / "link").unlink()
    packed(study)


def test_a_run_at_work_stops_it(study, capsys):
    driver = Results("results")
    assert driver.claim() is None
    assert main(["bundle"]) == 1 and "a run is at work" in capsys.readouterr().err
    assert not (study / "bundle.tar.gz").exists()
    driver.release()
    assert main(["bundle"]) == 0


def test_a_folder_of_this_machine_stops_it(study):
    path = study / "results" / RUN / "empty.tsv"
    with recorded([path], {}):
        path.write_text(f"{study}/my-model\n")
    refuse(study, f"{RUN}/empty.tsv names {study}/")


def test_a_folder_that_holds_no_results_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["bundle", "nowhere"]) == 1 and "nowhere" in capsys.readouterr().err
    assert main(["verify", "nowhere"]) == 1 and "nowhere" in capsys.readouterr().err


def test_an_unpacked_bundle_is_compared_file_by_file(study, tmp_path, capsys):
    there = tmp_path / "theirs"
    with tarfile.open(packed(study)) as tar:
        tar.extractall(there, filter="data")
    assert in_folder(there).faults == []
    assert main(["verify", str(there)]) == 0
    (there / f"results/{RUN}/swap.tsv").write_text("start\tend\n1\t3\n")
    (there / f"results/{RUN}/empty.tsv").unlink()
    (there / "results/mine.tsv").write_text("x")
    record = there / f"results/{RUN}/.records/swap.tsv.json"
    record.write_text(json.dumps({"files": {}, "made_with": {}}))
    capsys.readouterr()
    assert main(["verify", str(there), "--windows", "1-1"]) == 1
    said = capsys.readouterr().out.splitlines()
    starts = [line.partition(" ")[0] + " " + line.split()[1].rstrip(":") for line in said[:-1]]
    assert sorted(starts) == sorted(
        [
            f"changed: results/{RUN}/swap.tsv",
            f"changed: results/{RUN}/.records/swap.tsv.json",
            f"missing: results/{RUN}/empty.tsv",
            "extra: results/mine.tsv",
        ]
    )
    assert said[-1].endswith("4 faults in " + said[-1].split()[-2] + " files")


def test_a_folder_of_results_is_compared_with_its_records(study):
    found = in_results(study / "results")
    assert found.faults == [] and found.count == len(RESULTS)
    (study / "results" / RUN / "swap.tsv").write_text("x")
    (study / "results/stray.tsv").write_text("x")
    lines = in_results(study / "results").faults
    assert [line for line in lines if "swap.tsv isn't as it was made" in line]
    assert [line for line in lines if "stray.tsv has no record" in line] and len(lines) == 2
    (study / "results" / RUN / "swap.tsv").unlink()
    lines = in_results(study / "results").faults
    assert [line for line in lines if line.startswith("missing: ") and line.endswith("swap.tsv")]


def test_a_studys_own_sources_go_along_where_they_have_a_name_elsewhere(study):
    (study / "mine").mkdir()
    (study / "weights").mkdir()
    (study / "weights/config.json").write_text("{}")
    (study / "mine/rte.yaml").write_text((ROOT / "workflow/tasks/bbc.yaml").read_text())
    further = {"task_folders": ["mine"], "model_sources": {"bert": {"folder": "weights"}}}
    write_json(study / "results" / FOLDER / "settings", CONFIG | further)
    own = names(packed(study)) - {"bundle.json", "study.yaml"}
    assert {name for name in own if not name.startswith("res")} == {
        "mine/rte.yaml",
        "weights/config.json",
    }


def test_models_that_arent_where_they_should_be_are_told(study):
    shutil.rmtree(study / "resources/models/bert")
    refuse(study, "resources/models/bert isn't here")
    packed(study, resources=False)
