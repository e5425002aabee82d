"""Retraining whose partial state is damaged ends in the same tables, and names the file."""

import logging
import shutil

import pandas as pd
import pytest

from damage import DAMAGE
from retraining_runs import changed, retraining

RECIPE = changed(epochs=3)
FIRST, SECOND = [(1, 1)], [(2, 2), (3, 3)]
# After the second epoch of the second group; and the epochs that are then trained again.
SAVED = {
    "finished.1/state.json": [1, 2, 3, 3],
    "finished.1/predicted.safetensors": [1, 2, 3, 3],
    "group.2/state.json": [2, 3],
    "group.2/weights.safetensors": [2, 3],
    "group.2/moments.safetensors": [2, 3],
    "group.1/weights.safetensors": [3],
}


class Killed(Exception):
    pass


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return retraining(tmp_path_factory.mktemp("whole"), recipe=RECIPE).run(FIRST + SECOND)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a job that had finished one group, and two of three epochs of another."""

    def kill(epoch):
        if epoch == 2:
            raise Killed

    folder = tmp_path_factory.mktemp("killed")
    retraining(folder, recipe=RECIPE).run(FIRST)
    job = retraining(folder, recipe=RECIPE)
    job._budget = lambda: 1e12
    with pytest.raises(Killed):
        job.run(FIRST + SECOND, kill)
    saved = {path.parent.name for path in folder.rglob("state.json")}
    assert saved == {"finished.1", "group.1", "group.2"}
    return folder


@pytest.mark.parametrize(("file", "damage"), list(zip(SAVED, reversed(DAMAGE), strict=False)))
def test_damaged_state_ends_in_the_same_tables(undisturbed, killed, tmp_path, caplog, file, damage):
    caplog.set_level(logging.INFO)
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    DAMAGE[damage](tmp_path / "scratch" / file)
    trained = []
    job = retraining(tmp_path, recipe=RECIPE)
    result = job.run(FIRST + SECOND, trained.append)
    pd.testing.assert_frame_equal(result.table, undisturbed.table)
    pd.testing.assert_frame_equal(result.examples, undisturbed.examples)
    assert sorted(trained) == sorted(SAVED[file])
    assert file in caplog.text or file == "group.1/weights.safetensors"
    job.clear()
    assert not (tmp_path / "scratch").exists()


def test_state_of_a_group_that_had_ended_is_not_taken_for_another_s(tmp_path, undisturbed, killed):
    """The job is killed between a group's result and the removal of its state."""
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    job = retraining(tmp_path, recipe=RECIPE)
    job.store.states.drop = lambda *_, **__: None
    job.run(FIRST + SECOND)
    left = retraining(tmp_path, recipe=RECIPE)
    assert left.store.begun() == SECOND
    result = left.run([*FIRST, *SECOND, (1, 2)])
    pd.testing.assert_frame_equal(
        result.table[result.table.start == result.table.end].reset_index(drop=True),
        undisturbed.table,
        check_like=True,
    )
    assert not left.store.states.numbers("group")
