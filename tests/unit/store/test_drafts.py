"""Writing that is all or nothing, and what killed writers leave."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memloc.store import drafts
from memloc.store.drafts import remove_scratch, settle
from memloc.store.files import atomic
from shipped import ROOT

# Writes a folder, says so before it is in place, and waits to be killed.
HALF = """
import sys, time
from memloc.store.files import atomic
with atomic(sys.argv[1]) as draft:
    draft.mkdir()
    (draft / "new").touch()
    print("drafted", flush=True)
    time.sleep(3600)
"""
# Replaces a folder on a file system that can't exchange names; dies in the middle of it.
GAP = """
import os, sys
from memloc.store import drafts
from memloc.store.files import atomic
drafts._exchange = lambda one, other: False
move = os.replace
def last(source, target):
    if str(target) == sys.argv[1]:
        os.kill(os.getpid(), 9)
    move(source, target)
os.replace = last
with atomic(sys.argv[1]) as draft:
    draft.mkdir()
    (draft / "new").touch()
"""
# Replaces a folder again and again.
AGAIN = """
import sys
from memloc.store.files import atomic
while True:
    with atomic(sys.argv[1]) as draft:
        draft.mkdir()
        (draft / "whole").touch()
"""


def python(program, path):
    return subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow")},
        stdout=subprocess.PIPE,
        text=True,
    )


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def old_folder(path):
    path.mkdir()
    (path / "old").touch()
    return path


def names(folder):
    return [path.name for path in folder.iterdir()]


def test_a_killed_writer_s_draft_goes_with_the_next_write(tmp_path):
    path = old_folder(tmp_path / "final")
    with python(HALF, path) as writer:
        assert writer.stdout.readline() == "drafted\n"
        settle(path)
        assert len(hidden(tmp_path)) == 1, "a living writer's draft is left alone"
        writer.kill()
    assert names(path) == ["old"] and len(hidden(tmp_path)) == 1
    with atomic(tmp_path / "final.sha256") as draft:  # another name's: none of its business
        draft.write_text("x")
    assert len(hidden(tmp_path)) == 1
    with atomic(path) as draft:
        draft.mkdir()
    assert hidden(tmp_path) == [] and names(path) == []


@pytest.mark.parametrize(("age", "stays"), [(3600, True), (2 * drafts.OLD_SECONDS, False)])
def test_another_machine_s_draft_goes_when_it_is_old(tmp_path, age, stays):
    foreign = tmp_path / ".a.tsv.elsewhere-1-abcdefgh"
    foreign.mkdir()
    then = time.time() - age
    os.utime(foreign, (then, then))
    settle(tmp_path / "a.tsv")
    assert foreign.exists() == stays


def test_a_folder_is_never_missing_while_it_is_replaced(tmp_path):
    path = old_folder(tmp_path / "state")
    (tmp_path / "other").mkdir()
    if not drafts._exchange(path, tmp_path / "other"):
        pytest.skip("this file system can't exchange two names")
    drafts._exchange(path, tmp_path / "other")
    with python(AGAIN, path) as writer:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            assert path.exists()
        writer.send_signal(signal.SIGKILL)
    assert names(path) in (["whole"], ["old"])


def test_a_writer_killed_between_two_renames_loses_nothing(tmp_path):
    path = old_folder(tmp_path / "state")
    with python(GAP, path) as writer:
        assert writer.wait() == -signal.SIGKILL
    assert not path.exists()
    settle(path)
    assert names(path) == ["new"] and hidden(tmp_path) == []


def test_empty_scratch_folders_go_and_others_stay(tmp_path):
    one, other = (tmp_path / f"results/.scratch/task/model/{name}" for name in ("one", "two"))
    for folder in (one, other):
        folder.mkdir(parents=True)
        (folder / "state").touch()
    remove_scratch(one)
    assert not one.exists() and (other / "state").exists()
    remove_scratch(other)
    assert names(tmp_path / "results") == []
    loose = tmp_path / "loose"
    loose.mkdir()
    remove_scratch(loose)
    assert (tmp_path / "results").exists() and not loose.exists()


@pytest.mark.parametrize("new", [Path.mkdir, Path.touch])
@pytest.mark.parametrize("old", [Path.mkdir, Path.touch])
def test_a_folder_replaces_a_file_and_a_file_a_folder(tmp_path, old, new):
    path = tmp_path / "state"
    old(path)
    with atomic(path) as draft:
        new(draft)
    assert path.is_dir() == (new is Path.mkdir) and hidden(tmp_path) == []


def test_what_is_put_in_place_is_on_the_disk_before_its_name(tmp_path, monkeypatch):
    """Every file and folder is synced before the rename, and after it the folder of the name."""
    told = []
    sync, move = os.fsync, os.replace

    def synced(file):
        told.append(Path(os.readlink(f"/proc/self/fd/{file}")))
        sync(file)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda *names: (told.append("moved"), move(*names)))
    with atomic(tmp_path / "deep/checkpoint") as draft:
        (draft / "inner").mkdir(parents=True)
        (draft / "inner/weights").touch()
        (draft / "config").touch()
    until = told.index("moved")
    before = {path.name for path in told[:until]}
    assert {"checkpoint", "inner", "weights", "config", tmp_path.name} <= before
    assert told[until + 1 :] == [tmp_path / "deep"]


def test_files_get_the_rights_of_new_files(tmp_path):
    def mode(path):
        return path.stat().st_mode & 0o777

    (tmp_path / "usual").touch()
    with atomic(tmp_path / "folder") as draft:
        (draft / "in").mkdir(parents=True)
        for name in ("in/private", "run"):
            (draft / name).touch(mode=0o600 if name == "in/private" else 0o700)
        (draft / "link").symlink_to("nowhere")
    with atomic(tmp_path / "file") as draft:
        draft.touch(mode=0o600)
    usual = mode(tmp_path / "usual")
    assert mode(tmp_path / "folder/in/private") == mode(tmp_path / "file") == usual
    assert mode(tmp_path / "folder/run") == usual | 0o700
