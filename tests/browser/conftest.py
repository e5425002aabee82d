"""The page that the tests look at, and the browser's tab in which they do."""

import pytest

import looked_at
from chromium import Page


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    """The page of a synthetic study."""
    return looked_at.page(tmp_path_factory.mktemp("study"))


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
