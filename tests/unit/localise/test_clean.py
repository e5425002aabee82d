"""Clean examples are drawn beside the noisy ones, by seed and purpose."""

import pytest
import torch

from memloc.data.tokens import Examples
from memloc.localise.clean import draw_clean


def examples(noisy):
    rows = len(noisy)
    nothing = torch.zeros(rows, dtype=torch.long)
    return Examples([[1]] * rows, nothing, torch.tensor(noisy), torch.arange(rows))


@pytest.mark.parametrize("every", [2, 5])
def test_as_many_clean_ones_as_noisy_ones_are_drawn(every):
    data = examples([row % every == 0 for row in range(40)])
    noisy, drawn, others = draw_clean(data, 1, "a", "purpose")
    assert len(drawn) == len(noisy) == 40 // every
    assert torch.cat([noisy, drawn, others]).sort().values.tolist() == list(range(40))
    assert not data.noisy[drawn].any() and not data.noisy[others].any()
    for rows in (noisy, drawn, others):
        assert torch.equal(rows, rows.sort().values)


def test_seed_and_purpose_decide_which():
    data = examples([row % 5 == 0 for row in range(100)])
    draws = [draw_clean(data, *given)[1] for given in ((1, "a"), (1, "a"), (2, "a"), (1, "b"))]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2]) and not torch.equal(draws[0], draws[3])


def test_fewer_clean_ones_than_noisy_ones_are_all_drawn():
    noisy, drawn, others = draw_clean(examples([True, True, True, False]), 1, "a")
    assert (noisy.tolist(), drawn.tolist(), others.tolist()) == ([0, 1, 2], [3], [])
