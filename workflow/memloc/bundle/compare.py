"""Files of a bundle or of a folder of results, compared with what is said of them."""

import hashlib
import json
import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memloc.bundle.archive import (
    ANEW,
    CHUNK,
    content,
    is_no_name,
    leads_out,
    members,
    opened,
)
from memloc.bundle.contents import results_in
from memloc.bundle.pack import FORMAT, MANIFEST
from memloc.errors import MemlocError, shortly
from memloc.progress import progress
from memloc.store.files import read_json, reading, require_space
from memloc.store.records import FOLDER, difference, faults, read

LARGEST_MANIFEST = 1 << 28


@dataclass(frozen=True)
class Found:
    """faults: a line each; count: of files compared; results, resources: folders of a bundle.

    since: how many results were made in the folder after the bundle was unpacked there.
    """

    faults: list[str]
    count: int
    left_out: list[str]
    results: str | None = None
    resources: str | None = None
    since: int = 0


def in_results(folder: Path) -> Found:
    """A study's own folder of results, by its records. A checkpoint may have been let go."""
    recorded, strays = results_in(folder)
    if not recorded:
        raise MemlocError(f"{folder} holds no results of memloc. Name the folder of results_dir")
    there = [path for path in recorded if path.exists()]
    lost = [path for path in recorded if not path.exists()]
    gone = [str(path) for path in lost if not path.suffix]  # folders: checkpoints
    missing = [f"missing: {path}" for path in lost if path.suffix]
    lines = [line for path in progress(there, len(there), "comparing") for line in faults(path)]
    lines += missing + [f"{path} has no record" for path in strays]
    count = sum(len((read(path) or {"files": ()})["files"]) for path in there)
    return Found(lines, count, gone)


def in_folder(folder: Path) -> Found:
    """A folder that a bundle was unpacked in, by the bundle's manifest."""
    with reading(folder / MANIFEST, ANEW):
        manifest = _checked(read_json(folder / MANIFEST), folder / MANIFEST)
    listed = manifest["files"]
    lines = []
    for name in progress(sorted(listed), len(listed), "comparing"):
        file = folder / name
        with reading(f"{folder}: {shortly(name)}", ANEW):
            if not file.is_file():
                lines.append(f"missing: {name}")
            elif wrong := difference(file, listed[name]):
                lines.append(f"changed: {name}: {wrong}")
    since = set()
    for name in _further(folder, manifest):
        if made := _recorded(folder, name):
            since.add(made)
        else:
            lines.append(f"extra: {name}")
    lines += [line for path in sorted(since) for line in _faults_since(path)]
    return replace(_summary(lines, manifest), since=len(since))


def _recorded(folder: Path, name: str) -> Path | None:
    """The result with a record that a file below `folder` is, lies in or is the record of."""
    file = folder / name
    if file.parent.name == FOLDER:
        places = [file.parent.parent / file.name.removesuffix(".json")]
    else:
        places = [file, *(place for place in file.parents if place.is_relative_to(folder))]
    try:
        return next((place for place in places if read(place)), None)
    except MemlocError:  # a record that is none
        return None


def _faults_since(result: Path) -> Iterator[str]:
    """Faults of a result by its own record. A checkpoint, a folder, may have been let go."""
    if result.exists():
        yield from faults(result)
    elif result.suffix:
        yield f"missing: {result}"


def _further(folder: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Files below the bundle's folders that it doesn't list, those of runs and systems left out."""
    for top in (manifest["results"], manifest["resources"]):
        for base, inner, names in os.walk(folder / top):
            inner[:] = sorted(name for name in inner if name == FOLDER or not name.startswith("."))
            for name in sorted(names):
                file = (Path(base) / name).relative_to(folder).as_posix()
                hidden = name.startswith(".") or (Path(base).name == FOLDER and ".json" not in name)
                if not hidden and file not in manifest["files"]:
                    yield file


def in_archive(path: Path) -> Found:
    """A bundle, by its manifest, without unpacking it to the disk."""
    with opened(path) as tar:
        manifest, found = _manifest(tar, path), set()
        listed = manifest["files"]
        lines = []
        for member in progress(members(tar, path), len(listed), "comparing"):
            if not member.isreg() or member.name == MANIFEST:
                continue
            found.add(member.name)
            if said := listed.get(member.name):
                if wrong := _difference(tar, member, said):
                    lines.append(f"changed: {member.name}: {wrong}")
            else:
                lines.append(f"extra: {member.name}")
    lines += [f"missing: {name}" for name in sorted(set(listed) - found)]
    return _summary(lines, manifest)


def _summary(lines: list[str], manifest: Mapping[str, Any]) -> Found:
    count, left_out = len(manifest["files"]), manifest["left_out"]
    return Found(lines, count, left_out, manifest["results"], manifest["resources"])


def _manifest(tar: tarfile.TarFile, path: Path) -> dict[str, Any]:
    first = tar.next()
    if first is None or first.name != MANIFEST or not first.isreg():
        raise MemlocError(f"{path} doesn't begin with {MANIFEST}. {ANEW}")
    if first.size > LARGEST_MANIFEST:
        raise MemlocError(f"{path}: {MANIFEST} has {first.size} bytes. {ANEW}")
    file = content(tar, first)
    text = b"".join(iter(lambda: file.read(CHUNK), b""))
    return _checked(json.loads(text.decode()), path)


def _checked(manifest: Any, path: Path) -> dict[str, Any]:
    """A manifest that says all it should; MemlocError for another."""
    version = manifest.get("bundle") if isinstance(manifest, dict) else None
    if type(version) is not int or version != FORMAT:  # True is 1, too
        raise MemlocError(f"{path}: another version of memloc has packed this. {ANEW}")
    files, left_out = manifest.get("files"), manifest.get("left_out")
    if not isinstance(files, dict) or not all(map(_is_told, files.values())):
        raise MemlocError(f"{path}: {MANIFEST} doesn't say bytes and SHA-256 of each file. {ANEW}")
    if not isinstance(left_out, list) or not all(isinstance(name, str) for name in left_out):
        raise MemlocError(f"{path}: {MANIFEST} doesn't say what was left out. {ANEW}")
    for name in (*files, manifest.get("results"), manifest.get("resources")):
        if not isinstance(name, str) or is_no_name(name):
            raise MemlocError(f"{path}: {shortly(name)} is no name of a file or folder. {ANEW}")
        if leads_out(name):
            raise MemlocError(f"{path}: {shortly(name)} leads out of its folder. {ANEW}")
    return manifest


def _is_told(said: Any) -> bool:
    """Whether this says of a file how many bytes it has, and which."""
    return (
        isinstance(said, dict)
        and type(said.get("bytes")) is int
        and isinstance(said.get("sha256"), str)
        and re.fullmatch("[0-9a-f]{64}", said["sha256"]) is not None
    )


def _difference(
    tar: tarfile.TarFile, member: tarfile.TarInfo, said: Mapping[str, Any]
) -> str | None:
    if member.size != said["bytes"]:
        return f"bytes {member.size} instead of {said['bytes']}"
    file, found = content(tar, member), hashlib.sha256()
    for chunk in iter(lambda: file.read(CHUNK), b""):
        found.update(chunk)
    digest = found.hexdigest()
    return None if digest == said["sha256"] else f"sha256 {digest} instead of {said['sha256']}"


def unpack(path: Path, folder: Path) -> None:
    """Unpack a bundle whose files have been compared."""
    with opened(path) as tar:
        sizes = [said["bytes"] for said in _manifest(tar, path)["files"].values()]
        require_space(folder, sum(sizes), f"unpacking {path}")
        for member in progress(members(tar, path), len(sizes), "unpacking"):
            tar.extract(member, folder, filter="data")
