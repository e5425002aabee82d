"""Passes written by hand equal what autograd makes of the obvious formulas."""

import pytest
import torch
from torch.nn import functional as F

from memloc.localise.retrain.passes import Attention, Scaled, StackedLinear

COPIES, ROWS, HEADS, TOKENS = 2, 3, 2, 4


def numbers(*shape, seed=0, grad=True):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return drawn.requires_grad_(grad)


def heads_of(width, tokens=TOKENS, seed=0):
    """(copies * rows, heads, tokens, width), a view of tokens before heads as layers make them."""
    return numbers(COPIES * ROWS, tokens, HEADS, width, seed=seed).transpose(1, 2)


def seen_of(kind, keys):
    shape = (COPIES * ROWS, 1, TOKENS, keys)
    if kind == "bool":
        return torch.arange(keys).expand(shape) < torch.arange(TOKENS)[:, None] + 1
    return numbers(*shape, seed=7) if kind == "added" else None


@pytest.mark.parametrize("kind", ["bool", "added", None])
@pytest.mark.parametrize(("keys", "width"), [(TOKENS, 5), (6, 3)])
def test_attention_drops_by_the_mask_it_is_given(kind, keys, width):
    query, key = heads_of(5, seed=1), heads_of(5, keys, seed=2)
    value, seen = heads_of(width, keys, seed=3), seen_of(kind, keys)
    kept = (numbers(ROWS, HEADS, TOKENS, keys, seed=4, grad=False) > -0.5).double() / 0.7

    def plain(query, key, value, seen):
        scores = 0.3 * query @ key.transpose(-1, -2)
        if kind == "bool":
            scores = scores.masked_fill(~seen, -torch.inf)
        elif kind:
            scores = scores + seen
        return (scores.softmax(-1) * kept.repeat(COPIES, 1, 1, 1)) @ value

    wanted = [t for t in (query, key, value, seen) if t is not None and t.requires_grad]
    ours = Attention.apply(query, key, value, seen, kept, 0.3)[0]
    theirs = plain(query, key, value, seen)
    torch.testing.assert_close(ours, theirs)
    error = numbers(*ours.shape, seed=5, grad=False)
    found, truth = (torch.autograd.grad(out, wanted, error) for out in (ours, theirs))
    for one, two in zip(found, truth, strict=True):
        torch.testing.assert_close(one, two)


def test_attention_with_nothing_dropped_is_torchs_own():
    query, key, value = (heads_of(5, seed=seed) for seed in (1, 2, 3))
    seen, kept = seen_of("bool", TOKENS), torch.ones(ROWS, HEADS, TOKENS, TOKENS).double()
    ours = Attention.apply(query, key, value, seen, kept, 5**-0.5)[0]
    torch.testing.assert_close(ours, F.scaled_dot_product_attention(query, key, value, seen))


def test_a_stack_of_linear_layers_is_each_of_them():
    x, weight, bias = numbers(2, 3, 4), numbers(2, 5, 4, seed=1), numbers(2, 5, seed=2)
    for one in (weight, weight.transpose(1, 2).contiguous().transpose(1, 2)):
        together = StackedLinear.apply(x, one, bias)
        each = torch.stack([F.linear(*parts) for parts in zip(x, one, bias, strict=True)])
        torch.testing.assert_close(together, each)
        error = numbers(*each.shape, seed=3, grad=False)
        for ours, theirs in zip(
            torch.autograd.grad(together, (x, weight, bias), error),
            torch.autograd.grad(each, (x, weight, bias), error),
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs)


def test_scales_and_offsets_of_each_copy():
    assert torch.autograd.gradcheck(
        Scaled.apply, (numbers(2, 3, 4), numbers(2, 4, seed=1), numbers(2, 4, seed=2))
    )
    x, scale, offset = numbers(2, 3, 4), numbers(2, 4, seed=1), numbers(2, 4, seed=2)
    torch.testing.assert_close(Scaled.apply(x, scale, offset), x * scale[:, None] + offset[:, None])
