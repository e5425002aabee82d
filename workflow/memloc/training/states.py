"""Partial state: what a run keeps in its scratch folder, so that a killed one goes on from there.

A state is a folder NAME.NUMBER with files of tensors (safetensors) and a record, state.json. The
record has the checksums of the files and of itself, so that a state is taken only as it was
written. One that is not whole is left out, with a line in the log that names the file, and the run
goes on from the one before it, or starts anew.
"""

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from memloc.errors import MemlocError
from memloc.store.drafts import discard, make_folder, remove_scratch, settle_all
from memloc.store.files import atomic, read_record
from memloc.store.provenance import sha256

logger = logging.getLogger(__name__)
RECORD = "state.json"
KEYS = ("checksum", "identity", "facts", "files")


class _NotWhole(Exception):
    """A state isn't as it was written; the message names the file."""


@dataclass(frozen=True)
class State:
    """A whole state; facts: what its record says beside the checksums."""

    folder: Path
    number: int
    facts: dict[str, Any]

    def tensors(self, file: str) -> dict[str, Tensor]:
        """The tensors of one of its files, on the CPU."""
        return load_file(self.folder / f"{file}.safetensors")


class States:
    """The states of one run; those of another `identity` are thrown away.

    `identity`: what the run depends on, as plain values of JSON.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, Any]):
        self.folder, self.identity = Path(folder), _plain(identity)
        make_folder(self.folder)
        settle_all(self.folder)

    def clear(self) -> None:
        """Forget everything."""
        remove_scratch(self.folder)

    def save(
        self, name: str, number: int, facts: Mapping[str, Any], **files: Mapping[str, Tensor]
    ) -> None:
        """Write a state, whole or not at all: for each of `files`, tensors by their names.

        Raises DiskFull.
        """
        size = sum(tensor.nbytes for tensors in files.values() for tensor in tensors.values())
        with atomic(self._place(name, number), size) as draft:
            draft.mkdir()
            for file, tensors in files.items():
                plain = {key: t.detach().contiguous() for key, t in tensors.items()}
                save_file(plain, draft / f"{file}.safetensors")
            sums = {path.name: sha256(path) for path in draft.iterdir()}
            record = {"identity": self.identity, "facts": _plain(facts), "files": sums}
            text = json.dumps(record | {"checksum": _checksum(record)}, indent=2, sort_keys=True)
            (draft / RECORD).write_text(text)

    def saved(self, name: str) -> Iterator[State]:
        """The whole states of a name, the highest number first."""
        for number in sorted(self.numbers(name), reverse=True):
            if state := self.find(name, number):
                yield state

    def find(self, name: str, number: int) -> State | None:
        """One state, if it is there and whole; what isn't whole is removed."""
        folder = self._place(name, number)
        try:
            record = _checked(folder)
        except _NotWhole as fault:
            logger.warning("%s: this partial state is left out", fault)
            discard(folder)
            return None
        if record is None:
            return None
        if record["identity"] != self.identity:
            logger.info("%s holds no run with these settings: starting anew", self.folder)
            self.clear()
            make_folder(self.folder)
            return None
        return State(folder, number, record["facts"])

    def numbers(self, name: str) -> list[int]:
        """Numbers of the states of a name, whole or not."""
        pattern = re.compile(rf"{re.escape(name)}\.(\d+)")
        try:
            found = [pattern.fullmatch(path.name) for path in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        return [int(match[1]) for match in found if match]

    def drop(self, name: str, before: float = float("inf")) -> None:
        """Remove the states of a name, or those with lower numbers than `before`."""
        for number in self.numbers(name):
            if number < before:
                discard(self._place(name, number))

    def _place(self, name: str, number: int) -> Path:
        return self.folder / f"{name}.{number}"


class Saving:
    """One kind of state, saved whenever `minutes` have passed since the last one (0: always).

    The one before the last stays: it is there while the next is written, and if that is damaged.
    """

    def __init__(self, states: States, name: str, minutes: float):
        self.states, self.name, self.seconds = states, name, 60 * minutes
        self.begin(0)

    def begin(self, number: int) -> None:
        """Count from now on; `number`: of the state that a run goes on from, 0 without one."""
        self.last, self._since = number, time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether enough would be lost now to be worth saving."""
        return time.monotonic() - self._since >= self.seconds

    def save(self, number: int, facts: Mapping[str, Any], **files: Mapping[str, Tensor]) -> None:
        """Write a state, as States.save does, and remove those before the last one."""
        self.states.drop(self.name, before=self.last)
        self.states.save(self.name, number, facts, **files)
        self.begin(number)


def _checked(folder: Path) -> dict[str, Any] | None:
    """The record of a state; None where there is no state. Raises _NotWhole."""
    if not os.path.lexists(folder):
        return None
    try:
        record = read_record(folder / RECORD, "", KEYS)
        if record is None:
            raise _NotWhole(f"{folder / RECORD} is missing")
        if record.pop("checksum") != _checksum(record):
            raise _NotWhole(f"{folder / RECORD} is not as it was written")
        for name, known in record["files"].items():
            if sha256(folder / name) != known:
                raise _NotWhole(f"{folder / name} is not as it was written")
    except MemlocError as error:
        raise _NotWhole(str(error).rstrip(". ")) from None
    except OSError as error:
        raise _NotWhole(f"{error.filename} can't be read: {error.strerror}") from None
    return record


def _plain(content: Any) -> Any:
    """The same as JSON gives it back."""
    return json.loads(json.dumps(content, default=str))


def _checksum(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
