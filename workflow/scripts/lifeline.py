"""A job ends with the Snakemake process that runs it.

A driver that is killed outright (SIGKILL, out of memory) can't stop its jobs. One that went on
would hold cores and a GPU unseen, and could put results of old settings over new ones. The job of a
cluster's queue is run by a Snakemake process of its own, and outlives the driver that sent it.
MEMLOC_ORPHANS=run in the environment lets jobs go on.
"""

import logging
import os
import threading
import time
from collections.abc import Mapping

from memloc.machine.processes import is_alive

DRIVER = "MEMLOC_DRIVER"  # process id of the Snakemake that runs this job
ORPHANS = "MEMLOC_ORPHANS"
POLL_SECONDS = 1.0

logger = logging.getLogger(__name__)


def hold(poll: float = POLL_SECONDS) -> None:
    """End this process, at once and from whatever it is doing, soon after its driver is gone.

    Safe at any moment: results are written beside their place and renamed.
    """
    if os.environ.get(ORPHANS) == "run":
        return
    thread = threading.Thread(target=_watch, args=(os.getppid(), driver(), poll), daemon=True)
    thread.start()


def driver(environ: Mapping[str, str] = os.environ) -> int | None:
    """The driver's process id; None where it isn't known, or was never seen in this container."""
    pid = int(environ.get(DRIVER, 0))
    return pid if pid and is_alive(pid) else None


def orphaned(parent: int, pid: int | None) -> bool:
    """Whether the process that started this one (`parent`), or its driver, has gone."""
    return os.getppid() != parent or (pid is not None and not is_alive(pid))


def _watch(parent: int, pid: int | None, poll: float) -> None:
    while not orphaned(parent, pid):
        time.sleep(poll)
    logger.error("the Snakemake process that ran this job is gone: stopping; run it again")
    os._exit(1)
