"""The base: seeds, windows, atomic files, exact tables, fingerprints, settings."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from conftest import ROOT
from memloc import fingerprint as fingerprints
from memloc.errors import MemlocError
from memloc.files import atomic, require_space, write_json
from memloc.seeds import derive
from memloc.settings import check_config, model_settings
from memloc.tables import read_tsv, write_tsv
from memloc.windows import all_windows, parse_window, window_name

SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"


def study():
    return yaml.safe_load((ROOT / "config.yaml").read_text())


def test_seeds_differ_by_purpose_and_stay_the_same():
    purposes = [(1, "order", 1), (1, "order", 2), (1, "dropout", 1), (2, "order", 1), (1, "o", 11)]
    assert len({derive(*purpose) for purpose in purposes}) == len(purposes)
    assert all(0 <= derive(*purpose) < 2**63 for purpose in purposes)
    code = "from memloc.seeds import derive; print(derive(1, 'order', 1))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "PYTHONHASHSEED": "77"}
    said = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert int(said) == derive(1, "order", 1)


@given(st.integers(1, 30))
def test_windows_are_all_runs_of_layers(n_layers):
    windows = all_windows(n_layers)
    assert len(windows) == len(set(windows)) == n_layers * (n_layers + 1) // 2
    assert windows == sorted(windows) and all(1 <= s <= e <= n_layers for s, e in windows)
    assert [parse_window(window_name(w), n_layers) for w in windows] == windows


@pytest.mark.parametrize("name", ["0-3", "3-2", "2-13", "2", "2-3-4", "a-b", "02-3", "", "-1-2"])
def test_windows_outside_the_model_are_refused(name):
    with pytest.raises(MemlocError, match="1 <= START <= END <= 12"):
        parse_window(name, 12)


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "folder" / "result.json"
    write_json(path, {"a": 1})
    with pytest.raises(RuntimeError), atomic(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert path.read_text() == '{\n  "a": 1\n}\n' and list(path.parent.iterdir()) == [path]


def test_folders_are_replaced_whole(tmp_path):
    for content in ("one", "two"):
        with atomic(tmp_path / "checkpoint") as draft:
            draft.mkdir()
            (draft / content).touch()
    assert [p.name for p in (tmp_path / "checkpoint").iterdir()] == ["two"]
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint"]


def test_too_little_room_is_said_before_anything_is_written(tmp_path):
    with pytest.raises(MemlocError, match=r"needs 1000000000.00 GB.*Make room"):
        require_space(tmp_path, 1e18, "a test")
    require_space(tmp_path, 1, "a test")


@given(st.lists(st.floats(width=64), min_size=1, max_size=20))
def test_floats_survive_a_table_exactly(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("tables") / "t.tsv"
    write_tsv(pd.DataFrame({"x": values, "name": "none"}), path)
    back = read_tsv(path, ["x", "name"])
    assert np.array_equal(np.array(values), back["x"].to_numpy(dtype=float), equal_nan=True)
    assert set(back["name"]) == {"none"}


def test_tables_without_a_column_are_refused(tmp_path):
    with pytest.raises(MemlocError, match="lacks the columns"):
        write_tsv(pd.DataFrame({"a": [1]}), tmp_path / "t.tsv", ["a", "b"])
    write_tsv(pd.DataFrame({"a": [1]}), tmp_path / "t.tsv")
    with pytest.raises(MemlocError, match=r"t.tsv: lacks the columns \['b'\]"):
        read_tsv(tmp_path / "t.tsv", ["b"])


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of three modules: top imports middle, which imports bottom; beside is alone."""
    (tmp_path / "memloc").mkdir()
    for name, text in {
        "top": "from memloc.middle import f\nx = f()\n",
        "middle": '"""Doc."""\nfrom memloc import bottom\ndef f():\n    """Doc."""\n    return 1\n',
        "bottom": "y = 2\n",
        "beside": "z = 3\n",
    }.items():
        (tmp_path / "memloc" / f"{name}.py").write_text(text)
    monkeypatch.setattr(fingerprints, "PACKAGE", tmp_path / "memloc")

    def edit(name, old, new):
        path = tmp_path / "memloc" / f"{name}.py"
        path.write_text(path.read_text().replace(old, new))
        fingerprints._read.cache_clear()
        return fingerprints.fingerprint("top")

    edit("top", "", "")
    yield edit
    edit("top", "", "")


def test_fingerprints_follow_code_and_imports_alone(package):
    first = package("top", "x = f()", "x = f()")
    assert package("middle", "Doc.", "Other words.") == first
    assert package("bottom", "y = 2", "# remark\ny = 2") == first
    assert package("beside", "3", "4") == first
    script = fingerprints.PACKAGE / "script.py"
    script.write_text("run()")
    with_script = fingerprints.fingerprint("top", script=script)
    fingerprints._read.cache_clear()
    script.write_text("run(1)")
    assert fingerprints.fingerprint("top", script=script) != with_script != first
    assert package("bottom", "y = 2", "y = 3") != first


def test_the_studys_configuration_is_the_papers():
    config = study()
    check_config(config, SCHEMA)
    assert len(config["tasks"]) == 12 and len(config["models"]) == 4
    assert len(config["model_seeds"]) == 3 and config["perturbation"]["ratio"] == 0.15
    training = config["training"]
    assert (training["epochs"], training["learning_rate"], training["batch_size"]) == (50, 1e-5, 8)
    assert training["memorised_above"] == 0.993 and config["data"]["max_length"] == 512
    assert model_settings(config, "opt-1.3b")["training"]["learning_rate"] == 5e-6
    assert model_settings(config, "opt-1.3b")["training"]["epochs"] == 50
    assert model_settings(config, "bert")["training"] == training


def test_schema_and_configuration_name_the_same_keys():
    def keys(schema):
        while "$ref" in schema:
            schema = {**rules["$defs"][schema["$ref"].rsplit("/", 1)[1]], **schema}
            schema.pop("$ref")
        return schema.get("properties", {})

    rules = yaml.safe_load(SCHEMA.read_text())
    config = study()
    assert set(rules["properties"]) == set(config)
    for name, schema in rules["properties"].items():
        if keys(schema):
            assert set(keys(schema)) == set(config[name]), name


def test_every_knob_has_a_comment():
    lines = (ROOT / "config.yaml").read_text().splitlines()
    bare = []
    for number, line in enumerate(lines):
        is_knob = ":" in line and not line.strip().startswith("#")
        heads_a_group = is_knob and number + 1 < len(lines) and lines[number + 1].startswith("  ")
        inside_models = line.startswith("    ")
        if is_knob and not inside_models and not heads_a_group:
            near = "".join(lines[max(0, number - 3) : number + 2])
            if "#" not in line and "#" not in near:
                bare.append(line)
    assert not bare


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, "x"])
def test_ratios_outside_zero_and_one_are_refused(value):
    config = study()
    config["perturbation"]["ratio"] = value
    with pytest.raises(MemlocError, match=r"perturbation.ratio"):
        check_config(config, SCHEMA)
