"""Models of public bug reports, where there are some beside the clone: right, or refused."""

import json

import pytest

from memloc.data.tokens import encode_texts, load_tokenizer
from memloc.errors import MemlocError
from memloc.models.load import load_pretrained
from retrieval import retrieve_and_examine
from shipped import ROOT

CASES = ROOT.parent / "shared" / "cases"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason=f"no failed inputs at {CASES}")

REFUSED = {
    "01-flaubert-layers": "expected one list",
    "02-deberta-conv": "what layer 2 receives isn't what layer 1 returned",
    "05-fnet-no-mask": "predictions would depend on the batch size",
    "11-t5": "encoder-decoders have no one list of layers",
    "12-squeezebert-late": "layers form a chain",
    "13-xlnet-minus-one": "rows are independent",
    "15-remote-code": "custom code isn't run by memloc",
    "23-tokenizer-without-vocabulary": "rows are independent",
    "24-gemma3-multimodal": "multimodal",
    "25-mamba": "no sequence classifier for mamba",
    "27-pickled-objects": "its weights can't be read",
    "28-shard-missing": "model-00002-of-00006.safetensors is missing",
    "29-quantised": "quantised weights can't be fine-tuned",
}
LONGEST = {
    "04-pad-ids-differ": 64,
    "10-llama3-eos-list": 64,
    "14-roberta-two-positions": 64,
    "22-bert-without-pooler": 64,
}


def retrieved(case, tmp_path):
    source = {"folder": str(CASES / case / "model")}
    retrieve_and_examine(source, tmp_path / "m", tmp_path / "m.sha256")
    return tmp_path / "m"


@pytest.mark.parametrize(("case", "words"), REFUSED.items())
def test_refused_in_one_line(case, words, tmp_path):
    with pytest.raises(MemlocError) as error:
        retrieved(case, tmp_path)
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(("case", "longest"), LONGEST.items())
def test_retrieved(case, longest, tmp_path):
    folder = retrieved(case, tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["longest_input"] == longest
    assert bool(manifest["notes"]) == (case == "22-bert-without-pooler")
    pad = load_tokenizer(folder).pad_token_id
    assert load_pretrained(folder, ["a", "b"], 0).config.pad_token_id == pad


def test_special_tokens_stand_around_texts_alone():
    dna = load_tokenizer(CASES / "06-tokenizer-without-a" / "model")
    assert encode_texts(dna, [("ACGT",)], None, 99)[0] == [[1, 3, 4, 5, 6, 2]]
    unigram = load_tokenizer(CASES / "07-html-strike-through" / "model")
    for text in ("w1 <s>w2</s> w3", "w1 <pad> w2"):
        (ids,) = encode_texts(unigram, [(text,)], None, 99)[0]
        assert (ids[0], ids[-1]) == (0, 2) and not {0, 1, 2} & set(ids[1:-1])
