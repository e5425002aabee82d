"""A tiny study: a random two-layer BERT with a tokenizer of its own, on made-up sentences."""

import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from compileall import compile_dir
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch
import yaml
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

import warm
from memloc.store.fingerprint import fingerprint

ROOT = Path(__file__).resolve().parents[2]
WORDS = [f"w{i}" for i in range(40)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
N_LAYERS = 2


OWN = ("workflow", "rules", "profiles", "envs", "Snakefile", "config.yaml")


def copy_workflow(folder: Path) -> Path:
    """The workflow's own files in a folder that tests may edit."""
    _copy(_ready_workflow(), folder)
    return folder


@cache
def _ready_workflow() -> Path:
    """The workflow with its bytecode and what a plan keeps of its code, as all copies have them.

    Its figures are coarse, and their letters are shapes: files of a fraction of the time.
    """
    folder = Path(tempfile.mkdtemp(prefix="workflow-"))
    _copy(ROOT, folder)
    style = folder / "workflow/memloc/figures/style.py"
    text = style.read_text().replace('"savefig.dpi": 300', '"savefig.dpi": 50')
    style.write_text(text.replace('"pdf.fonttype": 42', '"pdf.fonttype": 3'))
    compile_dir(folder / "workflow", quiet=1)
    package = folder / "workflow/memloc"
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    for script in [*package.rglob("*.py"), *package.with_name("scripts").glob("*.py")]:
        fingerprint(script=script, package=package)
    sys.dont_write_bytecode = before
    return folder


def copy_folder(source: Path, folder: Path, **how) -> None:
    """A folder's copy that tests may edit; bytecode, which is only ever replaced, is linked."""

    def copy(file: str, target: str) -> None:
        with suppress(OSError):  # on another disk
            if "__pycache__" in file:
                return os.link(file, target)
        shutil.copy2(file, target)

    shutil.copytree(source, folder, symlinks=True, copy_function=copy, **how)


def _copy(source: Path, folder: Path) -> None:
    leave_out = ("results", "*.pyc.*", *(["__pycache__"] if source == ROOT else []))
    for path in map(source.joinpath, OWN):
        if path.is_dir():
            ignored = shutil.ignore_patterns(*leave_out)
            copy_folder(path, folder / path.name, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy2(path, folder / path.name)


def write_model(folder: Path, layers: int = N_LAYERS) -> None:
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
        num_hidden_layers=layers,
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


def write_study(folder: Path, examined: bool = False, **changes) -> Path:
    """A copy of the workflow with a study of seconds; `study.yaml` holds its configuration.

    examined: its model has been retrieved, and has passed its exam, which takes seconds.
    """
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
        "probing": {"seeds": [1, 2], "epochs": 10, "choose_after": 5},
        "generalisation": {"halves": 2, "splits": "pairs", "epochs": 2, "learning_rate": 0.01},
        "threads": 1,
        "save_minutes": 0,
        **changes,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    if examined:
        copy_folder(examined_model(), folder / "resources")
    return folder


@cache
def examined_model() -> Path:
    """A folder of resources with the model that every study writes."""
    folder = write_study(Path(tempfile.mkdtemp(prefix="examined-")))
    snakemake(folder, "resources/models/tiny")
    return folder / "resources"


SNAKEMAKE = ("python", "-m", "snakemake")
COMMAND = (*SNAKEMAKE, "--configfile", "study.yaml")
PATIENCE = 1800  # seconds for what takes less than one minute on an idle machine


def surroundings(**environment: str) -> dict[str, str]:
    """The environment of a study's driver."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **environment}


def snakemake(
    folder: Path,
    *arguments: str,
    check: bool = True,
    command: tuple[str, ...] = COMMAND,
    **environment: str,
) -> subprocess.CompletedProcess:
    """Run Snakemake in `folder` on the tiny study; on failure show what it said.

    Driver and jobs are forks of a Python that is warm.
    """
    command = [warm.python(), *command[1:], "--cores", "2", "--show-failed-logs", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=surroundings(**environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)}\n{done.stdout[-6000:]}")
    return done


# Snakemake in a Python of its own, which starts its scripts with another.
DRIVER = "import sys; sys.executable = sys.argv.pop(1); from snakemake.cli import main; main()"


def start(
    folder: Path, *arguments: str, said: Path | None = None, **environment: str
) -> subprocess.Popen:
    """A driver in a process group of its own; what it says goes to `said`, else `driver.log`.

    It is a process that can be killed; its jobs are forks of a Python that is warm.
    """
    with open(said or folder / "driver.log", "w") as log:
        return subprocess.Popen(
            [sys.executable, "-c", DRIVER, warm.python(), *COMMAND[3:], "--cores", "1", *arguments],
            cwd=folder,
            env=surroundings(**environment),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def wait_for(
    condition: Callable[[], object], driver: subprocess.Popen, seconds: float = PATIENCE
) -> None:
    """Wait for what a driver is to bring about; AssertionError when it ends, or it takes long."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert driver.poll() is None or condition(), "the driver has ended"
        assert time.monotonic() < give_up, f"not in {seconds:g} s"
        time.sleep(0.02)


def holding(folder: Path, **moments: tuple[str, int]) -> dict[str, str]:
    """Environment of a driver that is held, or whose jobs are, at certain moments.

    Each is the pattern of a path, and which opening of it by one process is meant: see hold.py.
    """
    shutil.copy(Path(__file__).with_name("hold.py"), folder / "workflow/sitecustomize.py")
    for name in moments:
        (folder / f"gate-{name}").touch()
    return {"HOLD_AT": json.dumps(moments), "PYTHONPATH": str(folder / "workflow")}


def wait_until_held(folder: Path, name: str, driver: subprocess.Popen) -> None:
    """Wait until a driver, or a job of its, is held at a moment."""
    wait_for((folder / f"held-{name}").exists, driver)


def let_go(folder: Path, name: str) -> None:
    """Let whoever is held at a moment go on, and hold nobody there any more."""
    (folder / f"gate-{name}").unlink()


def planned(
    folder: Path, *targets: str, before: tuple[str, ...] = (), command: tuple[str, ...] = COMMAND
) -> dict[str, int]:
    """How many jobs of each rule a dry run plans; `before` the targets stand other options."""
    quiet = ("--dry-run", "--quiet", "rules")
    text = snakemake(folder, *quiet, *before, "--", *targets, command=command).stdout
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
