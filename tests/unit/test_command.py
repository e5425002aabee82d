"""The command `memloc` beside other commands of a shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import memloc
from bundled import write_tree

COMMANDS = [["verify", "results"], ["--help"], ["bundle", "--help"]]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_reader_that_has_gone_is_no_fault(tmp_path, words):
    """As in `memloc status | head`, whose pipe nobody reads any more."""
    write_tree(tmp_path)
    (tmp_path / "results/stray.tsv").write_text("a fault to be told")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "memloc", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(memloc.__file__).parents[1])},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr, done.stderr
    assert done.returncode == 141 or "--help" in words  # which argparse sees to
