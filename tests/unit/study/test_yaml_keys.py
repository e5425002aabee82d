"""Keys given twice, in files of every form that a configuration may have."""

import json

import pytest

from memloc.errors import MemlocError
from memloc.study.yaml_keys import refuse_keys_twice


@pytest.mark.parametrize(
    ("text", "line", "first", "key"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 1, "a"),
        ("a: 1\n'a': 3\n", 2, 1, "a"),
        ("top:\n  x: 1\n  y: 2\n  x: 1\n", 4, 2, "x"),
        ("list:\n- {x: 1}\n- {x: 1, x: 2}\n", 3, 3, "x"),
        ('{"a": 1,\n "a": 2}', 2, 1, "a"),
        ("config:\n  tasks: [rte]\n  tasks: [wic]\n", 3, 2, "tasks"),
    ],
)
def test_a_key_twice_is_named_with_file_and_line(tmp_path, text, line, first, key):
    (tmp_path / "c.yaml").write_text(text)
    said = rf"c\.yaml, line {line}: the key '{key}' is given twice \(before in line {first}\)"
    with pytest.raises(MemlocError, match=said):
        refuse_keys_twice(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "a: {x: 1}\nb: {x: 1}\n",
        "1: a\n'1': b\n",
        "base: &b {x: 1}\nown: {<<: *b, x: 2}\n",
        "loop: &l [*l]\n",
        "",
        json.dumps({"a": [{"a": 1}, {"a": 2}]}),
    ],
)
def test_other_files_pass(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    refuse_keys_twice(tmp_path / "c.yaml")
    refuse_keys_twice(tmp_path / "missing.yaml")
