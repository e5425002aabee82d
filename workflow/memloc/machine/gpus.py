"""Which GPUs this machine has, and one of them for each job that runs here.

A slot is a lock file of the machine (flock, held by the job's process): the kernel frees it when
the process ends, however it ends. Planning imports this module: no torch.
"""

import fcntl
import logging
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from memloc.errors import MemlocError
from memloc.machine.private import private_file, private_folder, runtime_folder

logger = logging.getLogger(__name__)
VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
SHARING = "MEMLOC_JOBS_PER_GPU"  # how many jobs a GPU's memory is for
SLOTS = "MEMLOC_SLOTS_PER_GPU"  # where a run's driver has said how many "auto" comes to
AUTO = "auto"
NONE_VISIBLE = ("", "-1", "NoDevFiles")
POLL_SECONDS, TELL_SECONDS = 0.5, 60.0
DRIVER = Path("/proc/driver/nvidia/gpus")
Gpus = str | Sequence[int | str]  # AUTO, or the devices by number or id


def visible(environ: Mapping[str, str]) -> list[str] | None:
    """The devices that CUDA_VISIBLE_DEVICES names; None where it isn't set."""
    value = environ.get(VISIBLE)
    if value is None:
        return None
    named = [part.strip() for part in value.split(",")]
    return [] if named[0] in NONE_VISIBLE else named


def machine_gpus(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The GPUs that jobs on this machine can use, as CUDA_VISIBLE_DEVICES would name them."""
    named = visible(environ)
    return _installed() if named is None else named


def _installed() -> list[str]:
    """Numbers of the GPUs that the driver shows, in its own order (that of the bus)."""
    numbers = _nvidia_smi("index")
    if numbers is not None:
        return numbers
    found = list(DRIVER.iterdir()) if DRIVER.is_dir() else []
    return [str(number) for number in range(len(found))]


@cache
def local_gpu() -> str | None:
    """The name of this machine's first GPU; None where none is visible."""
    names = _nvidia_smi("name") if machine_gpus() else None
    return names[0] if names else None


def _nvidia_smi(field: str) -> list[str] | None:
    """A field of each GPU; None where nvidia-smi is missing or fails.

    Asked by hand, because psutil knows no GPUs and planning must not wait for torch.
    """
    query = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def chosen_gpus(gpus: Gpus, environ: Mapping[str, str] = os.environ) -> list[str]:
    """The GPUs that jobs share: those of the configuration, or what the machine has ("auto")."""
    return machine_gpus(environ) if gpus == AUTO else [str(gpu) for gpu in gpus]


def assignable(gpus: Gpus, environ: Mapping[str, str] = os.environ) -> list[str]:
    """The GPUs of which a job may take one; empty where it has been given its own already.

    A scheduler (Slurm) gives a job its device through CUDA_VISIBLE_DEVICES, or confines it by
    other means: neither is touched. A variable that names several devices is shared out.
    """
    named = visible(environ)
    if named is not None and len(named) <= 1:
        return []
    if named is None and "SLURM_JOB_ID" in environ and gpus == AUTO:
        return []
    return chosen_gpus(gpus, environ)


def lock_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where this user's slots of this machine lie, whatever the study's folder.

    MEMLOC_LOCKS, else in XDG_RUNTIME_DIR where that is this user's, else in the temporary folder.
    A Slurm job numbers its devices by itself, and has slots of its own.
    """
    if given := environ.get("MEMLOC_LOCKS"):
        return Path(given)
    job = environ.get("SLURM_JOB_ID")
    name = f"memloc-gpus-{os.getuid()}" + (f"-job{job}" if job else "")
    return (runtime_folder(environ) or Path(tempfile.gettempdir())) / name


@contextmanager
def slot(
    gpus: Sequence[str], per_gpu: int, folder: str | Path, patience: float | None = None
) -> Iterator[tuple[str, int]]:
    """Hold one of len(gpus) x per_gpu slots: yields the GPU and which of its slots it is.

    Empty GPUs are filled first. Waits while all are taken, `patience` seconds at most (None: as
    long as it takes); raises MemlocError when they are over, or where `folder` isn't this user's
    alone.
    """
    places = [(gpu, number) for number in range(per_gpu) for gpu in gpus]
    started = tell_at = time.monotonic()
    while True:
        for gpu, number in places:
            file = _try_lock(folder, f"{gpu.replace('/', '_')}.{number}.lock")
            if file is not None:
                try:
                    yield gpu, number
                finally:
                    os.close(file)  # frees the slot
                return
        now = time.monotonic()
        if patience is not None and now - started >= patience:
            raise MemlocError(
                f"all {len(places)} GPU slots are taken (locks in {folder}): run fewer GPU jobs at "
                "once with `resources: gpu=N`, or raise devices.jobs_per_gpu"
            )
        if now >= tell_at:
            tell_at = now + TELL_SECONDS
            logger.info("waiting for one of %d GPU slots (locks in %s)", len(places), folder)
        time.sleep(POLL_SECONDS)


def _try_lock(folder: str | Path, name: str) -> int | None:
    """Descriptor of the locked file; None where another process holds it."""
    with private_folder(folder) as opened:
        file = private_file(name, opened)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    os.ftruncate(file, 0)
    os.write(file, f"{os.getpid()}\n".encode())  # for people who look
    return file


@contextmanager
def own_gpu(gpus: Gpus, per_gpu: int | str) -> Iterator[None]:
    """Have this process see one GPU of its own; where it was given one, that is left as it is.

    per_gpu: how many jobs share each, AUTO: as many as the run's driver has said, else one. Must be
    entered before anything asks CUDA for its devices.
    """
    if isinstance(per_gpu, str):
        per_gpu = int(os.environ.get(SLOTS, 1))
    shared = assignable(gpus)
    if not shared:
        os.environ[SHARING] = str(per_gpu)  # of the GPU that a scheduler has given to several jobs
        yield
        return
    with slot(shared, per_gpu, lock_folder()) as (gpu, number):
        # Numbers mean what nvidia-smi shows, unless a variable that was set before named them.
        order = {} if VISIBLE in os.environ else {ORDER: "PCI_BUS_ID"}
        os.environ.update(order | {VISIBLE: gpu, SHARING: str(per_gpu)})
        logger.info("GPU %s, slot %d of %d", gpu, number + 1, per_gpu)
        yield


def jobs_per_gpu(environ: Mapping[str, str] = os.environ) -> int:
    """How many jobs share this process's GPU."""
    return int(environ.get(SHARING, 1))


def cpu_refusal(hours: float, limit: float) -> str | None:
    """Why a plan must not run on a machine without a GPU; None when it may."""
    if hours <= limit:
        return None
    return (
        f"this plan has {hours:,.1f} hours of GPU jobs as this machine's processor would take "
        f"them, and this machine has no GPU: more than budget.cpu_limit_hours = {limit:g}. Run it "
        "where there is a GPU (--profile slurm), ask for fewer targets, tasks, models or seeds, "
        "raise the limit, or set allow_cpu: true to run it here all the same."
    )
