"""Inputs that once failed or gave wrong numbers, each as its case.md has it.

The folder shared/cases beside the clone holds them, one folder each: what it is, the command, and
what is expected. Where the folder is absent nothing runs here; made-up twins of every kind are in
the tests of the packages.
"""

import json
import re
import subprocess
from itertools import combinations_with_replacement
from pathlib import Path

import pandas as pd
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import warm
from memloc.data.tokens import encode_texts, load_tokenizer
from study import ROOT, copy_workflow, surroundings

CASES = ROOT.parent / "shared/cases"
NAMES = sorted(path.parent.name for path in CASES.glob("*/case.md"))
COMMAND = re.compile(r"--configfile (\S+) -- (\S+)")
OWN_CLONE = re.compile(r"^Command: cd <clone of memloc>; (mkdir .*)$", re.M)
LAYER = r"\.(\d+)\."  # the first number in a parameter's name is its layer's
MAX_LENGTH = 16  # of the studies whose windows are compared

pytestmark = pytest.mark.skipif(not NAMES, reason=f"no folder of cases at {CASES}")


class Outcome:
    """What a case's command left behind."""

    def __init__(self, name, results, folder):
        self.name, self.folder = name, folder
        self.rc, self.said = results[name]["rc"], results[name]["said"]
        model = yaml_models(CASES / name.partition("+")[0] / "study.yaml")
        self.data = folder / "results/toy/perturbed.parquet"
        self.model = folder / "resources/models" / model
        self.seed = folder / "results/toy" / model / "seed1"

    @property
    def rows(self):
        """Rows of the data set, as retrieved."""
        return pd.read_parquet(self.folder / "resources/tasks/toy.parquet")

    @property
    def lines(self):
        return [line for line in self.said.splitlines() if line.strip()]


def yaml_models(path):
    return re.search(r"^models:\n- (\S+)", path.read_text(), re.M)[1]


# --- what is expected ----------------------------------------------------------------------


def refused(*words, without=(), at_most=700):
    """One line with these words, and nothing trained; each word may be several, of which one."""

    def check(outcome, _):
        assert outcome.rc, outcome.said[-2000:]
        assert "Traceback" not in outcome.said, outcome.said[-3000:]
        last = outcome.lines[-1]
        assert re.search(r"error in rule|WorkflowError: ", last), outcome.said[-2000:]
        for word in words:
            either = [word] if isinstance(word, str) else word
            assert any(one.lower() in last.lower() for one in either), (word, last)
        for word in without:
            assert word not in outcome.said, last
        assert len(last) <= at_most, len(last)
        assert not re.search(r"epoch \d", outcome.said), "training had begun"
        assert not [*outcome.seed.parent.rglob("*.safetensors")], "training had begun"

    return check


def runs(*checks):
    """It ends well, and each of these checks holds."""

    def check(outcome, others):
        assert outcome.rc == 0, outcome.said[-3000:]
        assert "Traceback" not in outcome.said, outcome.said[-3000:]
        for one in checks:
            one(outcome, others)

    return check


def either(refusal, running):
    """Whichever it does, it does rightly."""
    return lambda outcome, others: (refusal if outcome.rc else running)(outcome, others)


def rows(count):
    """So many rows, of the columns that were named, with labels of the set."""

    def check(outcome, _):
        frame = outcome.rows
        assert len(frame) == count
        assert not frame["text"].str.contains("\n").any()
        assert set(pd.read_parquet(outcome.data)["label"]) <= {"yes", "no"}

    return check


def says(*words):
    def check(outcome, _):
        for word in words:
            assert word.lower() in outcome.said.lower(), outcome.said[-2000:]

    return check


def notes(word):
    """The model's manifest, and so the page, says it."""

    def check(outcome, _):
        assert word in (outcome.model / "manifest.json").read_text()

    return check


def same_history_in_other_batches(outcome, others):
    """evaluation_batch_size 1 in place of 64 changes speed, and no prediction."""
    other = others(f"{outcome.name}+one-by-one")
    assert other.rc == 0, other.said[-2000:]
    for labels in ("original", "perturbed"):
        path = f"{labels}/history.tsv"
        ours, theirs = (pd.read_csv(o.seed / path, sep="\t") for o in (outcome, other))
        columns = ours.columns.drop("seconds")
        pd.testing.assert_frame_equal(ours[columns], theirs[columns])


def exact(pattern=LAYER, encode=None):
    """Errors of windows are those of a model whose layers' weights were really exchanged.

    One text at a time, as the tokenizer itself gives it, so that nothing pads.
    """

    def check(outcome, _):
        table = pd.read_csv(outcome.seed / "swap.tsv", sep="\t").set_index(["start", "end"])
        frame = pd.read_parquet(outcome.data).query("split == 'train'")
        ours, theirs = (
            AutoModelForSequenceClassification.from_pretrained(outcome.seed / name / "final").eval()
            for name in ("perturbed", "original")
        )
        tokenizer = AutoTokenizer.from_pretrained(outcome.model)
        give = encode or (lambda _, text: tokenizer(text, truncation=True, max_length=MAX_LENGTH))
        texts = [give(outcome.model, text)["input_ids"] for text in frame["text"]]
        own, other = dict(ours.state_dict()), theirs.state_dict()
        own = {name: value.clone() for name, value in own.items()}
        layer = {name: int(m[1]) + 1 for name in own if (m := re.search(pattern, name))}
        n_layers = max(layer.values())
        windows = list(combinations_with_replacement(range(1, n_layers + 1), 2))
        assert sorted(table.index) == windows
        target = frame["label"].map({"yes": 0, "no": 1}).tolist()
        for start, end in windows:
            inside = {name for name, number in layer.items() if start <= number <= end}
            ours.load_state_dict({n: other[n] if n in inside else own[n] for n in own})
            with torch.no_grad():
                logits = [ours(input_ids=torch.tensor([ids])).logits for ids in texts]
            wrong = pd.Series(
                [one.argmax().item() != label for one, label in zip(logits, target, strict=True)],
                index=frame.index,
            )
            found = table.loc[(start, end)]
            assert found["noisy_error"] == pytest.approx(wrong[frame["noisy"]].mean(), abs=1e-9)
            assert found["clean_error"] == pytest.approx(wrong[~frame["noisy"]].mean(), abs=1e-9)

    return check


def encoded(folder, text):
    """As memloc itself gives a text to a model."""
    return {"input_ids": encode_texts(load_tokenizer(folder), [[text]], None, MAX_LENGTH)[0][0]}


def pads_with(model_id):
    def check(outcome, _):
        for folder in (outcome.seed / "original/final", outcome.seed / "perturbed/final"):
            assert json.loads((folder / "config.json").read_text())["pad_token_id"] == model_id

    return check


def put_as_the_tokenizer_puts_it(outcome, _):
    tokenizer = AutoTokenizer.from_pretrained(outcome.model)
    for text in pd.read_parquet(outcome.data)["text"]:
        wanted = tokenizer(text, truncation=True, max_length=MAX_LENGTH)["input_ids"]
        assert encoded(outcome.model, text)["input_ids"] == wanted
        assert wanted[0] == tokenizer.cls_token_id and wanted[-1] == tokenizer.sep_token_id


def special_ids_only_at_the_ends(outcome, _):
    tokenizer = AutoTokenizer.from_pretrained(outcome.model)
    texts = [*pd.read_parquet(outcome.data)["text"], "w1 <pad> w2", "</s>", "<s>w1</s></s>w2"]
    for text in texts:
        ids = encoded(outcome.model, text)["input_ids"]
        assert (ids[0], ids[-1]) == (tokenizer.bos_token_id, tokenizer.eos_token_id), text
        assert not set(ids[1:-1]) & {0, 1, 2}, (text, ids)


def from_its_folder(outcome, _):
    manifest = (outcome.model / "manifest.json").read_text()
    assert "34-known-model-from-folder" in manifest and "google-bert" not in manifest


EXPECTED = {
    "01-flaubert-layers": either(refused("layers"), runs(exact())),
    "02-deberta-conv": either(refused(("convolution", "layer")), runs(exact())),
    "03-tsv-quotes-merge-rows": either(refused("toy.tsv", "line", "quote"), runs(rows(60))),
    "04-pad-ids-differ": runs(pads_with(0), same_history_in_other_batches, exact()),
    "05-fnet-no-mask": either(refused(("padding", "mask")), runs(same_history_in_other_batches)),
    "06-tokenizer-without-a": runs(put_as_the_tokenizer_puts_it, exact()),
    "07-html-strike-through": runs(special_ids_only_at_the_ends, exact(encode=encoded)),
    "08-nan-scores": refused("toy_train.csv", "nan", ("row", "line")),
    "09-json-key-twice": refused("d.jsonl", "answer", ("line", "row")),
    "10-llama3-eos-list": runs(same_history_in_other_batches, exact()),
    "11-t5": refused("t5", "encoder-decoder"),
    "12-squeezebert-late": either(refused("SqueezeBert"), runs(exact())),
    "13-xlnet-minus-one": either(refused("XLNet", without=["at most -1"]), runs(exact())),
    "14-roberta-two-positions": refused("64", "max_length"),
    "15-remote-code": refused("custom code", "isn't run", without=["[y/N]"]),
    "16-zip-password": refused("d.zip", ("password", "encrypted")),
    "16-zip-torn": refused("d.zip", ("torn", "damaged", "whole", "broken")),
    "17-dollar-in-label": runs(),
    "20-json-array": either(refused("d.json", at_most=500), runs(rows(3000))),
    "21-empty-header-cells": either(refused("toy_train.csv", "name"), runs(rows(60))),
    "22-bert-without-pooler": either(refused("pooler", "save"), runs(notes("pooler"), exact())),
    "23-tokenizer-without-vocabulary": either(
        refused("tokenizer", without=["save the model's tokenizer into the folder"]),
        runs(exact(r"canine\.encoder\.layer\.(\d+)\.")),
    ),
    "24-gemma3-multimodal": refused(("multimodal", "image"), "support"),
    "25-mamba": refused("mamba", "sequence classifier"),
    "27-pickled-objects": refused("pytorch_model.bin", "safetensors"),
    "28-shard-missing": refused("model-00002-of-00006.safetensors", "28-shard-missing/model"),
    "29-quantised": refused("quantised", "fine-tuned"),
    "30-bom-and-named-encoding": runs(rows(60)),
    "31-parquet-column-twice": refused("d.parquet", "twice", without=["Fetch or write it again"]),
    "33-class-without-true-example": either(
        refused("no", "true"), runs(says("class no", "θ_O has no other example"))
    ),
    "34-known-model-from-folder": runs(from_its_folder, exact()),
}
AGAIN = {  # the same with another setting, for comparison
    "04-pad-ids-differ+one-by-one": {"evaluation_batch_size": 1},
    "05-fnet-no-mask+one-by-one": {"evaluation_batch_size": 1},
    "10-llama3-eos-list+one-by-one": {"evaluation_batch_size": 1},
    "14-roberta-two-positions+100": {"data": {"max_length": 100}},
}
EXPECTED["14-roberta-two-positions+100"] = EXPECTED["14-roberta-two-positions"]


# --- running them --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """A function from a case's name to what its command left behind; all are run at once."""
    folder = tmp_path_factory.mktemp("cases")
    commands = [
        command(name, folder / name, AGAIN.get(name, {}))
        for name in [*EXPECTED, *(set(AGAIN) - set(EXPECTED))]
    ]
    (folder / "commands.json").write_text(json.dumps(commands))
    program = [warm.python(), str(Path(__file__).with_name("in_process.py"))]
    subprocess.run(
        [*program, str(folder / "commands.json"), str(folder / "results.json")],
        env=surroundings(),
        check=True,
        timeout=1800,
    )
    results = json.loads((folder / "results.json").read_text())
    return lambda name: Outcome(name, results, folder / name)


def command(name, folder, config):
    """A case's command, with its results and resources in a folder of the test."""
    said = (CASES / name.partition("+")[0] / "case.md").read_text()
    configfile, target = COMMAND.search(said).groups()
    _, _, _, below = target.split("/", 3)
    places = {"results_dir": str(folder / "results"), "resources_dir": str(folder / "resources")}
    return {
        "name": name,
        "folder": str(ROOT),
        "snakefile": str(ROOT / "Snakefile"),
        "configfile": configfile,
        "config": places | config,
        "target": str(folder / "results" / below),
    }


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_case(name, outcome):
    EXPECTED[name](outcome(name), outcome)


@pytest.mark.parametrize("name", ["18-module", "19-other-folder"])
def test_way_to_run(name, tmp_path):
    """These commands copy files into the clone, so each gets a clone of its own."""
    copy_workflow(tmp_path / "clone")
    (tmp_path / "shared").symlink_to(CASES.parent, target_is_directory=True)
    said = OWN_CLONE.search((CASES / name / "case.md").read_text())[1]
    done = subprocess.run(
        ["bash", "-c", said], cwd=tmp_path / "clone", env=surroundings(), capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "retrieve_task" in done.stdout and "perturb_task" in done.stdout


def test_every_case_has_an_expectation():
    known = {name for name in EXPECTED if "+" not in name} | {"18-module", "19-other-folder"}
    assert set(NAMES) == known
