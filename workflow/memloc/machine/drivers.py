"""The process that drives a study: who it is, and whether it still lives."""

import os
import platform
import shlex
import sys
from dataclasses import dataclass
from datetime import datetime
from textwrap import shorten

import psutil

CLOCK_SECONDS = 2.0  # by how much the start of one process may be told differently


@dataclass(frozen=True)
class Driver:
    """A Snakemake process that runs, or may run, what is asked of it in a folder."""

    process: int
    host: str
    started: float  # seconds since the epoch, from which a later process of this number differs
    command: str
    reads: bool = False  # the workflow: it isn't known yet whether anything is to run
    folder: str = ""  # where it was called

    @classmethod
    def this(cls, reads: bool = False) -> "Driver":
        """This process."""
        started = psutil.Process().create_time()
        command = shorten(shlex.join(["snakemake", *sys.argv[1:]]), 120, placeholder=" …")
        return cls(os.getpid(), platform.node(), started, command, reads, os.getcwd())

    @property
    def is_seen(self) -> bool:
        """Whether this machine has the process."""
        if self.host != platform.node():
            return False
        try:
            started = psutil.Process(self.process).create_time()
        except psutil.NoSuchProcess:
            return False
        return abs(started - self.started) <= CLOCK_SECONDS

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.started).isoformat(sep=" ", timespec="seconds")
        return f"process {self.process} on {self.host}, since {since} ({self.command})"
