"""A full disk: what is said, what is left, and which errors count as one."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import SafetensorError

from memloc.store.files import DiskFull, atomic, full_disk, is_full, readable
from shipped import ROOT


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), True),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), True),
        (OSError(errno.EFBIG, os.strerror(errno.EFBIG)), True),
        (SafetensorError("I/O error: File too large (os error 27)"), True),
        (SafetensorError("I/O error: No space left on device (os error 28)"), True),
        (OSError(errno.EACCES, os.strerror(errno.EACCES)), False),
        (ValueError("no such window"), False),
    ],
)
def test_which_errors_mean_a_full_disk(error, full):
    assert is_full(error) is full


def test_the_error_names_file_need_and_remedy(tmp_path):
    path = tmp_path / "results/run/table.tsv"
    said = r"table\.tsv: .* needs 3\.00 MB, and .* are free.*larger"
    with pytest.raises(DiskFull, match=said), atomic(path, needs=3e6):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert not list(path.parent.iterdir())


def test_what_was_there_before_stays(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").write_text("whole")
    with pytest.raises(DiskFull, match="more than"), atomic(path) as draft:
        draft.mkdir()
        (draft / "new").write_bytes(bytes(1000))
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (path / "old").read_text() == "whole" and len(list(tmp_path.iterdir())) == 1


def test_a_file_without_a_place_still_has_an_error():
    assert "are free" in str(full_disk(Path("not/there/at/all")))
    assert [readable(n) for n in (12, 3.4e3, 5.67e6, 8.9e9)] == [
        *("12 bytes", "3.40 kB", "5.67 MB", "8.90 GB"),
    ]


def test_other_errors_pass_unchanged(tmp_path):
    with pytest.raises(PermissionError), atomic(tmp_path / "file"):
        raise PermissionError(errno.EACCES, "denied")


def test_a_limit_of_the_shell_is_named(tmp_path):
    """`ulimit -f` stops a file, and no room that is made helps."""
    code = (
        "from memloc.store.files import atomic\n"
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        f"with atomic({str(tmp_path / 'big')!r}) as draft: draft.write_bytes(bytes(10_000))"
    )
    environ = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert "big: no file written here may have more than 8.19 kB (ulimit -f)" in done.stderr
    assert not list(tmp_path.iterdir())
