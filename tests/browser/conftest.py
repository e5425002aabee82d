"""The page that the tests look at, and the browser's tab in which they do."""

import fcntl

import pytest

import looked_at
from chromium import Page


@pytest.fixture(scope="session")
def path(tmp_path_factory, worker_id):
    """The page of a synthetic study, which the first process of the tests makes for all."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder if worker_id == "master" else folder.parent
    with open(shared / "browser.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = shared / "browser" / "report.html"
        return made if made.exists() else looked_at.page(made.parent)


@pytest.fixture(scope="session")
def tab(tmp_path_factory):
    """A browser's only tab."""
    page = Page(tmp_path_factory.mktemp("browser"))
    yield page
    page.close()


@pytest.fixture(autouse=True)
def quiet(tab):
    """Nothing is said to the console, and nothing is asked of the network."""
    tab.errors.clear()
    yield
    assert tab.errors == []
