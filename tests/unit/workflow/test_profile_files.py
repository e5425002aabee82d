"""Which profiles a command line names."""

from pathlib import Path

import pytest

from profile_files import profile_files


@pytest.mark.parametrize(
    ("words", "environment", "expected"),
    [
        ([], "", ["profiles/default"]),
        (["--profile", "profiles/a", "-n"], "", ["profiles/a", "profiles/default"]),
        (["--profile=profiles/a"], "profiles/b", ["profiles/a", "profiles/default"]),
        ([], "profiles/b", ["profiles/b", "profiles/default"]),
        (["--workflow-profile", "none", "--profile", "none"], "", []),
        (["--workflow-profile", "a", "--cores", "2", "all"], "", ["profiles/a"]),
    ],
)
def test_the_profiles_of_a_command_line(tmp_path, monkeypatch, words, environment, expected):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SNAKEMAKE_PROFILE", environment)
    for name in ("a", "b", "default"):
        place = tmp_path / "profiles" / name
        place.mkdir(parents=True)
        (place / "config.yaml").touch()
    found = [path.resolve() for path in profile_files(words, tmp_path / "Snakefile")]
    assert found == [Path(tmp_path, name, "config.yaml").resolve() for name in expected]
