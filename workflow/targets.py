"""Misspelt targets: Snakemake says that no rule makes them, and this which ones a rule would."""

import difflib
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from snakemake.exceptions import ApiError
from snakemake.logging import logger

import planning
from part import Part


class Targets(logging.Handler):
    """Looks at the targets of a command once, after the workflow has been read."""

    def __init__(self, part: Part, files: Callable[[], list[str]]):
        super().__init__()
        self.part, self.files = part, files

    def emit(self, record: logging.LogRecord) -> None:
        """With the first record of a plan, before the files of its targets are looked for."""
        if self.part.workflow.dag is None:
            return
        logger.removeHandler(self)
        for target in sorted(planning.targets(self.part)):
            if said := self.misspelt(os.path.normpath(target)):
                raise ApiError(said)  # which Snakemake shows without a trace

    def misspelt(self, target: str) -> str | None:
        """What is said of a target that nothing makes, but for whose like something does."""
        rules = self.part.workflow.rules
        if target in {rule.name for rule in rules} | set(self.part.names().values()):
            return None
        if Path(target).exists() or any(rule.is_producer(target) for rule in rules):
            return None
        names = [rule.name for rule in rules if "/" not in target]
        close = nearest(target, [*names, *planning.reached(self.part, self.files())])
        if close is None:
            return None
        return f"no rule makes {target}: did you mean {close}?"


def nearest(path: str, known: Iterable[str]) -> str | None:
    """The known path most like `path`, part by part; None where one of its parts is like none."""
    parts = path.split("/")
    left = [found for name in known if len(found := name.split("/")) == len(parts)]
    for place, part in enumerate(parts):
        there = sorted({name[place] for name in left})
        close = [part] if part in there else difflib.get_close_matches(part, there, 1)
        if not close:
            return None
        left = [name for name in left if name[place] == close[0]]
    return "/".join(left[0])


def watch(part: Part, files: Callable[[], list[str]]) -> None:
    """Have misspelt targets of this command told; `files`: those that the whole study ends in."""
    if planning.is_driver(part.workflow) and not part.is_watched:
        logger.addHandler(Targets(part, files))
