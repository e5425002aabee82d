"""Partial state that isn't as it was written is left out, and the log names the file."""

import logging
import shutil

import pytest
import torch

from damage import DAMAGE, file_instead
from memloc.training.loop import Recipe
from memloc.training.states import States
from training_runs import RECIPE, Killed, run, same, weights

IDENTITY = {"seed": 1, "layers": (1, 2), "rates": {2: 0.5}}
FILES = ("state.json", "weights.safetensors", "moments.safetensors")


def tensors(number):
    return {"a": torch.full((40,), float(number)), "b": torch.arange(number + 1)}


def two_states(folder):
    """States of epochs 1 and 2."""
    states = States(folder / ".scratch/run", IDENTITY)
    for number in (1, 2):
        states.save("state", number, {"epoch": number}, weights=tensors(number), moments={})
    return states


def whole(folder):
    """Numbers of the states that are taken by another process, each as it was written."""
    found = list(States(folder / ".scratch/run", IDENTITY).saved("state"))
    for state in found:
        assert state.facts == {"epoch": state.number}
        assert same(tensors(state.number), state.tensors("weights"))
    return [state.number for state in found]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_state_is_left_out_and_named(tmp_path, caplog, damage, file):
    states = two_states(tmp_path)
    assert whole(tmp_path) == [2, 1]
    path = states.folder / "state.2" / file
    DAMAGE[damage](path)
    assert whole(tmp_path) == [1]
    (said,) = (record.getMessage() for record in caplog.records)
    assert str(path) in said and "is left out" in said
    states.save("state", 2, {"epoch": 2}, weights=tensors(2), moments={})
    assert whole(tmp_path) == [2, 1]


@pytest.mark.parametrize("file", FILES)
def test_every_flipped_bit_is_noticed(tmp_path, file):
    folder = two_states(tmp_path).folder
    shutil.copytree(folder / "state.2", tmp_path / "copy")
    content = (tmp_path / "copy" / file).read_bytes()
    for bit in range(0, 8 * len(content), 37):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        shutil.copytree(tmp_path / "copy", folder / "state.2", dirs_exist_ok=True)
        (folder / "state.2" / file).write_bytes(flipped)
        assert whole(tmp_path) == [1], bit


@pytest.mark.parametrize("place", ["state.2", ".", ".."])
def test_a_file_in_the_place_of_a_folder_is_removed(tmp_path, caplog, place):
    folder = two_states(tmp_path).folder
    file_instead((folder / place).resolve())
    assert whole(tmp_path) == ([1] if place == "state.2" else [])
    assert str((folder / place).resolve()) in caplog.text
    two_states(tmp_path)
    assert whole(tmp_path) == [2, 1]


def test_a_kill_while_states_are_removed_leaves_whole_ones_or_none(tmp_path, monkeypatch):
    def killed(*_, **__):
        raise Killed

    states = two_states(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(Killed):
            states.drop("state", before=2)
    assert whole(tmp_path) == [2]
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(Killed):
            states.clear()
    assert whole(tmp_path) == []


def test_states_of_another_run_are_thrown_away(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    folder = two_states(tmp_path).folder
    assert not list(States(folder, IDENTITY | {"seed": 2}).saved("state"))
    assert "no run with these settings: starting anew" in caplog.text and whole(tmp_path) == []


# --- a run of fine-tuning ------------------------------------------------------------------

EARLY = Recipe(**{**RECIPE.__dict__, "memorised_above": 0.4})  # theta_M1 after the first epoch
KEEP = [1]
SAVED = {  # after the third of four epochs, and after which epoch a run goes on without it
    "state.3/state.json": 2,
    "state.3/weights.safetensors": 2,
    "state.3/moments.safetensors": 2,
    "state.2/weights.safetensors": 3,
    "memorised.1/state.json": 0,
    "memorised.1/weights.safetensors": 0,
    "epoch.1/weights.safetensors": 0,
}


def ends(folder, **options):
    """A run's weights at the end, of theta_M1 and of the epoch kept; its history."""
    model, tuning, outcome = run(folder, recipe=EARLY, keep=KEEP, **options)
    found = [weights(model)]
    tuning.load_memorised()
    found.append(weights(model))
    tuning.load_epoch(KEEP[0])
    return [*found, weights(model)], [{**row, "seconds": 0} for row in outcome.history]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return ends(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a run that was killed after its third epoch."""

    def kill(epoch):
        if epoch == 3:
            raise Killed

    folder = tmp_path_factory.mktemp("killed")
    with pytest.raises(Killed):
        ends(folder, after_epoch=kill)
    saved = {path.parent.name for path in folder.rglob("state.json")}
    assert saved == {"state.2", "state.3", "memorised.1", "epoch.1"}
    return folder


@pytest.mark.parametrize(("file", "damage"), list(zip(SAVED, DAMAGE, strict=False)))
def test_a_run_with_damaged_state_ends_with_the_same_bits(
    undisturbed, killed, tmp_path, caplog, file, damage
):
    caplog.set_level(logging.INFO)
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    DAMAGE[damage](tmp_path / "scratch" / file)
    trained = []
    found, history = ends(tmp_path, after_epoch=trained.append)
    assert history == undisturbed[1]
    assert all(map(same, found, undisturbed[0]))
    assert trained == list(range(SAVED[file] + 1, 5))
    assert SAVED[file] == 3 or file in caplog.text
