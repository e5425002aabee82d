"""Locks in a shared temporary folder: nothing that another user put there is followed or used."""

import os
import stat

import pytest

from memloc.errors import MemlocError
from memloc.machine import private
from memloc.machine.gpus import lock_folder, slot


@pytest.fixture
def shared(tmp_path):
    """A temporary folder as /tmp is: everybody may write."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def precious(tmp_path):
    """A file of the victim's, and the folder it lies in."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    (folder / "0.0.lock").write_text("precious\n")
    return folder / "0.0.lock"


def another_users(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(private.os, "getuid", lambda: os.stat(folder).st_uid + 1)


PLANTED = {
    "a link to a folder": lambda at, file, _: at.symlink_to(file.parent),
    "a link to nothing": lambda at, file, _: at.symlink_to(file.parent / "new"),
    "a link to a file": lambda at, file, _: at.symlink_to(file),
    "a file": lambda at, file, _: at.write_text(""),
    "a FIFO": lambda at, file, _: os.mkfifo(at),
    "an open folder": lambda at, file, _: (at.mkdir(), at.chmod(0o777)),
    "a readable folder": lambda at, file, _: (at.mkdir(), at.chmod(0o755)),
    "another's folder": lambda at, file, patch: another_users(at, patch),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_planted_for_the_folder_is_refused(shared, precious, kind, monkeypatch):
    place = shared / "memloc-gpus-1000"
    PLANTED[kind](place, precious, monkeypatch)
    before = sorted(precious.parent.iterdir())
    refused = pytest.raises(MemlocError, match=r"memloc-gpus-1000.*MEMLOC_LOCKS")
    with refused as said, slot(["0"], 1, place, patience=0):
        pass
    assert "\n" not in str(said.value)
    assert precious.read_text() == "precious\n" and sorted(precious.parent.iterdir()) == before


FILES = {
    "a link": lambda at, file: at.symlink_to(file),
    "a link to nothing": lambda at, file: at.symlink_to(file.parent / "new"),
    "a second name": lambda at, file: os.link(file, at),
    "a FIFO": lambda at, file: os.mkfifo(at),
    "a folder": lambda at, file: at.mkdir(),
}


@pytest.mark.parametrize("kind", FILES)
def test_what_is_planted_for_a_lock_is_refused(shared, precious, kind):
    place = shared / "locks"
    place.mkdir(mode=0o700)
    FILES[kind](place / "0.0.lock", precious)
    with pytest.raises(MemlocError, match=r"0\.0\.lock"), slot(["0"], 1, place, patience=0):
        pass
    assert precious.read_text() == "precious\n" and not (precious.parent / "new").exists()


def test_what_is_made_is_the_users_alone(shared):
    before = os.umask(0)  # the most open one
    try:
        with slot(["0"], 1, shared / "deep" / "locks"):
            modes = [
                (shared / "deep" / "locks" / name).stat().st_mode for name in (".", "0.0.lock")
            ]
    finally:
        os.umask(before)
    assert [stat.S_IMODE(mode) for mode in modes] == [0o700, 0o600]


def test_the_runtime_folder_is_used_if_it_is_ours(tmp_path, monkeypatch):
    ours = tmp_path / "ours"
    ours.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(ours)
    (tmp_path / "open").mkdir(mode=0o755)
    for given, used in (("ours", True), ("link", False), ("open", False), ("none", False)):
        found = lock_folder({"XDG_RUNTIME_DIR": str(tmp_path / given)})
        assert (found.parent == ours) is used, given
    assert lock_folder({"XDG_RUNTIME_DIR": str(ours), "MEMLOC_LOCKS": "/x"}).as_posix() == "/x"
    monkeypatch.setattr(private.os, "getuid", lambda: os.stat(ours).st_uid + 1)
    assert lock_folder({"XDG_RUNTIME_DIR": str(ours)}).parent != ours
    monkeypatch.chdir(tmp_path)
    for relative in ("", "ours"):
        assert lock_folder({"XDG_RUNTIME_DIR": relative}).is_absolute()
