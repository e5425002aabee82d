"""Model folders torn in every way are refused when they are retrieved: one line names the file."""

import os

import pytest

from families import save
from memloc.errors import MemlocError
from retrieval import retrieve_unexamined


def loop(path):
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


WAYS = {
    "config.json": [lambda p: p.write_text("[" * 100_000), lambda p: p.write_text('{"a'), loop],
    "tokenizer.json": [loop],
    "further.json": [loop, os.mkfifo],
    "sub": [lambda p: p.symlink_to(".")],
    "model.safetensors": [lambda p: os.truncate(p, 5000), lambda p: os.truncate(p, 0), loop],
}


@pytest.mark.parametrize(("name", "tear"), [(name, tear) for name in WAYS for tear in WAYS[name]])
def test_a_torn_folder_is_refused_in_one_line(tmp_path, name, tear):
    folder = save("BERT", tmp_path / "model")
    tear(folder / name)
    with pytest.raises(MemlocError) as error:
        retrieve_unexamined({"folder": str(folder)}, tmp_path / "got", tmp_path / "got.sha256")
    line = str(error.value)
    assert name in line or "its weights can't be read" in line
    assert "\n" not in line and len(line) < 600 and not (tmp_path / "got").exists()
