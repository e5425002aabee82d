"""List scheduling against cases worked out by hand, and bounds that every plan must keep."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memloc.budget.schedule import (
    Item,
    list_schedule,
    longest_chain,
    order,
    peak_bytes,
    schedules,
    tails,
)
from memloc.errors import MemlocError


def gpu(seconds, *needs, **sizes):
    return Item(seconds, needs, gpus=1, **sizes)


def test_independent_jobs_share_the_devices():
    items = [gpu(3), gpu(3), gpu(2), gpu(2), gpu(2)]
    assert list_schedule(items, 1).makespan == 12
    # longest first: 3 | 3, then 2 | 2, then 2
    assert list_schedule(items, 2).makespan == 7
    assert list_schedule(items, 5).makespan == 3


def test_the_longest_chain_goes_first():
    # a short job that opens a long chain must not wait behind longer ones
    items = [gpu(2), gpu(2), gpu(1), gpu(4, 2)]
    found = list_schedule(items, 2)
    assert found.starts[2] == 0 and found.makespan == 5


def test_a_diamond():
    items = [gpu(1), gpu(2, 0), gpu(3, 0), gpu(1, 1, 2)]
    assert list_schedule(items, 1).makespan == 7
    assert list_schedule(items, 2).makespan == 5
    assert longest_chain(items) == [0, 2, 3]
    assert tails(items) == [5, 3, 4, 1]


def test_jobs_without_a_gpu_wait_for_their_inputs_only():
    items = [Item(5), Item(5), gpu(1, 0), gpu(1, 1)]
    assert list_schedule(items, 1).makespan == 7
    assert list_schedule(items, 2).makespan == 6


def test_a_job_of_several_gpus_takes_what_there_is():
    items = [Item(2, gpus=2), gpu(2), gpu(2)]
    assert list_schedule(items, 2).makespan == 4
    assert list_schedule(items, 1).makespan == 6


def test_nothing_to_do():
    assert list_schedule([], 3).makespan == 0 and longest_chain([]) == []
    assert peak_bytes([], list_schedule([], 1)) == 0


def test_jobs_that_wait_for_each_other_are_refused():
    with pytest.raises(MemlocError, match="wait for each other"):
        order([gpu(1, 1), gpu(1, 0)])
    with pytest.raises(MemlocError, match="at least one GPU"):
        list_schedule([gpu(1)], 0)


def test_peak_disk_by_hand():
    # a checkpoint of 10 with 4 of scratch; two readers; it passes when both are done
    items = [
        gpu(1, passing=10, scratch=4),
        gpu(1, 0, kept=1),
        gpu(1, 0, kept=1),
        gpu(1, 1, 2, kept=5),
    ]
    assert peak_bytes(items, list_schedule(items, 1)) == 14
    kept = [gpu(1, kept=10, scratch=4), *items[1:]]
    assert peak_bytes(kept, list_schedule(kept, 1)) == 17


def test_temporary_files_lower_the_peak():
    chains = [item for i in range(6) for item in (gpu(2, passing=9), gpu(1, 2 * i, kept=1))]
    kept = [item for i in range(6) for item in (gpu(2, kept=9), gpu(1, 2 * i, kept=1))]
    peaks = {n: peak_bytes(chains, list_schedule(chains, n)) for n in (1, 6)}
    assert peaks[1] < peaks[6] <= 60 == peak_bytes(kept, list_schedule(kept, 1))


@st.composite
def plans(draw, with_host=False):
    """Up to 12 jobs whose needs point backwards."""
    items = []
    for i in range(draw(st.integers(1, 12))):
        needs = draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set()
        gpus = draw(st.integers(0, 1)) if with_host else 1
        sizes = {key: draw(st.integers(0, 9)) for key in ("kept", "passing", "scratch")}
        items.append(Item(draw(st.integers(0, 20)), tuple(needs), gpus, **sizes))
    return items


@settings(max_examples=200, deadline=None)
@given(plans(with_host=True), st.integers(1, 5))
def test_schedules_keep_the_bounds(items, gpus):
    found = list_schedule(items, gpus)
    total = sum(item.seconds for item in items if item.gpus)
    chain = sum(items[i].seconds for i in longest_chain(items))
    assert chain == max(tails(items))
    assert found.makespan >= max(total / gpus, chain)
    assert found.makespan <= total / gpus + chain  # Graham's bound, host jobs on the chain
    for i, item in enumerate(items):
        assert all(found.starts[i] >= found.ends[j] for j in item.needs)
    for moment in found.starts:
        at_work = [
            i for i, item in enumerate(items)
            if item.gpus and found.starts[i] <= moment < found.ends[i]
        ]  # fmt: skip
        assert len(at_work) <= gpus


@settings(max_examples=100, deadline=None)
@given(plans())
def test_one_gpu_takes_the_total(items):
    assert list_schedule(items, 1).makespan == sum(item.seconds for item in items)


@settings(max_examples=100, deadline=None)
@given(plans(with_host=True))
def test_more_gpus_never_take_longer(items):
    spans = [found.makespan for found in schedules(items, range(1, 7)).values()]
    assert spans == sorted(spans, reverse=True)


@settings(max_examples=100, deadline=None)
@given(plans(with_host=True), st.integers(1, 4))
def test_peak_disk_lies_between_what_stays_and_all(items, gpus):
    found = list_schedule(items, gpus)
    peak = peak_bytes(items, found)
    assert sum(i.kept for i in items) <= peak
    assert peak <= sum(i.kept + i.passing + i.scratch for i in items)
