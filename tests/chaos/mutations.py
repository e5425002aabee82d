"""What a process changes on the disk: counted, and the process killed before a given change.

Python reports most changes itself (audit events). Three libraries write in native code, and are
caught where Python calls them; there the file may also be left half written.

With `power`, the process loses on its death what a power failure may take: what was written and
not synced is cut, and new names are gone, and old ones back, in folders not synced since. That is
a model of a disk, and not a disk; removals are taken to last at once.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
import safetensors.torch
from transformers import PreTrainedTokenizerFast

from memloc.store import drafts

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = {  # audit events, and where among their arguments the folder's descriptor is
    "os.mkdir": 2,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.rename": 2,
    "os.truncate": None,
    "os.link": 2,
    "os.symlink": 2,
}


class Disk:
    """The changes of this process below a folder; it dies before number `last`."""

    def __init__(self, root: Path, last: int | None, power: bool):
        self.root, self.last, self.power = root.resolve(), last, power
        self.count, self.busy = 0, False
        self.unsynced: list[Path] = []  # files
        self.names: list[tuple[Path, Callable[[], object]]] = []  # folder; how it was before

    def install(self) -> None:
        """From now on."""
        sys.addaudithook(self._hear)
        self._native(safetensors.torch, "serialize_file", lambda _, path, **__: path)
        self._native(pyarrow.parquet, "write_table", lambda _, path, **__: path)
        self._native(
            PreTrainedTokenizerFast,
            "_save_pretrained",
            lambda _, save_directory, *__, **___: Path(save_directory, "tokenizer.json"),
        )
        self._exchange()
        sync = os.fsync

        def fsync(file: int) -> None:
            sync(file)
            self._synced(Path(os.readlink(f"/proc/self/fd/{file}")))

        os.fsync = fsync

    def lose_power(self) -> None:
        """What isn't synced is gone."""
        self.busy = True
        for _, restore in reversed(self.names):
            restore()
        for path in self.unsynced:
            if path.is_file():
                os.truncate(path, path.stat().st_size // 2)

    # --- what is heard -----------------------------------------------------------------

    def _hear(self, event: str, arguments: tuple) -> None:
        if self.busy:
            return
        if event == "open":
            path, _, flags = arguments
            if not isinstance(path, int) and isinstance(flags, int) and flags & WRITES:
                self._change(self._place(path), self._written)
        elif event in CHANGES:
            place = CHANGES[event]
            folder = arguments[place] if place is not None else -1
            path = self._place(arguments[0], folder)
            if event == "os.rename":
                target = self._place(arguments[1])
                self._change(target, lambda _: self._renamed(path, target))
            else:
                self._change(path, self._made if event == "os.mkdir" else lambda _: None)

    def _place(self, path: object, folder: int = -1) -> Path:
        if isinstance(path, int):
            return Path(os.readlink(f"/proc/self/fd/{path}"))
        base = os.readlink(f"/proc/self/fd/{folder}") if folder >= 0 else os.getcwd()
        return Path(os.path.normpath(os.path.join(base, os.fsdecode(path))))

    def _change(self, path: Path, note: Callable[[Path], object]) -> None:
        if not path.is_relative_to(self.root):
            return
        self.count += 1
        self.busy = True
        if self.count == self.last:
            self._die()
        if self.power:
            note(path)
        self.busy = False

    def _die(self) -> None:
        if self.power:
            self.lose_power()
        os.kill(os.getpid(), signal.SIGKILL)

    def _native(self, owner: object, name: str, path_of: Callable[..., object]) -> None:
        write = getattr(owner, name)

        def written(*arguments, **options):
            path = self._place(path_of(*arguments, **options))
            self._change(path, self._written)
            result = write(*arguments, **options)
            self.busy = True
            self.count += 1
            if self.count == self.last:
                os.truncate(path, path.stat().st_size // 2)
                self._die()
            self.busy = False
            return result

        setattr(owner, name, written)

    def _exchange(self) -> None:
        exchange = drafts._exchange

        def exchanged(one: Path, other: Path) -> bool:
            one, other = self._place(one), self._place(other)
            self._change(other, lambda _: None)
            done = exchange(one, other)
            if done and self.power:
                self.names.append((other.parent, lambda: one.exists() and exchange(one, other)))
            return done

        drafts._exchange = exchanged

    # --- what a power failure would take -------------------------------------------------

    def _written(self, path: Path) -> None:
        self.unsynced.append(path)
        if not path.exists():
            self.names.append((path.parent, lambda: path.unlink(missing_ok=True)))

    def _made(self, path: Path) -> None:
        if not path.exists():  # else making it fails
            self.names.append((path.parent, lambda: shutil.rmtree(path, ignore_errors=True)))

    def _renamed(self, old: Path, new: Path) -> None:
        kept = None
        if new.is_file():
            kept = self.root.parent / f".before-{os.getpid()}-{self.count}"
        if kept:
            os.link(new, kept)

        def restore() -> None:
            if new.exists() and old.parent.exists():
                os.rename(new, old)
            if kept:
                os.replace(kept, new)

        self.unsynced = [
            new / path.relative_to(old) if path.is_relative_to(old) else path
            for path in self.unsynced
        ]
        self.names.append((new.parent, restore))

    def _synced(self, path: Path) -> None:
        self.unsynced = [other for other in self.unsynced if other != path]
        self.names = [(folder, restore) for folder, restore in self.names if folder != path]
