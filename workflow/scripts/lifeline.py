"""A job ends with the Snakemake process that runs it.

A driver (the user's Snakemake) that is killed outright (SIGKILL, out of memory) can't stop its
jobs. A job that went on would hold cores and a GPU unseen, and could put results of old settings
over new ones. A cluster job is run by a Snakemake process on its own node, so it outlives the
driver that submitted it. MEMLOC_ORPHANS=run in the environment lets all jobs go on.
"""

import logging
import os
import threading
import time
from collections.abc import Mapping

import psutil

DRIVER = "MEMLOC_DRIVER"  # process id of the Snakemake that runs this job
ORPHANS = "MEMLOC_ORPHANS"
POLL_SECONDS = 1.0

logger = logging.getLogger(__name__)


def hold(poll: float = POLL_SECONDS) -> None:
    """From now on, end this process soon after its driver is gone, whatever it is doing then.

    That is safe at any moment, because results are written beside their place and then renamed.
    """
    if os.environ.get(ORPHANS) == "run":
        return
    thread = threading.Thread(target=_watch, args=(os.getppid(), driver(), poll), daemon=True)
    thread.start()


def driver(environ: Mapping[str, str] = os.environ) -> psutil.Process | None:
    """The driver; None where its number isn't known, or belongs to no process seen from here.

    (A job in a container doesn't see the processes outside.)
    """
    pid = int(environ.get(DRIVER, 0))
    try:
        return psutil.Process(pid) if pid else None
    except psutil.NoSuchProcess:
        return None


def orphaned(parent: int, driver: psutil.Process | None) -> bool:
    """Whether the process that started this one (number `parent`) is gone, or the driver is."""
    return os.getppid() != parent or (driver is not None and not driver.is_running())


def _watch(parent: int, driver: psutil.Process | None, poll: float) -> None:
    while not orphaned(parent, driver):
        time.sleep(poll)
    logger.error("the Snakemake process that ran this job is gone: stopping; run it again")
    os._exit(1)
