"""Partial state as time passes: when it is saved, and that a kill costs time and no bit."""

import pytest

from memloc.training import states
from memloc.training.states import Saving, States
from retraining_runs import changed as retraining_recipe
from retraining_runs import retraining
from training_runs import RECIPE, Killed, run, same, weights

EPOCHS = RECIPE.epochs
WINDOWS = [(1, 1), (2, 3)]


@pytest.fixture
def clock(monkeypatch):
    """A clock that only `wait` moves."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

        def wait(self, minutes):
            self.now += 60 * minutes

    clock = Clock()
    monkeypatch.setattr(states, "time", clock)
    return clock


def kept(folder, name="state"):
    return sorted(int(p.name.split(".")[1]) for p in (folder / "scratch").glob(f"{name}.*"))


def test_state_is_due_so_long_after_the_last_one(tmp_path, clock):
    saving = Saving(States(tmp_path / "s", {}), "state", 10)
    for number, minutes, due in [(1, 9, False), (2, 1, True), (3, 9.9, False), (4, 0.1, True)]:
        clock.wait(minutes)
        assert saving.is_due == due
        if due:
            saving.save(number, {})
    assert saving.states.numbers("state") == [2, 4]
    saving.save(9, {})
    assert sorted(saving.states.numbers("state")) == [4, 9]  # one to go back to
    assert Saving(saving.states, "state", 0).is_due


@pytest.mark.parametrize(("minutes", "left"), [(0, [2, 3]), (1, [2, 3]), (2, [3]), (3, [])])
def test_the_last_two_are_left_and_the_last_epoch_is_never_saved(tmp_path, clock, minutes, left):
    """Epochs of a minute each, of which the clock tells after the epoch has been looked at."""
    run(tmp_path, keep=[EPOCHS], save_minutes=minutes, after_epoch=lambda epoch: clock.wait(1))
    assert kept(tmp_path) == left == _saved(minutes)[-2:]
    assert kept(tmp_path, "epoch") == [EPOCHS]  # what is to be had later, however soon


def _saved(minutes):
    """Epochs 1..EPOCHS-1 that are saved where epoch E is looked at after E - 1 minutes."""
    found, last = [], 0
    for epoch in range(1, EPOCHS):
        if epoch - 1 - last >= minutes:
            found.append(epoch)
            last = epoch - 1
    return found


@pytest.mark.parametrize("killed_after", range(1, EPOCHS + 1))
@pytest.mark.parametrize("minutes", [0, 2, 1e9])
def test_a_killed_run_ends_with_the_same_bits_however_seldom_it_is_saved(
    tmp_path, clock, minutes, killed_after
):
    """Also when it is killed after its last epoch, before the results are in place."""

    def kill(epoch):
        clock.wait(1)
        if epoch == killed_after:
            raise Killed

    settings = {"keep": [1, 3], "save_minutes": minutes}
    whole, expected, outcome = run(tmp_path / "whole", **settings)
    with pytest.raises(Killed):
        run(tmp_path / "killed", after_epoch=kill, **settings)
    again = []
    resumed, tuning, ours = run(tmp_path / "killed", after_epoch=again.append, **settings)
    saved = [epoch for epoch in _saved(minutes) if epoch <= killed_after]
    assert again == list(range(max(saved, default=0) + 1, EPOCHS + 1))
    assert same(weights(whole), weights(resumed))
    assert ours.memorised_epoch == outcome.memorised_epoch
    for load in ("load_memorised", "load_epoch"):
        for each in (expected, tuning):
            getattr(each, load)(*([3] if load == "load_epoch" else []))
        assert same(weights(whole), weights(resumed))


def test_windows_are_saved_as_seldom(tmp_path, clock):
    """Of a group's epochs, each a minute; the group's result needs none of them."""
    seen = []

    def look(epoch):
        clock.wait(1)
        seen.append((epoch, kept(tmp_path, "group")))

    recipe = retraining_recipe(epochs=4)
    whole = retraining(tmp_path / "whole", recipe=recipe).run(WINDOWS)
    job = retraining(tmp_path, recipe=recipe, save_minutes=2)
    result = job.run(WINDOWS, look)
    assert seen == [(1, []), (2, []), (3, [3]), (4, [3])]
    assert result.table.equals(whole.table)
