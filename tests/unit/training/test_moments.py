"""Moments in bfloat16: rounded rightly on average, AdamW otherwise, the same after a kill."""

import math

import pytest
import torch

from memloc.groups import MOMENTS
from memloc.training.moments import ShortAdamW, rounded_at_random
from memloc.training.optimiser import Optimisation, Optimiser
from training_runs import RECIPE, Killed, run, same, weights

SHORT = Optimisation(20, 1e-3, 4, 0.1, 0.01, 1.0, moments="bfloat16")
SHORT_RUN = type(RECIPE)(**{**RECIPE.__dict__, "moments": "bfloat16"})


def draws(shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 1 << 16, shape, generator=generator, dtype=torch.int32)


def neighbours(values):
    """The bfloat16 numbers next to each float32 one, towards 0 and away from it."""
    bits = values.view(torch.int32) & -(1 << 16)
    return bits.view(torch.float32), (bits + (1 << 16)).view(torch.float32)


def test_numbers_are_rounded_to_a_neighbour_and_rightly_on_average():
    """Over magnitudes of 80 orders and both signs; the mean of n within 5 standard errors."""
    generator = torch.Generator().manual_seed(1)
    exponents = torch.empty(200).uniform_(-40, 30, generator=generator)
    values = 10.0**exponents * torch.randn(200, generator=generator)
    values = torch.cat([values, torch.tensor([0.0, 1.0, -1.5, 1e-38, -1e-45])])
    n = 20_000
    rounded = rounded_at_random(values.expand(n, -1).clone(), draws((n, len(values))))
    assert torch.equal(rounded.bfloat16().float(), rounded)
    low, high = neighbours(values)
    assert ((rounded == low) | (rounded == high)).all()
    share = (rounded == high).double().mean(0)
    expected = ((values.double() - low.double()) / (high.double() - low.double())).clamp(0, 1)
    error = (expected * (1 - expected) / n).sqrt() + 1e-12
    assert ((share - expected).abs() <= 5 * error).all()
    exact = values == low
    assert torch.equal(rounded[:, exact], values[exact].expand(n, -1))


def test_infinite_numbers_stay_and_nan_is_no_number():
    values = torch.tensor([math.inf, -math.inf, math.nan])
    rounded = rounded_at_random(values.clone(), torch.full((3,), 65535, dtype=torch.int32))
    assert rounded[0] == math.inf and rounded[1] == -math.inf and not rounded[2].isfinite()


def adam(kind, parameter, seed=0, **options):
    counter = iter(range(10**9))
    if kind is torch.optim.AdamW:
        return kind([parameter], fused=True, **options)
    return kind({"p": parameter}, seed, lambda: next(counter), False, fused=True, **options)


class Nearest(ShortAdamW):
    """What it would be without chance."""

    def _narrow(self, name, parameter, wide):
        for key, moment in zip(("exp_avg", "exp_avg_sq"), wide, strict=True):
            self.state[parameter][key].copy_(moment)


def second_moments(kind, steps=4000, size=400):
    """The second moment after gradients of 1 have shrunk to 0.1."""
    parameter = torch.zeros(size, requires_grad=True)
    optimiser = adam(kind, parameter, lr=1e-4)
    generator = torch.Generator().manual_seed(3)
    for step in range(steps):
        scale = 1.0 if step < steps // 4 else 0.1
        parameter.grad = scale * (1 + 0.1 * torch.randn(size, generator=generator))
        optimiser.step()
    return optimiser.state[parameter]["exp_avg_sq"].float()


def test_second_moments_follow_float32_where_rounding_to_the_nearest_stands_still():
    """In the mean of 400 within 2 %; to the nearest, they stay at several times what they are."""
    plain, short, nearest = (
        second_moments(kind).mean().item() for kind in (torch.optim.AdamW, ShortAdamW, Nearest)
    )
    assert short == pytest.approx(plain, rel=0.02)
    assert nearest > 3 * plain


def losses(kind, seed=0, steps=3000):
    """Logistic regression by batches: the loss on all rows, every 100 steps."""
    generator = torch.Generator().manual_seed(5)
    rows = torch.randn(256, 30, generator=generator)
    truth = torch.randn(30, generator=generator)
    labels = (rows @ truth + torch.randn(256, generator=generator) > 0).float()
    parameter = torch.zeros(30, requires_grad=True)
    optimiser = adam(kind, parameter, seed, lr=1e-3, weight_decay=0.01)
    lossy = torch.nn.functional.binary_cross_entropy_with_logits
    found = []
    for step in range(steps):
        batch = torch.randint(0, 256, (8,), generator=generator)
        optimiser.zero_grad()
        lossy(rows[batch] @ parameter, labels[batch]).backward()
        optimiser.step()
        if step % 100 == 99:
            found.append(lossy(rows @ parameter, labels).item())
    return torch.tensor(found), parameter.detach()


def test_a_long_run_tracks_float32():
    """3,000 steps: losses within 0.5 % all along, weights within 2 % of their length."""
    expected, theirs = losses(torch.optim.AdamW)
    for seed in range(3):
        found, ours = losses(ShortAdamW, seed)
        torch.testing.assert_close(found, expected, rtol=0.005, atol=0)
        assert (ours - theirs).norm() < 0.02 * theirs.norm()
    _, astray = losses(Nearest)
    assert (astray - theirs).norm() > 0.02 * theirs.norm()


def test_a_step_is_torch_s_own_but_for_the_rounding():
    """From the same moments, weights move alike to the bit; moments are then a neighbour's."""
    ours, theirs = (torch.linspace(-1, 1, 50).requires_grad_() for _ in range(2))
    short = adam(ShortAdamW, ours, lr=1e-2, weight_decay=0.1)
    plain = adam(torch.optim.AdamW, theirs, lr=1e-2, weight_decay=0.1)
    generator = torch.Generator().manual_seed(2)
    for _ in range(5):
        ours.grad = torch.randn(50, generator=generator)
        theirs.grad = ours.grad.clone()
        for key, value in short.state[ours].items():
            plain.state[theirs][key] = value.float().clone()
        short.step()
        plain.step()
        assert torch.equal(ours, theirs)
        for key in ("exp_avg", "exp_avg_sq"):
            exact, kept = plain.state[theirs][key], short.state[ours][key].float()
            low, high = neighbours(exact)
            assert ((kept == low) | (kept == high)).all()
        assert short.state[ours]["exp_avg"].dtype == torch.bfloat16


def test_windows_get_the_same_draws_however_many_there_are():
    alone, together = (
        Optimiser({"3.0": torch.ones(count, 7).requires_grad_()}, SHORT, 9, 5, stacked=True)
        for count in (1, 3)
    )
    for step in range(20):
        gradient = torch.randn(7, generator=torch.Generator().manual_seed(step))
        for one in (alone, together):
            (rows,) = one.adamw.named.values()
            rows.grad = gradient.expand_as(rows).clone()
            one.step()
    single, three = (one.adamw.named["3.0"].detach() for one in (alone, together))
    assert torch.equal(three, single.expand(3, -1))


def test_moments_take_what_plans_and_groups_count_on():
    for name, size in MOMENTS.items():
        recipe = Optimisation(2, 1e-3, 4, 0.1, 0.01, 1.0, moments=name)
        parameters = {"a": torch.ones(100, requires_grad=True)}
        optimiser = Optimiser(parameters, recipe, 9, 0)
        parameters["a"].grad = torch.ones(100)
        optimiser.step()
        held = {n: t for n, t in optimiser.moments().items() if not n.endswith("step")}
        assert sum(t.nbytes for t in held.values()) == 100 * size == 100 * (recipe.saved_bytes - 4)


def test_a_killed_run_ends_with_the_same_bits(tmp_path):
    def kill(epoch):
        if epoch == 2:
            raise Killed

    whole, *_ = run(tmp_path / "whole", recipe=SHORT_RUN)
    with pytest.raises(Killed):
        run(tmp_path / "killed", recipe=SHORT_RUN, after_epoch=kill)
    epochs = []
    resumed, *_ = run(tmp_path / "killed", recipe=SHORT_RUN, after_epoch=epochs.append)
    assert epochs == [3, 4] and same(weights(whole), weights(resumed))
    plain, *_ = run(tmp_path / "plain")
    assert not same(weights(whole), weights(plain))
    with pytest.raises(Killed):
        run(tmp_path / "other", recipe=SHORT_RUN, after_epoch=kill)
    epochs = []
    run(tmp_path / "other", after_epoch=epochs.append)  # moments of another type: it starts anew
    assert epochs == [1, 2, 3, 4]
