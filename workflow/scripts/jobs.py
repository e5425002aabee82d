"""What every script shares: logging to the rule's log, threads, and readable errors."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.files import full_disk, is_full
from memloc.slots import own_gpu

FORMAT = "%(asctime)s {job}  %(message)s"


class LogFile(logging.FileHandler):
    """A log that a full disk cuts short without a trace for each lost line; the terminal has it."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Called for what emit raised."""
        if not is_full(sys.exc_info()[1] or OSError()):
            super().handleError(record)


@contextmanager
def job(snakemake: Any) -> Iterator[logging.Logger]:
    """Set up one job; a MemlocError ends it with its message alone, anything else with a trace."""
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if snakemake.log:
        Path(snakemake.log[0]).parent.mkdir(parents=True, exist_ok=True)
        handlers.append(LogFile(snakemake.log[0], mode="w", encoding="utf-8"))
    # Jobs run side by side share a terminal: every line says whose it is.
    named = " ".join([snakemake.rule, *snakemake.wildcards]).replace("%", "%%")
    style = FORMAT.format(job=named)
    logging.basicConfig(level=logging.INFO, format=style, datefmt="%H:%M:%S", handlers=handlers)
    logger = logging.getLogger(f"memloc.{snakemake.rule}")
    os.environ["OMP_NUM_THREADS"] = str(snakemake.threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(snakemake.threads)
    try:
        with _device(snakemake):
            yield logger
    except MemlocError as error:
        logger.error("error in rule %s: %s", snakemake.rule, error)
        sys.exit(1)
    except BaseException as error:
        if is_full(error):
            name = getattr(error, "filename", None) or "a temporary file"
            logger.error("error in rule %s: %s", snakemake.rule, full_disk(name))
            sys.exit(1)
        logger.exception("rule %s failed", snakemake.rule)
        raise


def _device(snakemake: Any) -> AbstractContextManager:
    """A GPU of its own for a job that asks for one.

    Which one plays no part in results: it comes from the configuration, and not from params.
    """
    if not snakemake.resources.get("gpu"):
        return nullcontext()
    devices = snakemake.config["devices"]
    return own_gpu(devices["gpus"], devices["jobs_per_gpu"])
