"""Shared by all tests: no network, few threads."""

import gc
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
gc.disable()  # until all tests are read: imports leave no garbage
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side
# Where threads that wait for each other spin, jobs with two of them take many times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("memloc", deadline=None)  # a busy machine is no fault of the code
settings.load_profile("memloc")


SLOWEST_FIRST = [
    *("chaos", "workflow", "slurm", "browser/test_accessible.py", "notebooks", "unit"),
    "browser",  # by then, the page that all look at has been made
]


def pytest_collection_modifyitems(items):
    """Folders of long tests first, so that no process is left alone with one at the end."""

    def place(item):
        path = item.path.relative_to(ROOT / "tests").as_posix()
        return next(i for i, first in enumerate(SLOWEST_FIRST) if path.startswith(first))

    items.sort(key=place)


def pytest_collection_finish():
    """What was imported stays to the end, and isn't looked through for garbage."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def searched_once():
    """What earlier tests imported stays, too: retraining looks for garbage after every group."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def one_thread():
    """Sums in one order: what is compared to the bit must not hang on how many cores there are."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
