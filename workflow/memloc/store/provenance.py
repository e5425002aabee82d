"""Where a result came from: the record beside it, the software behind it, hashes of its inputs."""

import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from memloc import __version__
from memloc.store.files import write_json

PACKAGES = ("torch", "transformers", "peft", "numpy", "pandas", "scikit-learn", "snakemake")
LIBRARY = Path(__file__).resolve().parents[1]
GIT_SECONDS = 10
# Set by git for its hooks: they would make it answer about another repository.
GIT_PLACES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


def sha256(path: str | Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on.

    Partial state made with other versions is not continued. memloc's own version and commit are
    left out on purpose: the fingerprint of a rule's code says better what its results depend on.
    """
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def memloc_version(library: Path = LIBRARY) -> dict[str, Any]:
    """memloc's version and, where git tracks the library's files, their commit.

    commit: of the whole work tree; changed: its tracked files that differ from that commit. Both
    are absent where memloc is installed, or where git doesn't answer. Read once per process.
    """
    return {"version": __version__, **_clone(library)}


@cache
def _clone(library: Path) -> dict[str, Any]:
    tracked = _git(library, "ls-files", "--error-unmatch", "__init__.py")
    commit = _git(library, "rev-parse", "--verify", "HEAD") if tracked else None
    if not commit:
        return {}
    found: dict[str, Any] = {"commit": commit.strip()}
    changed = _git(library, "--no-optional-locks", "diff", "--name-only", "HEAD")
    return found if changed is None else found | {"changed": changed.splitlines()}


def _git(folder: Path, *words: str) -> str | None:
    """What git says in a folder; None where it fails or is missing."""
    environ = {name: value for name, value in os.environ.items() if name not in GIT_PLACES}
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=GIT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout if done.returncode == 0 else None


def provenance(**facts: Any) -> dict[str, Any]:
    """A record of how a result was made: the software, and `facts` such as parameters and seeds."""
    return {"memloc": memloc_version(), "versions": versions(), **facts}


def write_provenance(result: str | Path, **facts: Any) -> None:
    """Write the record of a result beside it.

    A file gets ``<file>.provenance.json``, a folder ``provenance.json`` inside it.
    """
    result = Path(result)
    inside = result / "provenance.json"
    path = inside if result.is_dir() else result.with_name(f"{result.name}.provenance.json")
    write_json(path, provenance(**facts))
