"""GPU slots: each job gets one of its own, and loses it with its life."""

import os
import signal
import subprocess
import sys

import pytest

from memloc.errors import MemlocError
from memloc.machine import gpus as slots
from memloc.machine.gpus import assignable, chosen_gpus, cpu_refusal, lock_folder, own_gpu, slot
from shipped import ROOT

# Takes a slot, says which, and holds it until it is told to go on.
HOLDER = """
import sys
from memloc.machine.gpus import slot
with slot(sys.argv[2].split(","), int(sys.argv[3]), sys.argv[1]) as (gpu, number):
    print(gpu, number, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def hold(tmp_path):
    """Starts processes that contend for the slots of one folder."""
    running = []

    def start(gpus, per_gpu):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path / "locks"), gpus, str(per_gpu)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "workflow")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_contending_processes_get_slots_of_their_own(hold):
    first = [hold("0,1", 2) for _ in range(4)]
    got = [process.stdout.readline().split() for process in first]
    assert sorted(got) == [["0", "0"], ["0", "1"], ["1", "0"], ["1", "1"]]
    late = [hold("0,1", 2) for _ in range(2)]
    first[2].stdin.write("\n")
    first[2].stdin.flush()
    first[2].wait(timeout=300)
    os.kill(first[0].pid, signal.SIGKILL)
    freed = [got[0], got[2]]
    assert sorted(process.stdout.readline().split() for process in late) == sorted(freed)


def test_empty_gpus_are_filled_first(tmp_path):
    with slot(["0", "1"], 2, tmp_path) as one, slot(["0", "1"], 2, tmp_path) as other:
        assert {one, other} == {("0", 0), ("1", 0)}


def test_patience_ends_in_a_readable_error(tmp_path):
    with (
        slot(["0"], 1, tmp_path),
        pytest.raises(MemlocError, match=r"devices\.jobs_per_gpu"),
        slot(["0"], 1, tmp_path, patience=0),
    ):
        pass
    with slot(["0"], 1, tmp_path, patience=0) as free:  # an error frees nothing it doesn't hold
        assert free == ("0", 0)


def test_an_error_inside_frees_the_slot(tmp_path):
    with pytest.raises(ValueError), slot(["0"], 1, tmp_path):
        raise ValueError
    with slot(["0"], 1, tmp_path, patience=0) as free:
        assert free == ("0", 0)


@pytest.mark.parametrize(
    ("gpus", "environ", "shared"),
    [
        ("auto", {}, ["0", "1", "2"]),  # what the machine has
        ([1, 2], {}, ["1", "2"]),
        (["MIG-x"], {}, ["MIG-x"]),
        ("auto", {"CUDA_VISIBLE_DEVICES": "3"}, []),  # given by a scheduler: not touched
        ([0, 1], {"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_ID": "7"}, []),
        ("auto", {"SLURM_JOB_ID": "7"}, []),  # confined by other means
        ("auto", {"CUDA_VISIBLE_DEVICES": ""}, []),
        ("auto", {"CUDA_VISIBLE_DEVICES": "-1"}, []),
        ("auto", {"CUDA_VISIBLE_DEVICES": "4, 5"}, ["4", "5"]),  # several: shared out
    ],
)
def test_what_is_shared_out(monkeypatch, gpus, environ, shared):
    monkeypatch.setattr(slots, "_installed", lambda: ["0", "1", "2"])
    assert assignable(gpus, environ) == shared


def test_no_gpu_is_seen_where_none_is_visible(monkeypatch):
    monkeypatch.setattr(slots, "_installed", lambda: ["0"])
    assert chosen_gpus("auto", {"CUDA_VISIBLE_DEVICES": "NoDevFiles"}) == []
    assert chosen_gpus("auto", {}) == ["0"]
    assert chosen_gpus([0, 1], {"CUDA_VISIBLE_DEVICES": ""}) == ["0", "1"]  # as one says


def test_the_driver_is_asked_without_torch(tmp_path, monkeypatch):
    fake = tmp_path / "nvidia-smi"
    fake.write_text("#!/bin/sh\n[ $1 = --query-gpu=name ] && echo NVIDIA A100 || seq 0 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    slots.local_gpu.cache_clear()
    assert slots._installed() == ["0", "1"] and slots.local_gpu() == "NVIDIA A100"
    slots.local_gpu.cache_clear()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert slots.local_gpu() is None
    slots.local_gpu.cache_clear()
    fake.write_text("#!/bin/sh\nexit 9\n")  # a driver that doesn't run
    monkeypatch.setattr(slots, "DRIVER", tmp_path / "gpus")
    assert slots._installed() == []
    (tmp_path / "gpus" / "0000:01:00.0").mkdir(parents=True)
    assert slots._installed() == ["0"]


def test_a_job_sees_its_own_device(tmp_path, monkeypatch):
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "x")  # so that what the job sets is undone
        monkeypatch.delenv(name)
    monkeypatch.setenv(slots.SHARING, "1")
    monkeypatch.setenv("MEMLOC_LOCKS", str(tmp_path))
    with own_gpu([2, 3], 2):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "2"
        assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        assert slots.jobs_per_gpu() == 2


def test_a_given_device_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    monkeypatch.setenv("MEMLOC_LOCKS", str(tmp_path / "none"))
    with own_gpu("auto", 1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"
    assert not (tmp_path / "none").exists()


def test_slots_are_the_machines_and_a_slurm_jobs_are_its_own():
    assert lock_folder({}) != lock_folder({"SLURM_JOB_ID": "7"})


def test_hours_on_a_processor_have_a_limit():
    assert cpu_refusal(24, 24) is None
    said = cpu_refusal(5000.5, 24)
    for part in ("5,000.5 hours", "budget.cpu_limit_hours = 24", "allow_cpu: true", "no GPU"):
        assert part in said
