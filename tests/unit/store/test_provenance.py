"""Records beside results: what made them, and from which commit of memloc."""

import hashlib
import subprocess

import pytest

import memloc
from memloc.store import provenance as module
from memloc.store.files import read_json
from memloc.store.provenance import memloc_version, provenance, sha256, versions, write_provenance

NAMED = ("-c", "user.name=n", "-c", "user.email=n@example.org")


def git(folder, *words):
    """What git says in a folder."""
    command = ["git", "-C", str(folder), *NAMED, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(autouse=True)
def nothing_known():
    """Each test asks git anew."""
    module._clone.cache_clear()
    yield
    module._clone.cache_clear()


@pytest.fixture
def library(tmp_path):
    """A folder like the library's, in a folder that git doesn't know."""
    folder = tmp_path / "clone/workflow/memloc"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (tmp_path / "clone/config.yaml").write_text("a: 1\n")
    return folder


@pytest.fixture
def clone(library):
    """The same, committed."""
    top = library.parents[1]
    git(top, "init", "--quiet")
    git(top, "add", ".")
    git(top, "commit", "--quiet", "--message", "first")
    return top


def test_a_clone_names_its_commit_and_what_differs_from_it(clone, library):
    known = {"version": memloc.__version__, "commit": git(clone, "rev-parse", "HEAD")}
    assert memloc_version(library) == known | {"changed": []}
    module._clone.cache_clear()
    (clone / "config.yaml").write_text("a: 2\n")
    (clone / "results").mkdir()
    (clone / "results/table.tsv").write_text("untracked")
    assert memloc_version(library) == known | {"changed": ["config.yaml"]}


def test_a_hook_s_variables_lead_to_no_other_repository(clone, library, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other/index"))
    assert len(memloc_version(library)["commit"]) == 40


def test_no_commit_is_guessed_in_a_plain_folder(library):
    assert memloc_version(library) == {"version": memloc.__version__}


def test_a_repository_that_does_not_track_the_library_says_nothing_of_it(clone):
    installed = clone / ".venv/lib/memloc"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert memloc_version(installed) == {"version": memloc.__version__}


def test_a_repository_without_a_commit_says_nothing(library):
    git(library, "init", "--quiet")
    git(library, "add", ".")
    assert memloc_version(library) == {"version": memloc.__version__}


def test_a_machine_without_git_is_no_obstacle(clone, library, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert memloc_version(library) == {"version": memloc.__version__}


def test_git_is_asked_once(clone, library, monkeypatch):
    first = memloc_version(library)
    monkeypatch.setattr(module, "_git", None)
    assert memloc_version(library) == first


def test_software_versions_say_nothing_of_memloc():
    """They are part of what decides whether partial state goes on: a commit must not end it."""
    assert set(versions()) == {"python", *module.PACKAGES}


def test_records_lie_beside_files_and_inside_folders(tmp_path):
    (tmp_path / "table.tsv").touch()
    (tmp_path / "final").mkdir()
    for result in ("table.tsv", "final"):
        write_provenance(tmp_path / result, seed=3)
    written = read_json(tmp_path / "table.tsv.provenance.json")
    assert written == provenance(seed=3) == read_json(tmp_path / "final/provenance.json")
    assert written["memloc"]["version"] == memloc.__version__ and written["seed"] == 3


def test_a_file_s_hash(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    assert sha256(tmp_path / "file") == hashlib.sha256(b"content").hexdigest()
