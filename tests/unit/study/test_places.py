"""Where things lie: logs that mirror results, wherever these are."""

import pytest

from memloc.study.places import mirrored


@pytest.mark.parametrize(
    ("path", "log"),
    [
        ("results/a/b.log", "logs/results/a/b.log"),
        ("/data/out/a.log", "logs/data/out/a.log"),
        ("//data/out/a.log", "logs/data/out/a.log"),
        ("../out/{task}.log", "logs/up/out/{task}.log"),
        ("./out/a.log", "logs/out/a.log"),
    ],
)
def test_logs_stay_in_their_folder(path, log):
    assert mirrored("logs", path) == log
