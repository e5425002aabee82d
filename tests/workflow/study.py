"""A tiny study: a random two-layer BERT with a tokenizer of its own, on made-up sentences."""

import csv
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import torch
import yaml
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

ROOT = Path(__file__).resolve().parents[2]
WORDS = [f"w{i}" for i in range(40)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
N_LAYERS = 2


def copy_workflow(folder: Path) -> Path:
    """The workflow's own files in a folder that tests may edit."""
    ignored = shutil.ignore_patterns("__pycache__", "results")
    for name in ("workflow", "rules", "profiles"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copytree(ROOT / "envs", folder / "envs")
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def write_model(folder: Path) -> None:
    """A checkpoint folder that from_pretrained reads."""
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=N_LAYERS,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=32,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)  # studies of one test start from the same weights
        BertForSequenceClassification(config).save_pretrained(folder)


def write_task(folder: Path, name: str = "toy", classes: tuple[str, ...] = ("yes", "no")) -> None:
    """A task file with its CSV files: the first word tells the class."""
    draw = random.Random(name)
    (folder / name).mkdir(parents=True)
    for split, count in [("train", 60), ("validation", 24)]:
        with open(folder / name / f"{split}.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["text", "answer"])
            for number in range(count):
                label = number % len(classes)
                words = [WORDS[label], *draw.choices(WORDS[5:], k=draw.randint(3, 8))]
                rows.writerow([" ".join(words), classes[label]])
    task = {
        "label": name.capitalize(),
        "category": "nlu",
        "source": {"files": {s: f"{name}/{s}.csv" for s in ("train", "validation")}},
        "columns": {"text": ["text"], "label": "answer"},
        "labels": list(classes),
        "split": {"train": "train", "heldout": "validation"},
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(task, sort_keys=False))


def write_study(folder: Path, **changes) -> Path:
    """A copy of the workflow with a study of seconds; `study.yaml` holds its configuration."""
    copy_workflow(folder)
    write_model(folder / "tiny-bert")
    write_task(folder / "my-tasks")
    study = {
        "tasks": ["toy"],
        "task_folders": ["my-tasks"],
        "models": ["tiny"],
        "model_sources": {"tiny": {"folder": "tiny-bert"}},
        "model_seeds": [1],
        "stages": ["centroids", "generalisation"],
        "data": {"max_length": 16},
        "training": {"epochs": 3, "learning_rate": 0.01, "memorised_above": 0.6},
        "generalisation": {"halves": 2, "splits": "pairs", "epochs": 2, "learning_rate": 0.01},
        "threads": 1,
        **changes,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    return folder


def snakemake(
    folder: Path, *arguments: str, check: bool = True, **environment: str
) -> subprocess.CompletedProcess:
    """Run Snakemake in `folder` on the tiny study; on failure show what it said."""
    command = [
        *(sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "study.yaml"),
        "--show-failed-logs",
        *arguments,
    ]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)}\n{done.stdout[-6000:]}")
    return done


def planned(folder: Path, *targets: str, before: tuple[str, ...] = ()) -> dict[str, int]:
    """How many jobs of each rule a dry run plans; `before` the targets stand other options."""
    text = snakemake(folder, "--dry-run", "--quiet", "rules", *before, "--", *targets).stdout
    counts, listing = {}, False
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["job", "count"]:
            listing = True
        elif listing and len(words) == 2 and words[1].isdigit():
            counts[words[0]] = int(words[1])
        elif listing and not words:
            break
    counts.pop("total", None)
    return counts


def provenance(path: Path) -> dict:
    return json.loads(path.read_text())
