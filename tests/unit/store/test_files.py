"""Atomic writes, and room for them."""

import pytest

from memloc.errors import MemlocError
from memloc.store.files import atomic, require_space, write_json


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
