"""What every benchmark shares: the machine in words, medians, ratios."""

import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch


def machine(device: torch.device | str = "cpu") -> str:
    """Processor or card, threads and torch version, in one line."""
    if torch.device(device).type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        processor = next(named, processor)
    return (
        f"{processor}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, "
        f"load {os.getloadavg()[0]:.1f}, torch {torch.__version__}"
    )


def seconds(work: Callable[[], object]) -> float:
    """Seconds that `work` takes, all of a GPU's work included."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started


def compare(ways: dict[str, Callable[[], object]], repeats: int = 3) -> dict[str, float]:
    """Median seconds of each way; ways take turns, so that a busy machine slows all alike."""
    for work in ways.values():
        work()  # first calls allocate and choose kernels
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, work in ways.items():
            times[name].append(seconds(work))
    return {name: statistics.median(values) for name, values in times.items()}


def report(title: str, medians: dict[str, float], ours: str, scale: dict[str, float] | None = None):
    """Print seconds of each way and how many times longer than `ours` the others take.

    `scale` multiplies the time of a way that did only a part of the work.
    """
    whole = {name: value * (scale or {}).get(name, 1) for name, value in medians.items()}
    print(f"{title}")
    for name, value in whole.items():
        ratio = "" if name == ours else f"   {value / whole[ours]:.1f} x ours"
        print(f"  {name:<32} {value:9.4g} s{ratio}")
    return {name: value / whole[ours] for name, value in whole.items() if name != ours}
