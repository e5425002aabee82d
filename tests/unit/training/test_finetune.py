"""Fine-tuning from files to files stops before training where it can't end well."""

import shutil

import pytest

from disk import Usage
from memloc.errors import MemlocError
from memloc.training.finetune import RunFiles, fine_tune
from memloc.training.loop import Computing, Recipe
from tiny_study import READING


def test_a_full_disk_is_said_before_training(tiny_files, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 10**9, 1000))
    monkeypatch.setattr("memloc.training.loop.FineTuning.run", lambda run: pytest.fail("trained"))
    places = RunFiles(tmp_path / "final", tmp_path / "d", tmp_path / "h", tmp_path / "scratch")
    recipe = Recipe(1, 1e-3, 4, 0.1, 0.01, 1.0, 0.99)
    with pytest.raises(MemlocError, match=r"checkpoints of this run needs .* Make room"):
        fine_tune(
            tiny_files / "perturbed.parquet",
            tiny_files / "memorised",
            places,
            "perturbed",
            True,
            1,
            recipe,
            READING,
            Computing("float32", 8),
            "code",
        )
    assert not (tmp_path / "final").exists()
