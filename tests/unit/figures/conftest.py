"""Figures are drawn as in a job."""

import pytest

from memloc.figures.style import for_files


@pytest.fixture(scope="module", autouse=True)
def as_in_a_job():
    for_files()
