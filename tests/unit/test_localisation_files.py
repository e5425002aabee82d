"""Gradients and probes from checkpoints on disk to the tables that summaries read."""

import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from memloc.files import read_json
from memloc.gradient_files import gradient_checkpoints
from memloc.gradient_variants import COLUMNS as GRADIENT_COLUMNS
from memloc.gradient_variants import NORM_COLUMNS, gradient_weights, variant_table
from memloc.probe_files import probe_checkpoints
from memloc.probe_stack import ProbeRecipe
from memloc.probe_weights import COLUMNS as PROBE_COLUMNS
from memloc.probe_weights import probe_weights
from memloc.reading import Reading
from memloc.tables import read_tsv
from tiny import N_LAYERS, VOCABULARY, tiny_model

CLASSES = ["no", "so", "yes"]
READING = Reading(CLASSES, None, 16)


@pytest.fixture(scope="module", autouse=True)
def quick_and_restored():
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(strict)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with perturbed.parquet and two checkpoints of one tiny model."""
    folder = tmp_path_factory.mktemp("study")
    words = ["[PAD]", "[UNK]", *(f"w{i}" for i in range(2, VOCABULARY))]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]"
    )
    for name, seed in (("memorised", 1), ("frozen", 2)):
        tiny_model("gpt_neox", seed).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    n = 90
    generator = torch.Generator().manual_seed(0)
    true = torch.randint(0, 3, (n,), generator=generator)
    noisy = torch.arange(n) % 5 == 0
    label = torch.where(noisy, (true + 1) % 3, true)
    text = [" ".join(f"w{i % 50 + 2}" for i in range(k, k + 2 + k % 7)) for k in range(n)]
    frame = pd.DataFrame({"split": "train", "index": range(100, 100 + n), "text": text})
    frame["original_label"] = [CLASSES[i] for i in true]
    frame["label"] = [CLASSES[i] for i in label]
    frame.assign(noisy=noisy.numpy()).to_parquet(folder / "perturbed.parquet")
    return folder


def paths(study, table):
    names = {"data": "perturbed.parquet", "memorised": "memorised", "frozen": "frozen"}
    return {name: study / file for name, file in names.items()} | {"table": study / table}


def test_gradients_from_files_to_file(study):
    options = dict(objective="loss", batch_tokens=64, precision="float32", seed=0)
    gradient_checkpoints(
        **paths(study, "gradients.tsv"),
        norms=study / "gradient_norms.tsv",
        reading=READING,
        **options,
    )
    table = read_tsv(study / "gradients.tsv", GRADIENT_COLUMNS)
    again = variant_table(read_tsv(study / "gradient_norms.tsv", NORM_COLUMNS))
    pd.testing.assert_frame_equal(table[again.columns], again)
    assert len(table) == 8 * N_LAYERS and (table["n_noisy"] == 18).all()
    weights = gradient_weights(table)
    assert weights["layer"].tolist() == [1, 2, 3, 4] and weights["weight"].sum() == pytest.approx(1)
    assert read_json(study / "gradients.tsv.provenance.json")["objective"] == "loss"


def test_probes_from_files_to_file(study):
    recipe = ProbeRecipe(8, 0.1, 1e-3, 1e-5, 16, 3, 1, 0.67)
    options = dict(seeds=[1, 2], states="float16", batch_tokens=64, precision="float32")
    probe_checkpoints(**paths(study, "probes.tsv"), reading=READING, recipe=recipe, **options)
    table = read_tsv(study / "probes.tsv", PROBE_COLUMNS)
    assert len(table) == (N_LAYERS + 1 + 1) * 2 * (1 + 3 + 3)
    frozen = table[table["source"] == "theta_F"]
    assert set(frozen["layer"]) == {1}
    weights = probe_weights(table)
    assert weights["layer"].tolist() == [1, 2, 3, 4] and (weights["weight"] >= 0).all()
    assert read_json(study / "probes.tsv.provenance.json")["probe_seeds"] == [1, 2]
