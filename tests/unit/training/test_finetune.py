"""Fine-tuning from files to files stops before training where it can't end well."""

import shutil

import pytest
import torch

from disk import Usage
from families import save
from memloc.data.tokens import Examples
from memloc.errors import MemlocError
from memloc.models.load import load_pretrained
from memloc.training.finetune import RunFiles, check_lengths, fine_tune
from memloc.training.loop import Computing, Corpus, Recipe
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


def corpus_of(*lengths):
    def split(length):
        one = torch.zeros(1, dtype=torch.long)
        return Examples([[0, *[7] * (length - 2), 2]], one, one.bool(), one)

    return Corpus(*(split(length) for length in lengths), 1)


@pytest.mark.parametrize(
    ("family", "limit"), [("RoBERTa", 38), ("XLM-RoBERTa", 38), ("BERT", 40), ("XLNet", None)]
)
def test_an_input_too_long_is_said_with_the_length_that_works(family, limit, tmp_path):
    """38 of 40 positions are RoBERTa's, since it keeps two for padding."""
    model = load_pretrained(save(family, tmp_path), ["a", "b"], 0)
    check_lengths(corpus_of(limit or 500, 5), model, 100)
    if limit is None:
        return
    for longest in (limit + 1, limit + 2, 100):
        for lengths in ((longest, 5), (5, longest)):
            with pytest.raises(MemlocError, match=f"lower data.max_length to {limit}$"):
                check_lengths(corpus_of(*lengths), model, longest)
