"""`memloc bundle`: what a colleague needs of a study's results, as one archive.

The archive is the same to the byte whenever and wherever it is packed from the same files.
"""

import argparse
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from memloc.budget.words import align, number_of
from memloc.bundle.archive import write_archive
from memloc.bundle.contents import CHECKPOINTS, TEXTS, Choice, Contents, contents_of
from memloc.bundle.sources import own_sources
from memloc.errors import MemlocError
from memloc.progress import progress
from memloc.store.files import bytes_of, readable
from memloc.store.provenance import provenance, sha256
from memloc.store.records import FOLDER, difference
from memloc.study.noted import noted_settings

MANIFEST, SETTINGS = "bundle.json", "study.yaml"
FORMAT = 1
YES_NO = ("yes", "no")
READABLE = (".json", ".tsv", ".yaml", ".html", ".txt", ".sha256")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("folder", nargs="?", default="results", help="results_dir of the study")
    parser.add_argument("--to", default="bundle.tar.gz", help="the archive (bundle.tar.gz)")
    parser.add_argument(
        "--checkpoints", choices=CHECKPOINTS, default="final",
        help="final (the default): theta_O, theta_M2 and theta_F; all: every one; none",
    )  # fmt: skip
    parser.add_argument(
        "--resources", choices=YES_NO, default="yes",
        help="pre-trained models and data sets as retrieved; no: their checksums alone",
    )  # fmt: skip
    parser.add_argument(
        "--texts", choices=YES_NO, default="yes",
        help="no: without the data sets' texts, which may not be yours to pass on; no window can "
        "then be computed again",
    )  # fmt: skip


def main(arguments: argparse.Namespace) -> int:
    """Pack results, and say what is in the archive."""
    results, to = Path(arguments.folder), Path(arguments.to)
    choice = Choice(arguments.checkpoints, arguments.resources == "yes", arguments.texts == "yes")
    with alone(results):
        print("\n".join(pack(results, to, choice)))
    return 0


@contextmanager
def alone(results: Path) -> Iterator[None]:
    """Keep drivers from the results meanwhile; MemlocError where one is at work on them."""
    place = results / FOLDER / "driver"
    if not place.exists():
        yield
        return
    with open(place, encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MemlocError(
                f"{results}: a run is at work on these results. Wait until it is done (memloc "
                "status says how far it is), or end it"
            ) from None
        except OSError:  # a file system without locks: what the driver has written has to do
            if file.read().strip():
                raise MemlocError(f"{results}: a run may be at work on these results; "
                                  f"where none is, delete {place}") from None  # fmt: skip
        yield


def pack(results: Path, to: Path, choice: Choice) -> list[str]:
    """Write the archive; what is in it and what isn't, in lines.

    Called in the study's working folder. Raises MemlocError where something is half made, isn't as
    its record says, or names a folder of this machine.
    """
    config = noted_settings(results)
    if config is None:
        raise MemlocError(
            f"{results}: it isn't noted which settings these results were run with. Name the "
            "folder of results_dir, or give the study's command again: then they are noted"
        )
    names = (
        _relative(config["results_dir"], "results"),
        _relative(config["resources_dir"], "resources"),
    )
    found = contents_of(results, Path(config["resources_dir"]), config, names, choice)
    _add_sources(found, config, choice)
    settings = {**config, "results_dir": names[0], "resources_dir": names[1]}
    text = yaml.safe_dump(settings, allow_unicode=True).encode()
    _refuse_places(SETTINGS, text, _places(results))
    facts = _facts(found, _places(results)) | {SETTINGS: _of_bytes(text)}
    manifest = _manifest(facts, names, choice, found.left_out)
    first: dict[str, Path | bytes] = {MANIFEST: manifest, SETTINGS: text}
    files = {name: found.files[name][0] for name in sorted(found.files)}
    write_archive(to, first | files, found.folders)
    return _told(to, found, facts, choice)


def _add_sources(found: Contents, config: Mapping[str, Any], choice: Choice) -> None:
    """Add the study's own task files and models, as far as they lie below the working folder."""
    own, missing = own_sources(config, choice.texts, choice.resources)
    found.files |= {name: (path, None) for name, path in own.items()}
    found.own |= set(own)
    found.left_out += missing


def _relative(folder: str, otherwise: str) -> str:
    """The name of a folder in the bundle: as it was configured, unless that leads elsewhere."""
    path = Path(folder)
    leads = path.is_absolute() or ".." in path.parts or not path.parts
    return otherwise if leads else path.as_posix()


def _facts(found: Contents, places: list[bytes]) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of each file, once it has been compared with its record."""
    facts = {}
    for name in progress(sorted(found.files), len(found.files), "checking"):
        file, said = found.files[name]
        if said and (wrong := difference(file, said)):
            raise MemlocError(f"{file} isn't as it was made: {wrong}. Delete it, and have it made "
                              "anew")  # fmt: skip
        if file.suffix in READABLE:
            _refuse_places(str(file), file.read_bytes(), places)
        facts[name] = dict(said or {"bytes": file.stat().st_size, "sha256": sha256(file)})
    return facts


def _places(results: Path) -> list[bytes]:
    """Folders of this machine that no file of a bundle should name."""
    found = {Path.cwd(), Path.home(), results.resolve()} - {Path("/")}
    return [os.fsencode(f"{place}/") for place in found]


def _refuse_places(name: str, text: bytes, places: list[bytes]) -> None:
    for place in places:
        if place in text:
            raise MemlocError(
                f"{name} names {os.fsdecode(place)}, a folder of this machine. Name folders of "
                "models and tasks relative to the working folder, and run the study so"
            )


def _of_bytes(text: bytes) -> dict[str, Any]:
    return {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}


def _manifest(
    facts: Mapping[str, Any], names: tuple[str, str], choice: Choice, left_out: list[str]
) -> bytes:
    content = {
        "bundle": FORMAT,
        **provenance(),
        "choice": vars(choice),
        "results": names[0],
        "resources": names[1],
        "left_out": sorted(left_out),
        "files": facts,
    }
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _told(
    to: Path, found: Contents, facts: Mapping[str, Mapping[str, Any]], choice: Choice
) -> list[str]:
    kinds: dict[str, list[int]] = {}
    for name, said in facts.items():
        kinds.setdefault(_kind(name, found), []).append(said["bytes"])
    rows = [[kind, number_of(len(sizes), "file"), readable(sum(sizes))]
            for kind, sizes in sorted(kinds.items())]  # fmt: skip
    lines = [f"{to}: {readable(bytes_of(to))}", *align(rows, (0,))]
    if found.left_out:
        lines.append(f"left out: {number_of(len(found.left_out), 'result')}, such as "
                     f"{sorted(found.left_out)[0]}")  # fmt: skip
    if choice.texts:
        lines.append("It holds the data sets' texts: are they yours to pass on? --texts no leaves "
                     "them out, and the page with its examples.")  # fmt: skip
    return [*lines, f"memloc verify {to}"]


def _kind(name: str, found: Contents) -> str:
    if "/.records/" in name or name == SETTINGS:
        return "records and settings"
    if name in found.own:
        return "own task files, data and models"
    if TEXTS.search(name):
        return "texts"
    if any(name.startswith(f"{folder}/") for folder in found.folders):
        return "models"
    return "tables, figures and the rest"
