"""A record says where, how precisely and how long a stage computed."""

import pytest
import torch
from transformers import AutoTokenizer

from memloc.errors import MemlocError
from memloc.models.run_record import RunRecord
from memloc.store.files import read_json

CPU = torch.device("cpu")


def test_what_became_of_the_settings_is_written(tmp_path):
    table = tmp_path / "table.tsv"
    record = RunRecord("auto", device=CPU)
    record.write(table, precision="auto", seed=3)
    written = read_json(f"{table}.provenance.json")
    assert written["seed"] == 3 and written["device"].startswith("CPU")
    assert written["precision"] == record.precision != "auto"
    assert 0 <= written["seconds"] <= record.seconds


def test_checkpoints_that_tokenise_differently_are_refused(tiny_files, tmp_path):
    alike = [tiny_files / "memorised", tiny_files / "frozen"]
    RunRecord("float32", alike, CPU)
    tokenizer = AutoTokenizer.from_pretrained(alike[0])
    tokenizer.add_tokens(["another"])
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(MemlocError, match="different tokenizers"):
        RunRecord("float32", [*alike, tmp_path], CPU)
