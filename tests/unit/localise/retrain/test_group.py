"""Windows retrained side by side equal an ordinary loop over one window, dropout on."""

import pytest
import torch

from adapted import TINY
from memloc.localise.retrain import variants
from memloc.localise.retrain.folding import Frozen
from memloc.localise.retrain.variants import WindowVariants
from memloc.windows import all_windows
from retraining_runs import changed, close, group, logits_of, plain_window
from tiny import FAMILIES, N_LAYERS

ADAPTED = [f"adapted {family}" for family in TINY]


@pytest.mark.parametrize("family", [*FAMILIES, *ADAPTED])
def test_side_by_side_equals_one_plain_window_at_a_time(family):
    windows = all_windows(N_LAYERS)
    run, losses = group(family, windows)
    for column, (window, logits) in enumerate(zip(windows, logits_of(run), strict=True)):
        plain_losses, plain_logits = plain_window(family, window)
        close(losses[:, column], plain_losses)
        close(logits, plain_logits)
    assert run.shared.way == "folded"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_prefix_may_go_along_as_it_does_on_a_gpu(family, monkeypatch):
    windows = [(1, 1), (2, 2), (3, 4), (4, 4)]
    alone, losses = group(family, windows)
    monkeypatch.setattr(variants, "travels_alone", lambda prefix: False)
    along, same = group(family, windows)
    close(same, losses)
    close(logits_of(along), logits_of(alone))


@pytest.mark.parametrize("family", ["bert", "opt", "mpnet", "adapted llama"])
def test_with_a_head_of_its_own_too(family):
    recipe = changed(train_head=True)
    windows = [(1, 4), (2, 2), (3, 4)]
    run, losses = group(family, windows, recipe)
    for column, (window, logits) in enumerate(zip(windows, logits_of(run), strict=True)):
        plain_losses, plain_logits = plain_window(family, window, recipe)
        close(losses[:, column], plain_losses)
        close(logits, plain_logits)


@pytest.mark.parametrize("family", FAMILIES)
def test_companions_do_not_matter(family):
    windows = all_windows(N_LAYERS)
    together = logits_of(group(family, windows)[0])
    for some in ([(2, 3)], [(4, 4)], [(1, 1), (2, 3), (3, 4)]):
        for window, logits in zip(some, logits_of(group(family, some)[0]), strict=True):
            close(logits, together[windows.index(window)])


@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("family", [*FAMILIES, *ADAPTED])
def test_rounding_all_weights_of_a_layer_together_changes_no_bit(family, head, monkeypatch):
    """In bfloat16, against a step in which each use of a weight rounds it anew."""
    windows, recipe = [(1, 1), (2, 3), (3, 3)], changed(epochs=1, train_head=head)
    together = group(family, windows, recipe, precision="bfloat16")
    monkeypatch.setattr(WindowVariants, "short", None)
    monkeypatch.setattr(Frozen, "__call__", lambda frozen, weight: weight)
    apart = group(family, windows, recipe, precision="bfloat16")
    assert torch.equal(together[1], apart[1])
    for name, rows in together[0].rows.items():
        assert torch.equal(rows, apart[0].rows[name])
