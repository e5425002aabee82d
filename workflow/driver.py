"""One driver at a time in a study's folder.

Snakemake locks the files of a plan, but only once the plan stands, and before that it looks for
files that no finished job has left: beside a living driver it would call that one's files
incomplete, and advise to make them again. So a driver claims its folder while it is still being
read. The lock is the kernel's (flock), which ends with its holder, however that ends. Where a file
system has no such locks, what the holder has written of itself has to do.
"""

import fcntl
import json
import os
import platform
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from memloc.machine.drivers import Driver
from memloc.store.drafts import opened
from memloc.store.lock import is_current

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Claim:
    """Who has claimed a folder, as far as it is known, and whether it is known to live."""

    driver: Driver | None
    lives: bool = True
    place: str = "this folder"
    unlocking: str = "run snakemake --unlock with the same options"

    @property
    def refusal(self) -> str:
        """Why a run must not start beside it, and what to do."""
        if self.lives:
            return (
                f"another Snakemake process works in {self.place}: {self._who}. Wait until it is "
                f"done, or end it{self._how}; then give this command again. Meanwhile --dry-run "
                "shows the plan."
            )
        return (
            f"a Snakemake process of another machine has worked in {self.place}: {self._who}. From "
            f"{platform.node()} it can't be seen whether it still does. If it does, wait until it "
            f"is done, or end it there. If it is dead, {self.unlocking}. Then give this command "
            "again."
        )

    @property
    def waiting(self) -> str:
        """What is said while another is waited for."""
        return (
            f"another Snakemake process retrieves into {self.place}, or is planning to: "
            f"{self._who}. Waiting until it has."
        )

    @property
    def remark(self) -> str:
        """What anything else than a run says beside it."""
        may = "works" if self.lives else "has worked, and may still work,"
        return (
            f"another Snakemake process {may} in {self.place}: {self._who}. What it is making "
            "counts as still to be made."
        )

    @property
    def _who(self) -> str:
        return str(self.driver or "which one isn't known")

    @property
    def _how(self) -> str:
        if self.driver is None:
            return ""
        return f" (kill {self.driver.process})" if self.driver.is_seen else " there"


class Folder:
    """A study's folder, which one driver holds at a time."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.place = self.path / ".snakemake/memloc.driver"
        self.file: IO[str] | None = None

    def claim(self, reads: bool = False, patience: float = 0.0) -> Claim | None:
        """Hold the folder until `release` or the end of this process; another's claim to it.

        `reads`: this process is still reading the workflow, and may turn out to run nothing. Such a
        claim of another is waited for, `patience` seconds at most.
        """
        give_up = time.monotonic() + patience
        while (other := self._claim(reads)) and other.driver and other.driver.reads:
            if time.monotonic() >= give_up:
                break
            time.sleep(POLL_SECONDS)
        return other

    def _claim(self, reads: bool) -> Claim | None:
        if not self.file:
            try:
                file = opened(self.place)
            except OSError:  # a folder that can't be written to: nothing runs here
                return None
            other = self._other(file)
            if other:
                file.close()
                return other
            self.file = file
        _write(self.file, json.dumps(asdict(Driver.this(reads))))
        return None

    def release(self) -> None:
        """Let others have the folder."""
        if self.file:
            _write(self.file, "")
            self.file.close()
            self.file = None

    def _other(self, file: IO[str]) -> Claim | None:
        """Lock the folder's file; the claim of another that stands against it."""
        locks = True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._claim_of(_read(file), True)
        except OSError:
            locks = False
        driver = _read(file)
        if driver is None:
            return None
        if driver.host != platform.node():
            # locks of some file systems don't reach other machines
            return self._claim_of(driver, False) if self._may_be_held(driver) else None
        return self._claim_of(driver, True) if not locks and driver.is_seen else None

    def _claim_of(self, driver: Driver | None, lives: bool) -> Claim:
        return Claim(driver, lives)

    def _may_be_held(self, driver: Driver) -> bool:
        """Whether a driver on another machine may still be at work."""
        return _has_locks(self.path)


class Results(Folder):
    """A folder of results, which one driver works on at a time, in whichever folder it was called.

    What is retrieved once may be shared by studies that run at the same time; results may not.
    """

    name = "results_dir"
    file_name = "driver"

    def __init__(self, path: str | Path):
        super().__init__(path)
        self.place = self.path / ".records" / self.file_name

    def _claim_of(self, driver: Driver | None, lives: bool) -> Claim:
        where = f" (called in {driver.folder})" if driver and driver.folder else ""
        return Claim(driver, lives, f"{self.path}, the {self.name}{where}", f"delete {self.place}")

    def _may_be_held(self, driver: Driver) -> bool:
        return not Path(driver.folder).is_dir() or _has_locks(Path(driver.folder))


class Resources(Results):
    """A folder of resources, into which one driver at a time retrieves.

    Whoever has done so takes the lock away, and the folder if it was made for the lock alone.
    """

    name = "resources_dir"
    file_name = "retrieving"
    was_there = True

    def _claim(self, reads: bool) -> Claim | None:
        self.was_there = self.path.exists()
        while (other := super()._claim(reads)) is None and self.file:
            if is_current(self.file, self.place):
                break
            self.file.close()  # its holder has just taken it away
            self.file = None
        return other

    def release(self) -> None:
        """Let others retrieve."""
        if self.file:
            self.place.unlink(missing_ok=True)
            super().release()
            with suppress(OSError):  # others' locks or records are in it
                self.place.parent.rmdir()
                None if self.was_there else self.path.rmdir()


def _has_locks(folder: Path) -> bool:
    """Whether Snakemake's own locks lie in a working folder: they are files."""
    return any(folder.glob(".snakemake/locks/*.lock"))


def _read(file: IO[str]) -> Driver | None:
    """Who has claimed a folder; None when that is not, or not yet, written."""
    file.seek(0)
    try:
        return Driver(**json.load(file))
    except (ValueError, TypeError):
        return None


def _write(file: IO[str], text: str) -> None:
    """Say who holds a folder; where the disk is full, the lock has to do."""
    with suppress(OSError):
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), text.encode())  # at its end: opened to append
