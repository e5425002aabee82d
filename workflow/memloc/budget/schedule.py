"""List scheduling of a plan: how long it takes on so many GPUs, and what fills the disk meanwhile.

Jobs are known by their position in a list; `needs` are positions too. GPU jobs share the
devices, other jobs start as soon as their inputs are there (a cluster has cores to spare, and
they take a small part of the time).
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memloc.errors import MemlocError


@dataclass(frozen=True)
class Item:
    """A job to schedule: seconds it takes, positions of the jobs it waits for, GPUs it holds.

    kept: bytes it leaves for good; passing: bytes that go once all who need it are done;
    scratch: bytes it holds while it runs.
    """

    seconds: float
    needs: tuple[int, ...] = ()
    gpus: int = 0
    kept: float = 0.0
    passing: float = 0.0
    scratch: float = 0.0


@dataclass(frozen=True)
class Schedule:
    """Start and end of every item in seconds, and when the last one ends."""

    starts: tuple[float, ...]
    ends: tuple[float, ...]
    makespan: float


def order(items: Sequence[Item]) -> list[int]:
    """Positions such that every job comes after what it needs; MemlocError for a cycle."""
    waiting = [len(set(item.needs)) for item in items]
    dependents = _dependents(items)
    ready = [i for i, count in enumerate(waiting) if not count]
    for i in ready:  # grows while it is walked
        for j in dependents[i]:
            waiting[j] -= 1
            if not waiting[j]:
                ready.append(j)
    if len(ready) < len(items):
        raise MemlocError("the plan has jobs that wait for each other")
    return ready


def tails(items: Sequence[Item]) -> list[float]:
    """Seconds from the start of each job to the end of the longest chain that begins with it."""
    longest = [item.seconds for item in items]
    for i in reversed(order(items)):
        for needed in items[i].needs:
            longest[needed] = max(longest[needed], items[needed].seconds + longest[i])
    return longest


def longest_chain(items: Sequence[Item]) -> list[int]:
    """Positions of the jobs of the longest chain, first to last; no number of GPUs beats it."""
    if not items:
        return []
    remaining, dependents = tails(items), _dependents(items)
    roots = [i for i, item in enumerate(items) if not item.needs]
    chain = [max(roots, key=remaining.__getitem__)]
    while dependents[chain[-1]]:
        chain.append(max(dependents[chain[-1]], key=remaining.__getitem__))
    return chain


def list_schedule(items: Sequence[Item], gpus: int) -> Schedule:
    """Give every free GPU the ready job with the longest chain behind it, until all is done."""
    if gpus < 1:
        raise MemlocError(f"budget.gpus: {gpus}: at least one GPU is needed")
    remaining, dependents = tails(items), _dependents(items)
    waiting = [len(set(item.needs)) for item in items]
    starts, ends = [0.0] * len(items), [0.0] * len(items)
    queue: list[tuple[float, int]] = []
    running: list[tuple[float, int]] = []
    free, now = gpus, 0.0

    def start(i: int) -> None:
        starts[i], ends[i] = now, now + items[i].seconds
        heapq.heappush(running, (ends[i], i))

    def ready(i: int) -> None:
        if items[i].gpus:
            heapq.heappush(queue, (-remaining[i], i))
        else:
            start(i)

    for i, count in enumerate(waiting):
        if not count:
            ready(i)
    while queue or running:
        while queue and min(items[queue[0][1]].gpus, gpus) <= free:
            _, i = heapq.heappop(queue)
            free -= min(items[i].gpus, gpus)
            start(i)
        now, i = heapq.heappop(running)
        free += min(items[i].gpus, gpus)
        for j in dependents[i]:
            waiting[j] -= 1
            if not waiting[j]:
                ready(j)
    return Schedule(tuple(starts), tuple(ends), max(ends, default=0.0))


def schedules(items: Sequence[Item], counts: Iterable[int]) -> dict[int, Schedule]:
    """The best schedule found for each number of GPUs.

    A list schedule may take longer with more GPUs (they then had better stand idle), so a
    number never gets a worse one than a smaller number of `counts`.
    """
    best: dict[int, Schedule] = {}
    last = None
    for count in sorted(set(counts)):
        found = list_schedule(items, count)
        last = found if last is None or found.makespan <= last.makespan else last
        best[count] = last
    return best


def peak_bytes(items: Sequence[Item], schedule: Schedule) -> float:
    """Most bytes on disk at once, on top of what was there before."""
    changes: list[tuple[float, int, float]] = []
    dependents = _dependents(items)
    for i, item in enumerate(items):
        start, end = schedule.starts[i], schedule.ends[i]
        gone = max((schedule.ends[j] for j in dependents[i]), default=end)
        # at one moment, what is freed goes before what is written
        changes.append((start, 1, item.kept + item.passing + item.scratch))
        changes.append((end, 0 if end > start else 2, -item.scratch))
        changes.append((gone, 0 if gone > start else 2, -item.passing))
    peak = held = 0.0
    for _, _, change in sorted(changes):
        held += change
        peak = max(peak, held)
    return peak


def _dependents(items: Sequence[Item]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in items]
    for i, item in enumerate(items):
        for needed in set(item.needs):
            found[needed].append(i)
    return found
