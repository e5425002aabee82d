"""Processes that train at once on one device, against one alone; on a GPU also under MPS.

Each process takes steps of fine-tuning a model of BERT's shape. All begin at a sign and count
their steps for some seconds. Prints the steps a second of all together.

    PYTHONPATH=workflow python benchmarks/processes.py [--processes 4] [--precision bfloat16]
        [--tiny]

MPS is NVIDIA's service by which kernels of several processes run at the same time. It is started
for the measurement and stopped after it, with a folder of its own; where nvidia-cuda-mps-control
is missing, that part is left out, and a line says so.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from sizes import REAL, TINY

CONTROL = "nvidia-cuda-mps-control"
PLACES = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"


def work(size: SimpleNamespace, precision: str) -> None:
    """One process: say when ready, wait for the sign, print the steps that were taken."""
    import torch

    from memloc.machine.device import pick_device, set_precision
    from stacks import alone

    device = pick_device()
    stream, rows = alone(size, set_precision(precision, device), device), torch.arange(size.rows)
    for _ in range(3):
        stream.step(rows)
    print("ready", flush=True)
    sys.stdin.readline()
    ends, steps = time.perf_counter() + size.seconds, 0
    while time.perf_counter() < ends:
        stream.step(rows).item()  # waits for the GPU, as a job does now and then
        steps += 1
    print(steps, flush=True)


def steps_a_second(
    count: int, size: SimpleNamespace, precision: str, places: Mapping[str, str] | None = None
) -> float:
    """Of `count` processes together. Raises RuntimeError where one of them fails."""
    command = [sys.executable, str(Path(__file__).resolve()), "--worker"]
    command += ["--precision", precision, *(["--tiny"] if size is TINY else [])]
    started = [
        subprocess.Popen(
            command,
            env=os.environ | dict(places or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    try:
        if any(process.stdout.readline() != "ready\n" for process in started):
            raise RuntimeError("a process didn't get ready; see above")
        for process in started:
            process.stdin.write("go\n")
            process.stdin.flush()
        return sum(int(process.stdout.readline()) for process in started) / size.seconds
    finally:
        for process in started:
            process.kill()
            process.communicate()


@contextmanager
def mps() -> Iterator[dict[str, str]]:
    """Run MPS meanwhile; the environment that lets a process use it."""
    with tempfile.TemporaryDirectory() as folder:
        places = dict.fromkeys(PLACES, folder)
        environment = os.environ | places
        subprocess.run([CONTROL, "-d"], env=environment, check=True)
        try:
            yield places
        finally:
            subprocess.run([CONTROL], input="quit\n", text=True, env=environment, check=False)


def time_processes(size: SimpleNamespace, count: int, precision: str) -> None:
    """Print the steps a second of one process, of several, and of several under MPS."""
    single = steps_a_second(1, size, precision)
    print(f"  one process, {precision}: {single:.1f} steps a second")
    together = steps_a_second(count, size, precision)
    print(f"  {count} processes: {together:.1f} steps a second, {together / single:.2f} x one")
    if shutil.which(CONTROL) is None:
        print(f"  under MPS: left out, there is no {CONTROL} on this machine")
        return
    try:
        with mps() as places:
            together = steps_a_second(count, size, precision, places)
    except (RuntimeError, ValueError, OSError, subprocess.CalledProcessError) as error:
        print(f"  under MPS: left out, it failed: {error}")
        return
    print(f"  under MPS: {together:.1f} steps a second, {together / single:.2f} x one")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    size = TINY if options.tiny else REAL
    if options.worker:
        work(size, options.precision)
    else:
        time_processes(size, options.processes, options.precision)


if __name__ == "__main__":
    main()
