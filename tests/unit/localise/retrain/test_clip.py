"""Every window is clipped as if it were alone, by as many kernels for many windows as for few."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from memloc.localise.retrain import clip as module
from memloc.localise.retrain.clip import Clip
from memloc.windows import all_windows

LAYERS = 4


def sheets_of(windows, seed=0, width=5, tail=True):
    """A sheet per layer that a window holds, and one for all windows; gradients of many sizes."""
    generator = torch.Generator().manual_seed(seed)
    held = [[w for w in windows if w[0] <= number <= w[1]] for number in range(1, LAYERS + 1)]
    owners = [members for members in [*held, windows if tail else []] if members]
    sheets = []
    for members in owners:
        rows = torch.zeros(len(members), width, requires_grad=True)
        sizes = torch.randint(-6, 3, (len(members), 1), generator=generator)
        rows.grad = torch.randn(rows.shape, generator=generator) * 4.0**sizes
        sheets.append((rows, members))
    return sheets


def clipped_alone(sheets, limit):
    """Each window by torch's own function, on parameters of its own."""
    found = [rows.grad.clone() for rows, _ in sheets]
    for window in {window for _, members in sheets for window in members}:
        rows = [
            grad[members.index(window)]
            for grad, (_, members) in zip(found, sheets, strict=True)
            if window in members
        ]
        own = [nn.Parameter(torch.zeros_like(row)) for row in rows]
        for parameter, row in zip(own, rows, strict=True):
            parameter.grad = row.clone()
        nn.utils.clip_grad_norm_(own, limit)
        for parameter, row in zip(own, rows, strict=True):
            row.copy_(parameter.grad)
    return found


@pytest.mark.parametrize("looks", [True, False], ids=["on a CPU", "on a GPU"])
def test_each_window_is_clipped_as_if_alone(monkeypatch, looks):
    monkeypatch.setattr(module, "looks", lambda gradient: looks)

    @given(
        st.lists(st.sampled_from(all_windows(LAYERS)), min_size=1, unique=True),
        st.integers(0, 100),
        st.sampled_from([1e-3, 1.0, 1e3]),
        st.booleans(),
    )
    def check(windows, seed, limit, tail):
        sheets = sheets_of(sorted(windows), seed, tail=tail)
        expected = clipped_alone(sheets, limit)
        Clip(sheets, limit)()
        for (rows, _), theirs in zip(sheets, expected, strict=True):
            torch.testing.assert_close(rows.grad, theirs, rtol=1e-5, atol=1e-7)

    check()


@pytest.mark.parametrize("wrong", [torch.inf, torch.nan])
def test_a_window_that_diverges_spoils_no_other(wrong):
    sheets = sheets_of(all_windows(LAYERS))
    sheets[0][0].grad[0, 0] = wrong
    lost = sheets[0][1][0]
    Clip(sheets, 1.0)()
    for rows, members in sheets:
        for row, window in zip(rows.grad, members, strict=True):
            assert window == lost or row.isfinite().all()


def test_a_sheet_that_no_gradient_has_reached_counts_as_nothing():
    sheets = sheets_of(all_windows(LAYERS))
    expected = clipped_alone(sheets[:-1], 1.0)
    sheets[-1][0].grad = None
    Clip(sheets, 1.0)()
    for (rows, _), theirs in zip(sheets, expected, strict=False):
        torch.testing.assert_close(rows.grad, theirs)


class Operations(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen[func] += 1
        return func(*args, **(kwargs or {}))


def test_operations_grow_with_layers_and_not_with_windows(monkeypatch):
    monkeypatch.setattr(module, "looks", lambda gradient: False)
    seen = []
    for windows in ([(1, LAYERS)], all_windows(LAYERS)):
        clip = Clip(sheets_of(windows), 1.0)
        with Operations() as operations:
            clip()
        seen.append(operations.seen)
    assert seen[0] == seen[1]
