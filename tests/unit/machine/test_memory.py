"""Memory that is free: of the machine, of a container, of what a job was granted."""

import psutil
import pytest
import torch

from memloc.machine import memory
from memloc.machine.memory import free_on_cpu, is_out_of_memory


@pytest.fixture
def cgroup(tmp_path, monkeypatch):
    """Has this process be in a cgroup with such a limit and use, as the kernel writes them."""

    def confine(limit, used):
        lines = {"/proc/self/cgroup": ["0::/job"], "/sys/fs/cgroup/job/memory.max": [limit]}
        lines["/sys/fs/cgroup/job/memory.current"] = [used]
        monkeypatch.setattr(memory, "_lines", lambda path: lines[str(path)])

    return confine


def test_the_machine_s_memory_is_a_bound(cgroup):
    cgroup("max", "7")
    assert 0 < free_on_cpu(None) <= psutil.virtual_memory().total


def test_a_container_s_memory_is_one_too(cgroup):
    cgroup("5000", "2000")
    assert free_on_cpu(None) == 3000


def test_what_the_process_uses_counts_towards_its_limit(cgroup):
    cgroup("max", "7")
    resident = psutil.Process().memory_info().rss
    free = free_on_cpu(resident / 1e6 + 10)
    assert free == pytest.approx(10e6, abs=20e6)
    assert free_on_cpu(1) < 0


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: tried"), True),
        (RuntimeError("shapes cannot be multiplied"), False),
    ],
)
def test_which_errors_mean_that_memory_ran_out(error, full):
    assert is_out_of_memory(error) is full
