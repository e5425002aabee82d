"""What every script shares: logging to the rule's log, threads, and readable errors."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import lifeline
from memloc.errors import MemlocError
from memloc.machine.gpus import own_gpu
from memloc.store.files import full_disk, is_full
from memloc.store.lock import alone
from memloc.store.provenance import memloc_version, sha256

FORMAT = "%(asctime)s {job}  %(message)s"
lifeline.hold()  # before anything that takes long is imported


class LogFile(logging.FileHandler):
    """A log that a full disk cuts short without a trace for each lost line; the terminal has it."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Called for what emit raised."""
        if not is_full(sys.exc_info()[1] or OSError()):
            super().handleError(record)


@contextmanager
def job(snakemake: Any) -> Iterator[logging.Logger]:
    """Set up one job, with a GPU of its own where it asks for one."""
    with _told(snakemake) as logger, _device(snakemake):
        yield logger


@contextmanager
def run(snakemake: Any) -> Iterator[bool]:
    """Set up a job that keeps its partial state in `params.scratch`, which is then its alone.

    Yields whether another process has meanwhile made its outputs, so that nothing is left to do.
    """
    files = [path for path in snakemake.input if Path(path).is_file()]
    identity = {
        "params": dict(snakemake.params.items()),
        "inputs": {path: sha256(path) for path in files},
    }
    with (
        _told(snakemake),
        alone(snakemake.params.scratch, identity, snakemake.output) as done,
        nullcontext() if done else _device(snakemake),  # only now a GPU: waiting needs none
    ):
        yield done


@contextmanager
def _told(snakemake: Any) -> Iterator[logging.Logger]:
    """Log and report; a MemlocError ends a job with its message alone, others with a trace."""
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


def untracked(snakemake: Any, *keys: str) -> Any:
    """A setting that changes only speed and rounding.

    Scripts take what results depend on from params, where a change re-runs the rule. What only
    says how much is computed at once comes from the configuration, and a change re-runs nothing.
    """
    value = snakemake.config
    for key in keys:
        value = value[key]
    return value
