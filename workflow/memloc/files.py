"""Files that are either whole or absent, and the record of where a result came from."""

import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError

PACKAGES = ("torch", "transformers", "numpy", "pandas", "scikit-learn", "snakemake")


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary sibling of `path` to write a file or folder to; rename it on success.

    A process killed at any moment leaves `path` as it was before.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    holder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        draft = holder / path.name
        yield draft
        if path.is_dir() and not path.is_symlink():
            os.replace(path, holder / "replaced")
        os.replace(draft, path)
    finally:
        shutil.rmtree(holder, ignore_errors=True)


def write_json(path: str | Path, content: Any) -> None:
    """Write `content` as indented JSON, atomically, keys sorted."""
    with atomic(path) as draft:
        draft.write_text(json.dumps(content, indent=2, sort_keys=True, default=str) + "\n")


def read_json(path: str | Path) -> Any:
    """Read a JSON file."""
    return json.loads(Path(path).read_text())


def read_state(path: str | Path) -> Any:
    """What a scratch file of JSON holds; None where it is missing or can't be read."""
    try:
        return read_json(path)
    except (OSError, ValueError):
        return None


def sha256(path: str | Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def write_provenance(result: str | Path, **facts: Any) -> None:
    """Write parameters, seeds, versions and other facts beside `result`.

    A file gets ``<file>.provenance.json``, a folder ``provenance.json`` inside it.
    """
    result = Path(result)
    inside = result / "provenance.json"
    path = inside if result.is_dir() else result.with_name(f"{result.name}.provenance.json")
    write_json(path, {"versions": versions(), **facts})


def require_space(folder: str | Path, needed_bytes: float, purpose: str) -> None:
    """Raise MemlocError when the file system of `folder` has fewer than `needed_bytes` free."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise MemlocError(
            f"{folder}: {purpose} needs {needed_bytes / 1e9:.2f} GB, but only {free / 1e9:.2f} GB "
            "are free. Make room, or point results_dir at a larger disk."
        )
