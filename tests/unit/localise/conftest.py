"""Fixtures of the localisation stages' tests."""

import pytest
import torch


@pytest.fixture(scope="module")
def determinism_restored():
    """A stage that picks its device asks torch for deterministic kernels from then on."""
    before = torch.are_deterministic_algorithms_enabled()
    yield
    torch.use_deterministic_algorithms(before)
