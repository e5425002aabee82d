"""The boundary around reading what others wrote: whatever is raised inside becomes one line."""

import errno
import inspect
import os

import pyarrow as pa
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError

from memloc.data.readers import content_hash, read_file
from memloc.errors import MemlocError
from memloc.store.files import DiskFull, read_json, read_record, reading
from memloc.study.tasks import load_task
from memloc.study.yaml_files import read_yaml

BUILTIN = [
    kind
    for kind in vars(__import__("builtins")).values()
    if inspect.isclass(kind) and issubclass(kind, Exception) and "Unicode" not in kind.__name__
    and "Group" not in kind.__name__
]  # fmt: skip
OTHERS = [pa.ArrowInvalid, SafetensorError, yaml.YAMLError, torch.OutOfMemoryError]


@pytest.mark.parametrize("kind", BUILTIN + OTHERS, ids=lambda kind: kind.__name__)
def test_every_error_becomes_one_line(kind):
    with pytest.raises(MemlocError) as caught, reading("rows.bin", "Bring it anew."):
        raise kind("a long\ntale\0 " * 999)
    line = str(caught.value)
    assert line.startswith("rows.bin can't be read: ") and line.endswith(" Bring it anew.")
    assert line.isprintable() and len(line) < 400
    assert isinstance(caught.value.__cause__, kind)


@given(st.text())
def test_whatever_an_error_says(text):
    with pytest.raises(MemlocError) as caught, reading("x", "y"):
        raise ValueError(text)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "error",
    [MemlocError("said"), DiskFull("full"), OSError(errno.ENOSPC, "No space left on device"),
     KeyboardInterrupt(), SystemExit(1)],
)  # fmt: skip
def test_what_is_said_already_a_full_disk_and_an_end_pass(error):
    with pytest.raises(type(error)) as caught, reading("x", "y"):
        raise error
    assert caught.value is error


READERS = {
    "rows of csv": lambda path: read_file(path, {"format": "csv"}),
    "rows of parquet": lambda path: read_file(path, {"format": "parquet"}),
    "a hash": lambda path: content_hash(path, {}),
    "a record": lambda path: read_record(path, "Bring it"),
    "JSON": read_json,
    "a task file": lambda path: load_task(path.stem, [path.parent]),
    "YAML": read_yaml,
}
WAYS = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
    "folder": os.mkdir,
    "deep": lambda path: path.write_text("[" * 50_000),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\0"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("way", WAYS)
def test_no_reader_hangs_or_says_more_than_a_line(tmp_path, reader, way):
    path = tmp_path / "odd.yaml"
    WAYS[way](path)
    if reader == "a hash" and way in ("deep", "no text"):
        pytest.skip("bytes are bytes")
    with pytest.raises(MemlocError) as caught:
        READERS[reader](path)
    line = str(caught.value)
    assert "odd.yaml" in line and "\n" not in line and len(line) < 600
