"""In what precision a job computes: as it was asked to, whatever the process had before."""

import pytest
import torch

from memloc.errors import MemlocError
from memloc.machine.device import autocast, pick_device, set_precision

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def as_before():
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "auto"])
def test_full_products_unless_others_are_asked_for(precision):
    torch.set_float32_matmul_precision("medium")
    assert set_precision(precision, CPU) in ("float32", "bfloat16")
    assert torch.get_float32_matmul_precision() == "highest"


def test_tf32_is_refused_where_there_is_none():
    with pytest.raises(MemlocError, match=r"tf32 needs an NVIDIA GPU.*runs on CPU"):
        set_precision("tf32", CPU)


@pytest.mark.parametrize(("capability", "hip", "has_it"), [
    ((8, 0), None, True), ((9, 0), None, True), ((7, 5), None, False), ((9, 4), "6.4", False),
])  # fmt: skip
def test_tf32_by_the_cards_capability(monkeypatch, capability, hip, has_it):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a card")
    monkeypatch.setattr(torch.version, "hip", hip)
    card = torch.device("cuda", 0)
    if has_it:
        assert set_precision("tf32", card) == "tf32"
        assert torch.get_float32_matmul_precision() == "high"
    else:
        with pytest.raises(MemlocError, match="a card"):
            set_precision("tf32", card)


def test_numbers_stay_float32_in_tf32():
    with autocast("tf32", CPU):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    with autocast("bfloat16", CPU):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


@pytest.mark.usefixtures("determinism_restored")
def test_kernels_are_deterministic_and_new_tensors_cost_none():
    pick_device()
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.utils.deterministic.fill_uninitialized_memory
