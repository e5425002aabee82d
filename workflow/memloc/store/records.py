"""What a result was made with and which bytes it has: a record beside it, read before it is used.

The record of FOLDER/NAME is FOLDER/.records/NAME.json, so that it goes wherever the folder goes.
The job that made the result writes it last, every job that reads the result compares the bytes with
it, and a plan compares what the result was made with, and of which inputs. Planning imports this
module: no torch.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

from memloc.errors import MemlocError
from memloc.store.files import read_json, read_record, write_json
from memloc.store.provenance import sha256

FOLDER = ".records"
LONGEST = 200  # characters of a value that a record holds; of a longer one it holds the digest
UNCOUNTED = ("scratch",)  # params that say where partial state lies, and decide nothing

Made = dict[str, str]  # dotted name of a wildcard or param -> its value as JSON
Inputs = list[list[str | None]]  # name and digest of each file or folder that a job read, in order


def record_of(result: str | Path) -> Path:
    """Where the record of a file or folder lies."""
    return Path(result).parent / FOLDER / f"{Path(result).name}.json"


def made_with(wildcards: Mapping[str, Any], params: Mapping[str, Any]) -> Made:
    """What a job's results depend on, as flat texts that can be compared and named one by one."""
    counted = {key: value for key, value in params.items() if key not in UNCOUNTED}
    return dict(_flat("wildcards", dict(wildcards))) | dict(_flat("", counted))


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
        return
    text = json.dumps(value, sort_keys=True, default=str)
    digest = f"SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"
    yield name, text if len(text) <= LONGEST else digest


@contextmanager
def recorded(
    results: Iterable[str | Path], made: Made, read_from: Inputs | None = None
) -> Iterator[None]:
    """Around what makes results: their old records go before, new ones are written after.

    read_from: the inputs that they are made of. Whenever the process is killed, no record says of a
    result what isn't so. What lies beside a result, NAME.provenance.json, gets a record too.
    """
    paths = [Path(result) for result in results]
    for path in paths:
        record_of(path).unlink(missing_ok=True)
    yield
    beside = (path.with_name(f"{path.name}.provenance.json") for path in paths)
    for path in dict.fromkeys([*paths, *beside]):
        if path.exists():
            _write(path, made, read_from)


def _write(path: Path, made: Made, read_from: Inputs | None) -> None:
    """Record a result, again where another study has replaced it meanwhile (shared resources)."""
    found = None
    while found != (found := _stamps(path)):
        files = {name: _facts(file) for name, file in files_of(path).items()}
        content = {"made_with": made, "files": files}
        write_json(record_of(path), content | ({} if read_from is None else {"inputs": read_from}))


def check(path: str | Path) -> str | None:
    """Compare a file or folder with its record; one digest of it, None where it has no record.

    A file in a folder that has a record is compared with that. Times don't count, bytes do.
    Raises MemlocError that names the file, what differs and the remedy.
    """
    path = Path(path)
    found = read(path)
    if found is None and (outer := read(path.parent)):
        return _compare(path, path.parent, {path.name: outer["files"].get(path.name)})
    return _compare(path, path, found["files"]) if found else None


def inputs(digests: Mapping[str, str | None]) -> Inputs:
    """What a record says of a job's inputs, from the digests that `check` has found.

    A folder has none: a checkpoint trained again has the same weights and another record, and the
    digest of its weights is an input beside it.
    """
    return [
        [Path(path).name, (digest or sha256(path)) if Path(path).is_file() else None]
        for path, digest in digests.items()
    ]


def is_as_read(path: str | Path, place: int, record: Mapping[str, Any]) -> bool | None:
    """Whether an input, `place` in its job's order, is what the record's result was made of.

    It goes by the input's own record, and reads no more than a file without one. None: unknown.
    """
    known = record.get("inputs") or []
    if place >= len(known) or known[place][1] is None or not Path(path).is_file():
        return None
    own = read(path)
    now = _digest(own["files"]) if own else sha256(path)
    return bool(known[place] == [Path(path).name, now])


def read_checked(path: str | Path) -> Any:
    """What a JSON file beside results or in one holds, once it has been compared (see `check`)."""
    check(path)
    return read_json(path)


def read(result: str | Path) -> dict[str, Any] | None:
    """A result's record, `made_with` and `files`; None where it has none, MemlocError if torn."""
    place = record_of(result)
    return read_record(place, _remedy(Path(result), place), ("made_with", "files"))


def differences(record: Mapping[str, Any], wanted: Made) -> list[str]:
    """What a result was made with that differs from what is wanted, in words."""
    was = record["made_with"]
    return [
        f"{name} was {_shown(was.get(name))}, and is to be {_shown(wanted.get(name))}"
        for name in sorted({*was, *wanted})
        if was.get(name) != wanted.get(name)
    ]


def _shown(value: str | None) -> str:
    return shorten(value or "absent", 80, placeholder=" …")


def _compare(path: Path, result: Path, listed: Mapping[str, Any]) -> str:
    """Compare `path`, which is a result or lies in one, with what the result's record lists."""
    there = files_of(path) if path == result else {path.name: path}
    for fault in _faults(result, there, listed):
        raise MemlocError(f"{fault}. {_remedy(result, record_of(result))}")
    return _digest(listed)


def faults(result: str | Path) -> Iterator[str]:
    """Each file of a recorded result that isn't as its record says, in a line."""
    path = Path(result)
    if found := read(path):
        yield from _faults(path, files_of(path), found["files"])


def _faults(result: Path, there: Mapping[str, Path], listed: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*listed, *there}):
        file = there.get(name, result / name)
        said = listed.get(name)
        if not said:
            yield f"{file} isn't in the record of {result}"
        elif not file.is_file():
            yield f"{file} is missing, which was there when it was made"
        elif wrong := difference(file, said):
            yield f"{file} isn't as it was made: {wrong}"


def difference(file: Path, said: Mapping[str, Any]) -> str | None:
    """How a file's bytes or SHA-256 differ from what is said of them; None where they don't."""
    size = file.stat().st_size
    if size != said.get("bytes"):
        return f"bytes {size} instead of {said.get('bytes')}"
    found = sha256(file)
    return None if found == said.get("sha256") else f"sha256 {found} instead of {said['sha256']}"


def _digest(listed: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(listed, sort_keys=True).encode()).hexdigest()


def _remedy(result: Path, record: Path) -> str:
    return (
        f"Delete {result}, and give the same command again: then it is made anew. Where the change "
        f"is meant, delete {record} instead."
    )


def files_of(path: Path) -> dict[str, Path]:
    """The files of a result by their name in it: a folder's but for hidden ones, else "" alone."""
    if not path.is_dir():
        return {"": path}
    inner = (file for file in sorted(path.rglob("*")) if file.is_file())
    named = {file.relative_to(path).as_posix(): file for file in inner}
    return {name: file for name, file in named.items() if "/." not in f"/{name}"}


def _facts(file: Path) -> dict[str, Any]:
    return {"bytes": file.stat().st_size, "sha256": sha256(file)}


def _stamps(path: Path) -> list[tuple[str, int, int, int]]:
    stats = [(name, file.stat()) for name, file in files_of(path).items()]
    return [(name, s.st_ino, s.st_size, s.st_mtime_ns) for name, s in stats]
