"""What nothing can be localised in is told from a folder's files, with one line that helps."""

import json
import pickle

import pytest
import torch

from families import FAMILIES, save
from memloc.errors import MemlocError
from memloc.models import retrieve
from memloc.models.refusals import refuse_kind, refuse_weights, weight_files
from retrieval import retrieve_unexamined


@pytest.fixture
def folder(tmp_path):
    return save("BERT", tmp_path / "model")


def configured(folder, name="config.json", **changes):
    path = folder / name
    raw = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in {**raw, **changes}.items() if value}))
    return folder


def refuse_unsuited(folder):
    refuse_kind(folder)
    refuse_weights(folder)


def refusal(folder):
    with pytest.raises(MemlocError) as error:
        refuse_unsuited(folder)
    line = str(error.value)
    assert "\n" not in line and len(line) < 500
    return line


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("T5", "encoder-decoders have no one list of layers"),
        ("BART", "encoder-decoders have no one list of layers"),
        ("Mamba", "no sequence classifier for mamba"),
        ("RWKV", "no sequence classifier for rwkv"),
        ("Gemma 3 (images)", "multimodal"),
    ],
)
def test_kinds_of_models_without_one_list_of_layers(family, words, tmp_path):
    assert words in refusal(save(family, tmp_path / "model"))


SUITED = [name for name in FAMILIES if name not in ("T5", "BART", "Mamba", "RWKV")]


@pytest.mark.parametrize("family", [name for name in SUITED if "images" not in name][::6])
def test_other_families_pass(family, tmp_path):
    refuse_unsuited(save(family, tmp_path / "model"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "quantised ('bitsandbytes')"),
        ({"auto_map": {"AutoConfig": "own.Config"}}, "custom code"),
        ({"attn_implementation": "someone/kernel"}, "custom code"),
        ({"model_type": "never_heard_of"}, "'never_heard_of'"),
        ({"model_type": None}, "None"),
        ({"hidden_size": "wide"}, "config.json can't be read"),
    ],
)
def test_what_config_json_says(folder, changes, words):
    assert words in refusal(configured(folder, **changes))


def test_a_tokenizer_of_custom_code_is_refused_too(folder):
    changes = {"auto_map": {"AutoTokenizer": ["own.Tokenizer", None]}}
    line = refusal(configured(folder, "tokenizer_config.json", **changes))
    assert "custom code" in line and "tokenizer_config.json" in line


def test_custom_code_is_never_run_and_nobody_is_asked(folder, tmp_path, monkeypatch):
    """Not even where the type is one that transformers knows."""
    trace = tmp_path / "ran"
    (folder / "own.py").write_text(f"open({str(trace)!r}, 'w')\n")
    configured(folder, auto_map={"AutoConfig": "own.Config", "AutoModel": "own.Model"})
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("a question at a terminal"))
    with pytest.raises(MemlocError, match="custom code"):
        retrieve_unexamined({"folder": str(folder)}, tmp_path / "m", tmp_path / "m.sha256")
    assert not trace.exists()


def sharded(folder):
    weights = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    (folder / "model.safetensors").rename(folder / weights[0])
    index = {"weight_map": {"one": weights[0], "two": weights[1]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return weights


def test_a_missing_shard_is_named_in_the_users_folder(folder, tmp_path):
    _, lost = sharded(folder)
    with pytest.raises(MemlocError) as error:
        retrieve_unexamined({"folder": str(folder)}, tmp_path / "m", tmp_path / "m.sha256")
    assert str(folder / lost) in str(error.value) and "missing" in str(error.value)


def test_nothing_is_copied_of_a_model_that_is_refused(folder, tmp_path, monkeypatch):
    configured(folder, quantization_config={"quant_method": "gptq"})
    monkeypatch.setattr(retrieve.shutil, "copytree", lambda *_, **__: pytest.fail("copied"))
    with pytest.raises(MemlocError, match=rf"model {folder}: .*gptq"):
        retrieve_unexamined({"folder": str(folder)}, tmp_path / "m", tmp_path / "m.sha256")


class Trap:
    """An object that would write a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("old", [False, True])
def test_pickles_of_more_than_tensors_are_refused_and_not_run(folder, tmp_path, old):
    trace = str(tmp_path / "ran")
    (folder / "model.safetensors").unlink()
    content = {"a": torch.ones(2), "b": Trap(trace)}
    torch.save(content, folder / "pytorch_model.bin", _use_new_zipfile_serialization=not old)
    assert "safetensors" in refusal(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("old", [False, True])
def test_pickles_of_tensors_pass(folder, old):
    (folder / "model.safetensors").unlink()
    torch.save(
        {"a": torch.ones(2)},
        folder / "pytorch_model.bin",
        _use_new_zipfile_serialization=not old,
    )
    refuse_unsuited(folder)


@pytest.mark.parametrize("content", [b"", b"\x80\x02torn", pickle.dumps({"a": object()}, 2)])
def test_torn_pickles_are_refused(folder, content):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(content)
    assert "can't be read" in refusal(folder)


def test_a_folder_without_weights_or_with_a_torn_configuration(folder):
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    assert "neither model.safetensors nor" in refusal(folder)
    (folder / "config.json").write_text('{"model_type": ')
    assert "config.json can't be read" in refusal(folder)


def test_weight_files_are_those_that_from_pretrained_reads(folder):
    (folder / "pytorch_model.bin").write_bytes(b"")
    assert weight_files(folder) == ["model.safetensors"]
    (folder / "pytorch_model.bin").unlink()
    parts = sharded(folder)
    assert weight_files(folder) == parts


def test_no_weights_are_fetched_of_a_model_that_is_refused(folder, tmp_path, monkeypatch):
    configured(folder, quantization_config={"quant_method": "gptq"})

    def snapshot(name, revision, allow_patterns):
        assert not any("safetensors" in each or "bin" in each for each in allow_patterns)
        return str(folder)

    monkeypatch.setattr(retrieve, "snapshot_download", snapshot)
    with pytest.raises(MemlocError, match=r"model some/model: .*gptq"):
        retrieve_unexamined({"hub": "some/model"}, tmp_path / "m", tmp_path / "m.sha256")


def test_a_repository_without_a_model_is_named(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(retrieve, "snapshot_download", lambda *_, **__: str(tmp_path / "empty"))
    with pytest.raises(MemlocError, match=r"model some/model: there is no config.json"):
        retrieve_unexamined({"hub": "some/model"}, tmp_path / "m", tmp_path / "m.sha256")
