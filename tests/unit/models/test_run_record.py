"""A record says where, how precisely and how long a stage computed."""

import json

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


@pytest.mark.parametrize(
    "part",
    [
        {"normalizer": {"type": "Replace", "pattern": {"String": "I"}, "content": "w2 "}},
        {"pre_tokenizer": None},
        {"pre_tokenizer": {"type": "WhitespaceSplit"}},
    ],
    ids=str,
)
def test_one_vocabulary_is_not_one_reading(tiny_files, tmp_path, part):
    AutoTokenizer.from_pretrained(tiny_files / "memorised").save_pretrained(tmp_path)
    RunRecord("float32", [tiny_files / "memorised", tmp_path], CPU)
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | part))
    with pytest.raises(MemlocError, match="different tokenizers"):
        RunRecord("float32", [tiny_files / "memorised", tmp_path], CPU)
