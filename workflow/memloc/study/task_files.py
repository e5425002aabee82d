"""Task files of a study, read when asked for: a target may name a task that config doesn't."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from memloc.errors import MemlocError
from memloc.study.tasks import Task, load_task


class TaskFiles(Mapping[str, Task]):
    """Task files by name; iterates over those that have been read.

    folders are searched in order; tasks_dir holds the data in place of the files' own sources.
    Asking for a task that has no file, or a faulty one, raises MemlocError.
    """

    def __init__(self, folders: list[str | Path], tasks_dir: str | None = None):
        self.folders, self.tasks_dir = folders, tasks_dir
        self._read: dict[str, Task] = {}

    def __getitem__(self, name: str) -> Task:
        if name not in self._read:
            self._read[name] = load_task(name, self.folders, self.tasks_dir)
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is such a task and its file is right."""
        try:
            return self[str(name)] is not None
        except MemlocError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)
