"""Groups of windows fit the memory there is, by a cost that is measured."""

import torch
from hypothesis import given
from hypothesis import strategies as st

import memloc.localise.retrain.retraining as module
from memloc.localise.retrain.groups import WindowCost, group_windows
from memloc.windows import all_windows
from retraining_runs import RECIPE, retraining


@given(st.integers(1, 8), st.floats(1, 1e6))
def test_groups_hold_each_window_once_and_fit(n_layers, budget):
    cost = WindowCost(n_layers, layer=10, tail=3, activation=7.0)
    groups = group_windows(all_windows(n_layers), cost, budget)
    assert [window for group in groups for window in group] == all_windows(n_layers)
    for one in groups:
        assert len(one) == 1 or sum(cost.of(window) for window in one) <= budget


def test_cost_is_measured(tmp_path):
    job = retraining(tmp_path)
    cost = job._cost()
    assert cost.layer == sum(p.numel() for p in job.initial[0].parameters()) and cost.tail == 0
    longest = max(len(ids) for ids in job.clean.ids)
    state = RECIPE.batch_size * longest * 32 * 4
    assert 5 * state < cost.activation < 60 * state
    assert module.budget_bytes(torch.device("cpu"), 1e9) > 0
