"""Groups of windows fit the memory there is, by what each window takes."""

from hypothesis import given
from hypothesis import strategies as st

from memloc.groups import (
    BYTES_JOINED,
    BYTES_WIDENED,
    Group,
    WindowCost,
    group_of,
    group_windows,
    trained_bytes,
)
from memloc.windows import all_windows

MOMENTS = st.sampled_from(["float32", "bfloat16"])


@given(st.integers(1, 8), st.floats(1, 1e6), st.floats(1, 1e3), MOMENTS)
def test_groups_hold_each_window_once_and_fit(n_layers, budget, activation, moments):
    """Layers are computed again where a window needs it, and nowhere else."""
    cost = WindowCost(n_layers, 10, 3, activation, activation / 40, moments)
    groups = group_windows(all_windows(n_layers), cost, budget)
    assert sorted(window for group in groups for window in group.windows) == all_windows(n_layers)
    for group in groups:
        taken = [cost.of(window, group.recomputed) for window in group.windows]
        assert len(taken) == 1 or sum(taken) <= budget
        assert all((cost.of(w) > budget) == group.recomputed for w in group.windows)
        assert group_of(group.windows, cost, budget) == group


def test_what_a_window_takes_by_hand():
    """Layers of 10 parameters: windows 2-3 own 20, and their gradient crosses three layers."""
    cost = WindowCost(4, layer=10, tail=0, activation=1000, state=50)
    assert cost.of((2, 3)) == 16 * 20 + 4 * 10 + 3 * 1000
    assert cost.of((2, 3), recomputed=True) == 16 * 20 + 4 * 10 + 3 * 50 + 1000
    short = WindowCost(4, 10, 0, 1000, 50, "bfloat16", rounded=2)
    assert short.of((2, 3)) == (12 + 2) * 20 + 4 * 10 + 3 * 1000
    little = WindowCost(4, 10, 0, 1, 1, "bfloat16")  # widened moments take more than a pass keeps
    assert little.of((2, 3)) == 12 * 20 + 8 * 10
    assert (trained_bytes("float32"), BYTES_JOINED, BYTES_WIDENED) == (16, 4, 8)


def test_what_finds_too_little_memory_is_halved_and_then_computed_again():
    whole = Group([(1, 1), (1, 2), (1, 3)])
    assert whole.smaller() == [Group([(1, 1)]), Group([(1, 2), (1, 3)])]
    assert Group([(1, 3)]).smaller() == [Group([(1, 3)], recomputed=True)]
    assert Group([(1, 2), (1, 3)], True).smaller() == [Group([(1, 2)], True), Group([(1, 3)], True)]
    assert Group([(1, 3)], recomputed=True).smaller() == []
