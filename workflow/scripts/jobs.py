"""What every script shares: logging to the rule's log, threads, a GPU, and readable errors."""

import gc
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
from memloc.store.files import forbidden, full_disk, is_full
from memloc.store.lock import one_process
from memloc.store.provenance import memloc_version
from memloc.store.records import Inputs, check, inputs, made_with, recorded

FORMAT = "%(asctime)s {job}  %(message)s"
lifeline.hold()  # before anything that takes long is imported
gc.disable()  # imports leave no garbage, and looking for it is a quarter of their time


class LogFile(logging.FileHandler):
    """A rule's log. Lines that a full disk has no room for are dropped; the terminal shows them."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Called when a line could not be written."""
        if not is_full(sys.exc_info()[1] or OSError()):
            super().handleError(record)  # prints the error; a full disk is reported elsewhere


@contextmanager
def job(snakemake: Any) -> Iterator[logging.Logger]:
    """Run the body as one job, with a GPU of its own if the rule asks for one."""
    with (
        _reporting(snakemake) as logger,
        _recorded(snakemake, inputs(_checked(snakemake))),
        _own_gpu(snakemake),
    ):
        yield logger


@contextmanager
def run(snakemake: Any) -> Iterator[bool]:
    """The same for a job that keeps partial state in `params.scratch`, which no other may use.

    Waits while another process works on the same run. Yields True if that process has made this
    job's outputs meanwhile: nothing is left to do then.
    """
    with _reporting(snakemake):
        read_from = inputs(_checked(snakemake))
        identity = {"params": dict(snakemake.params.items()), "inputs": read_from}
        with (
            one_process(snakemake.params.scratch, identity, snakemake.output) as done,
            nullcontext() if done else _recorded(snakemake, read_from),
            nullcontext() if done else _own_gpu(snakemake),  # not earlier: waiting needs no GPU
        ):
            yield done


def _checked(snakemake: Any) -> dict[str, str | None]:
    """Digests of a job's inputs, compared with their records before anything is computed.

    What has no record (a user's own files, results of earlier versions) is read as it is.
    """
    return {path: check(path) for path in snakemake.input}


def _recorded(snakemake: Any, read_from: Inputs) -> AbstractContextManager[None]:
    """Record what the body makes; not in a storage, to which only declared outputs go."""
    if os.environ.get("MEMLOC_RECORDS") == "no":
        return nullcontext()
    made = made_with(snakemake.wildcards, snakemake.params)
    return recorded(snakemake.output, made, read_from)


@contextmanager
def _reporting(snakemake: Any) -> Iterator[logging.Logger]:
    """Log to the terminal and the rule's log.

    A MemlocError, which is written for users, ends the job with its message alone; any other error
    with its traceback.
    """
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if snakemake.log:
        Path(snakemake.log[0]).parent.mkdir(parents=True, exist_ok=True)
        handlers.append(LogFile(snakemake.log[0], mode="w", encoding="utf-8"))
    # Jobs that run side by side share a terminal, so every line names its job.
    named = " ".join([snakemake.rule, *snakemake.wildcards]).replace("%", "%%")
    style = FORMAT.format(job=named)
    logging.basicConfig(level=logging.INFO, format=style, datefmt="%H:%M:%S", handlers=handlers)
    gc.freeze()  # what was imported stays to the end, and isn't looked through again
    gc.enable()
    logger = logging.getLogger(f"memloc.{snakemake.rule}")
    memloc_version()  # kept for the records: the commit now, whatever is checked out later
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
        if said := forbidden(error):
            logger.error("error in rule %s: %s", snakemake.rule, said)
            sys.exit(1)
        logger.exception("rule %s failed", snakemake.rule)
        raise


def _own_gpu(snakemake: Any) -> AbstractContextManager[None]:
    """A GPU of its own for a job whose rule asks for one.

    Results don't depend on which GPU it is, so the choice comes from the configuration and not
    from params: a change re-runs nothing.
    """
    if not (snakemake.resources.get("gpu") or snakemake.resources.get("gres")):
        return nullcontext()
    devices = snakemake.config["devices"]
    return own_gpu(devices["gpus"], devices["jobs_per_gpu"])


def untracked(snakemake: Any, *keys: str) -> Any:
    """A value of the configuration that changes only speed and rounding, such as a batch size.

    What results depend on is in params, where a change re-runs the rule. A value read here can
    change without re-running anything.
    """
    value = snakemake.config
    for key in keys:
        value = value[key]
    return value
