"""Progress of long work: a bar on a terminal, plain lines in logs."""

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
logger = logging.getLogger(__name__)


def progress(
    items: Iterable[Item], total: int, description: str, every_seconds: float = 30.0
) -> Iterator[Item]:
    """Yield `items`; show a bar where stderr is a terminal, else log a line now and then."""
    if sys.stderr.isatty():
        yield from tqdm(items, total=total, desc=description, leave=False, file=sys.stderr)
        return
    last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - last >= every_seconds:
            last = time.monotonic()
            logger.info("%s: %d of %d", description, done, total)
