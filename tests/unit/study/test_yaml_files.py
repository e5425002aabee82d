"""YAML files: keys given twice, and values that YAML stumbles at."""

import json

import pytest
import yaml

from memloc.errors import MemlocError
from memloc.study.config import read_numbers
from memloc.study.merging import read_defaults
from memloc.study.tasks import load_task
from memloc.study.yaml_files import read_yaml, refuse_faulty
from shipped import ROOT


@pytest.mark.parametrize(
    ("text", "line", "first", "key"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 1, "a"),
        ("a: 1\n'a': 3\n", 2, 1, "a"),
        ("top:\n  x: 1\n  y: 2\n  x: 1\n", 4, 2, "x"),
        ("list:\n- {x: 1}\n- {x: 1, x: 2}\n", 3, 3, "x"),
        ('{"a": 1,\n "a": 2}', 2, 1, "a"),
        ("1: a\n0x1: b\n", 2, 1, "0x1"),
        ("yes: a\ntrue: b\n", 2, 1, "true"),
        ("config:\n  tasks: [rte]\n  tasks: [wic]\n", 3, 2, "tasks"),
    ],
)
def test_a_key_twice_is_named_with_file_and_line(tmp_path, text, line, first, key):
    (tmp_path / "c.yaml").write_text(text)
    said = rf"c\.yaml, line {line}: the key '{key}' is given twice \(before in line {first}\)"
    with pytest.raises(MemlocError, match=said):
        refuse_faulty(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "a: {x: 1}\nb: {x: 1}\n",
        "1: a\n'1': b\n",
        "<<: {x: 1}\n<<: {y: 2}\n",
        "base: &b {x: 1}\nown: {<<: *b, x: 2}\n",
        "loop: &l [*l]\n",
        "",
        json.dumps({"a": [{"a": 1}, {"a": "\U0001f600"}]}),
    ],
)
def test_other_files_pass(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    refuse_faulty(tmp_path / "c.yaml")
    refuse_faulty(tmp_path / "missing.yaml")


NO_VALUES = {
    "2024-13-45": "timestamp",
    "2024-01-01T25:00:00Z": "timestamp",
    "0b_": "int",
    "0x_": "int",
    "!!int abc": "int",
    "!!float abc": "float",
    "!!timestamp abc": "timestamp",
    "!!bool abc": "bool",
    "!!binary é": "binary",
    "!own abc": "!own",
    "!!python/name:os.system abc": "python/name:os.system",
}


@pytest.mark.parametrize("text", NO_VALUES)
@pytest.mark.parametrize("form", ["a: 1\nb: {text}", "a:\n- [1, {text}]", "a: 1\n? {text}\n: 1"])
def test_a_value_that_yaml_refuses_is_named_with_file_and_line(tmp_path, text, form):
    (tmp_path / "t.yaml").write_text(form.format(text=text))
    for read in (read_yaml, read_defaults, lambda path: load_task("t", [path.parent])):
        with pytest.raises(MemlocError, match=r"t\.yaml, line 2: '.+' can't be read as ") as caught:
            read(tmp_path / "t.yaml")
        said = str(caught.value)
        assert f"read as {NO_VALUES[text].partition(':')[0]}" in said or "python" in said
        assert "\n" not in said and "quotes" in said


@pytest.mark.parametrize(
    "text", ["? [a, b]\n: 1", "a: {{}: 1}", "!!omap [1]", "a: *b", "{", "a: '"]
)
def test_what_yaml_cannot_put_together_is_named_with_the_file(tmp_path, text):
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(MemlocError, match=r"t\.yaml can't be read: .*line \d"):
        read_yaml(tmp_path / "t.yaml")


def test_whole_files_are_read_as_yaml_reads_them():
    for path in [ROOT / "config.yaml", *(ROOT / "workflow/tasks").glob("*.yaml")]:
        assert read_yaml(path) == yaml.safe_load(path.read_text())


@pytest.mark.parametrize("text", ["2024-13-45", "0b_", "{", "[" * 400, "!own 1", "!!int x", "\0"])
def test_a_text_on_the_command_line_that_is_no_yaml_is_left_to_the_schema(text):
    config = {"data_seed": text}
    read_numbers(config, ROOT / "workflow/schemas/config.schema.yaml")
    assert config == {"data_seed": text}
