"""Fixtures that several packages' tests share."""

import pytest

from tiny_study import tiny_files

__all__ = ["determinism_restored", "tiny_files"]


@pytest.fixture(scope="module")
def determinism_restored():
    """A stage that picks its device asks torch for deterministic kernels from then on."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.use_deterministic_algorithms(before)
    torch.utils.deterministic.fill_uninitialized_memory = filled
