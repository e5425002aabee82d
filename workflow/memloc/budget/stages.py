"""The cost model: one entry per stage of the workflow, in work rather than in seconds.

Work is floating-point operations, calls of a layer (each has a price of its own at batch 8) and
seconds that don't hang on the device. A token costs a layer 2 x its parameters for the dense
parts and 4 x length x width for attention; a backward pass costs two forward ones. Rules bring
their entry in STAGES under their own name. Planning imports this: no torch, no pandas.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memloc.budget.rates import Rate
from memloc.budget.sizes import ModelSize, Sizes, TaskSize
from memloc.study.control import pair_of
from memloc.study.techniques import subject_rules
from memloc.windows import Window, all_windows, parse_windows

START = 4.0  # seconds to import torch and to load a model; a cold network disk takes longer
SCRIPT = 1.5  # seconds to start a script that needs neither
MAIN, RETRAINING, CONTROL = "main", "retraining", "control"  # entries of the paper's account
SMALL = 20e3  # bytes of a table
RECIPES = ("training", "retraining", "generalisation", "probing")  # sections of the configuration
HOST_MB = 3000  # of a process with torch and a device's libraries
# Windows trained side by side: parameters that fit a GPU of 80 GB at 16 bytes each.
LARGEST_GROUP = 4.2e9
# Probes: shares of the rows they train on, label kinds, and calls of a layer that a step is worth.
PROBE_ROWS, PROBE_KINDS, PROBE_CALLS = 0.7, 3, 3
MIXTURES = 3  # centroid analysis: theta_M2, and with theta_O's bottom and top half
CHECKPOINTS = ("final", "memorised")


@dataclass(frozen=True)
class Work:
    """flops: floating-point operations; calls: of a layer, forward or backward; seconds: rest."""

    flops: float = 0.0
    calls: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: "Work") -> "Work":
        return Work(
            self.flops + other.flops, self.calls + other.calls, self.seconds + other.seconds
        )

    def __mul__(self, times: float) -> "Work":
        return Work(self.flops * times, self.calls * times, self.seconds * times)

    def duration(self, rate: Rate) -> float:
        """Seconds on a device."""
        return self.flops / rate.flops + self.calls * rate.call + self.seconds


@dataclass(frozen=True)
class Facts:
    """What a job's cost hangs on: its wildcards, and sizes and settings of what they name.

    recipe: that of a finished job, which goes before the configuration's.
    """

    wildcards: Mapping[str, str]
    sizes: Sizes
    recipe: Mapping[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> TaskSize:
        """The job's task."""
        return self.sizes.task(self.wildcards["task"], self.wildcards.get("model"))

    @property
    def model(self) -> ModelSize:
        """The job's model."""
        return self.sizes.model(self.wildcards["model"])

    @property
    def settings(self) -> Mapping[str, Any]:
        """The configuration as it holds for the job's model, and for the job itself."""
        found = self.sizes.settings(self.wildcards.get("model"))
        if not self.recipe:
            return found
        own = {section: {**found[section], **self.recipe} for section in RECIPES}
        control = {**found["control"], "training": self.recipe}
        return {**found, **own, "control": control}


@dataclass(frozen=True)
class Stage:
    """What a rule's jobs cost.

    work: of one job; bytes_of: bytes of an output by its file name; scratch: bytes held while
    it runs; megabytes: of host memory; account: its entry in the paper's own account.
    """

    work: Callable[[Facts], Work]
    bytes_of: Callable[[Facts, str], float] = lambda facts, name: SMALL
    scratch: Callable[[Facts], float] = lambda facts: 0.0
    megabytes: Callable[[Facts], float] = lambda facts: 1000.0
    on_device: bool = False
    account: str | None = None


# --- passes through a model ----------------------------------------------------------------


def token_flops(model: ModelSize, length: float) -> float:
    """Operations of one layer for one token among `length` of its input; forward only."""
    return 2 * model.layer_parameters + 4 * length * model.width


def passes(facts: Facts, rows: float, batch: int, layers: float, mixed: bool = False) -> Work:
    """`rows` inputs through `layers` layers, forward; `mixed` batches are padded, sorted not."""
    length = facts.task.padded(batch) if mixed else facts.task.mean
    flops = rows * length * layers * token_flops(facts.model, length)
    return Work(flops, math.ceil(rows / batch) * layers)


def prediction(facts: Facts, rows: float) -> Work:
    """`rows` inputs through the whole model in large batches sorted by length."""
    return passes(facts, rows, facts.settings["evaluation_batch_size"], facts.model.layers)


def sweep_batch(facts: Facts, section: str) -> int:
    """Inputs in a batch of at most `batch_tokens` tokens, as that section of the settings says."""
    return max(1, int(facts.settings[section]["batch_tokens"] / facts.task.mean))


def window_layers(windows: Iterable[Window], layers: int) -> tuple[int, int, int]:
    """Layers passed when windows run side by side: prefix they share, their own, later ones."""
    windows = list(windows)
    prefix = max(start for start, _ in windows) - 1
    opened = sum(end - start + 1 for start, end in windows)
    return prefix, opened, sum(layers - end for _, end in windows)


def swapped_layers(layers: int) -> int:
    """Layer passes of one sweep over all swapped windows: 376 for 12 layers."""
    shared = layers * (layers + 1) // 2
    return layers + shared + (layers - 1) * layers * (layers + 1) // 6


# --- stages ----------------------------------------------------------------------------------


def training(facts: Facts, backward: int = 2) -> Work:
    """Fine-tuning with an evaluation on training and validation rows after every epoch."""
    recipe, task = facts.settings["training"], facts.task
    step = passes(facts, task.train, recipe["batch_size"], facts.model.layers, mixed=True)
    epoch = step * (1 + backward) + prediction(facts, task.train + task.validation)
    return epoch * recipe["epochs"] + Work(seconds=START)


def control_training(facts: Facts) -> Work:
    """Batches of both tasks: the auxiliary one trains all layers, the other those of its pair."""
    control = facts.settings["control"]
    recipe = {**facts.settings["training"], **control["training"]}
    other = Facts({**facts.wildcards, "task": control["auxiliary"]}, facts.sizes)
    layers, pair = facts.model.layers, facts.wildcards.get("pair")
    # gradients pass through all layers from the pair upwards, and its weights have some too
    backward = layers - pair_of(pair)[0] + 3 if pair else 0
    epoch = Work()
    for part, passed in ((facts, layers + backward), (other, 3 * layers)):
        epoch += passes(part, part.task.train, recipe["batch_size"], passed, mixed=True)
    epoch += prediction(facts, facts.task.train + facts.task.validation)
    epoch += prediction(other, other.task.validation)
    return epoch * recipe["epochs"] + Work(seconds=2 * START)


def head_training(facts: Facts) -> Work:
    """The same with frozen layers: no backward pass goes through them."""
    return training(facts, backward=0)


def half_training(facts: Facts) -> Work:
    """Fine-tuning on half of the training rows, then one prediction of all of them."""
    recipe, task = facts.settings["generalisation"], facts.task
    step = passes(facts, task.train / 2, recipe["batch_size"], facts.model.layers, mixed=True)
    return step * 3 * recipe["epochs"] + prediction(facts, task.train) + Work(seconds=START)


def swapping(facts: Facts) -> Work:
    """All windows in one sweep over the layers."""
    task = facts.task
    every = facts.settings["swapping"]["clean_examples"] == "all"
    rows = task.train if every else 2 * task.noisy
    layers = facts.model.layers
    sweep = passes(facts, rows, sweep_batch(facts, "swapping"), swapped_layers(layers))
    # states of a kind share a call: three a layer
    return Work(sweep.flops, sweep.calls * 3 * layers / swapped_layers(layers), 2 * START)


def patching(facts: Facts) -> Work:
    """Both models once, and all windows from their ends on."""
    layers = facts.model.layers
    passed = 2 * layers + window_layers(all_windows(layers), layers)[2]
    whole = swapping(facts)
    share = passed / swapped_layers(layers)
    return Work(whole.flops * share, whole.calls, whole.seconds)


def retraining(facts: Facts) -> Work:
    """The windows of a job side by side: own layers are trained, later ones passed through."""
    recipe, task, model = facts.settings["retraining"], facts.task, facts.model
    windows = parse_windows(facts.wildcards.get("windows", "all"), model.layers)
    prefix, opened, closed = window_layers(windows, model.layers)
    rows = max(1, task.train - 2 * task.noisy)
    layers = prefix + 3 * opened + 2 * closed
    epoch = passes(facts, rows, recipe["batch_size"], layers, mixed=True)
    calls = epoch.calls * 6 * model.layers / layers  # windows share their calls
    end = prediction(facts, 2 * task.noisy) * ((prefix + opened + closed) / model.layers)
    return Work(epoch.flops, calls) * recipe["epochs"] + end + Work(seconds=2 * START)


def gradients(facts: Facts) -> Work:
    """Noisy and as many clean examples, forward and backward, through theta_M1 and theta_F."""
    batch = sweep_batch(facts, "gradients")
    return passes(facts, 2 * facts.task.noisy, batch, 3 * 2 * facts.model.layers) + Work(
        seconds=2 * START
    )


def probing(facts: Facts) -> Work:
    """States of all layers in one pass, then every probe of every layer side by side."""
    recipe, task, model = facts.settings["probing"], facts.task, facts.model
    # layers 0..L of theta_M2, and layer 1 of theta_F
    probes = (model.layers + 2) * PROBE_KINDS * len(recipe["seeds"])
    rows, hidden = PROBE_ROWS * task.train * recipe["epochs"], recipe["hidden"]
    flops = 6 * rows * probes * (model.width * hidden + hidden * hidden)
    training_probes = Work(flops, PROBE_CALLS * rows / recipe["batch_size"])
    return prediction(facts, 2 * task.train) + training_probes + Work(seconds=2 * START)


def centroids(facts: Facts) -> Work:
    """All training rows through theta_M2 and through it with half of theta_O's layers: the top
    half shares its lower layers. All pairs of classes then, a layer at a time."""
    task, layers = facts.task, facts.model.layers
    batch = sweep_batch(facts, "centroids")
    pairs = task.classes * (task.classes - 1)
    places = Work(
        seconds=MIXTURES * layers * (pairs * 1e-3 + task.train * facts.model.width * 2e-8)
    )
    return passes(facts, task.train, batch, 2.5 * layers) + places + Work(seconds=2 * START)


def weight_change(facts: Facts) -> Work:
    """Three models read, and compared at some 100 MB/s."""
    return Work(seconds=START + 3 * checkpoint(facts) / 1e8)


def model_retrieval(facts: Facts) -> Work:
    """A download at 30 MB/s, and one look at the model."""
    return Work(seconds=START + checkpoint(facts) / 30e6)


def task_table(facts: Facts) -> Work:
    """Every task tokenised by every model, some 10,000 inputs a second."""
    config = facts.sizes.config
    rows = sum(facts.sizes.task(name).train for name in config["tasks"])
    return Work(seconds=START + rows * len(config["models"]) / 1e4)


def summarised_examples(facts: Facts) -> Work:
    """A table of every noisy example of every run."""
    return Work(seconds=SCRIPT + all_examples(facts, "examples.tsv") / 2e6)


def all_examples(facts: Facts, name: str) -> float:
    """Bytes of the table of all noisy examples of all runs, some 50 each."""
    config = facts.sizes.config
    runs = sum(len(facts.sizes.settings(model)["model_seeds"]) for model in config["models"])
    noisy = sum(facts.sizes.task(task).noisy for task in config["tasks"])
    return SMALL + 50 * noisy * runs * (name == "examples.tsv")


def constant(seconds: float) -> Callable[[Facts], Work]:
    """A job whose time hardly hangs on anything."""
    return lambda facts: Work(seconds=seconds)


# --- bytes -----------------------------------------------------------------------------------


def checkpoint(facts: Facts) -> float:
    """Bytes of a model on disk, float32."""
    return 4 * facts.model.parameters + 4e6


def model_bytes(facts: Facts, name: str) -> float:
    """Of a retrieved or trained model's folder; other outputs are small."""
    folder = name in CHECKPOINTS or name == facts.wildcards["model"]
    return checkpoint(facts) if folder else SMALL


def data_bytes(facts: Facts, name: str) -> float:
    """Of a task's table, some 3 bytes a token."""
    task = facts.task
    rows = task.train + task.validation + task.test
    return SMALL + 3 * rows * task.mean if name.endswith(".parquet") else SMALL


def example_bytes(facts: Facts, name: str) -> float:
    """Of a table with a bit or a byte per noisy example and window."""
    windows = len(parse_windows(facts.wildcards.get("windows", "all"), facts.model.layers))
    return SMALL + facts.task.noisy * windows / 4 if name.endswith(".parquet") else SMALL


def half_state(facts: Facts) -> float:
    """Weights and moments of the epoch saved and the one before; there is no theta_M1."""
    return 24 * facts.model.stack_parameters


def half_bytes(facts: Facts, name: str) -> float:
    """Of a table with a few numbers per training example; as text they take more."""
    return SMALL + facts.task.train * (100 if name.endswith(".tsv") else 10)


def training_state(facts: Facts) -> float:
    """Weights and moments of the epoch saved and the one before, theta_M1, epochs kept."""
    kept = len(facts.settings["training"]["keep_epochs"])
    return (28 + 4 * kept) * facts.model.stack_parameters


def head_state(facts: Facts) -> float:
    """The same of a head."""
    return 28 * facts.model.width * (facts.model.width + facts.task.classes)


def training_memory(facts: Facts) -> float:
    """Host MB: weights, gradients and moments, as if all of it stayed on the host."""
    model = facts.model
    length = facts.task.padded(facts.settings["training"]["batch_size"])
    state = 4 * model.parameters + 12 * model.stack_parameters
    # some 40 numbers of the layer's width per token are kept for the backward pass
    rows = facts.settings["training"]["batch_size"]
    kept = 4 * 40 * rows * length * model.width * model.layers
    return HOST_MB + 1.3 * (state + kept) / 1e6


def window_parameters(facts: Facts) -> float:
    """Parameters that a job's windows own, as many as are trained at once."""
    windows = parse_windows(facts.wildcards.get("windows", "all"), facts.model.layers)
    opened = window_layers(windows, facts.model.layers)[1]
    return min(LARGEST_GROUP, opened * facts.model.layer_parameters)


def window_state(facts: Facts) -> float:
    """Weights and moments of a job's windows, of the epoch saved and the one before."""
    return 2 * 12 * window_parameters(facts)


def window_memory(facts: Facts) -> float:
    """Host MB: moments pass through it when they are saved. On a CPU, fewer windows at once."""
    return HOST_MB + 1.2 * 8 * window_parameters(facts) / 1e6


def state_bytes(facts: Facts) -> float:
    """Pooled states of all layers, float32, of two models."""
    return 2 * 4 * facts.task.train * facts.model.layers * facts.model.width


def mixture_bytes(facts: Facts) -> float:
    """Pooled states of all layers, float32, of every mixture."""
    return MIXTURES * 4 * facts.task.train * facts.model.layers * facts.model.width


def models_memory(count: int) -> Callable[[Facts], float]:
    """Host MB of a job that holds `count` models and no gradients."""
    return lambda facts: HOST_MB + 1.3 * count * checkpoint(facts) / 1e6 + 1000


RUN = dict(bytes_of=model_bytes, megabytes=training_memory, on_device=True, account=MAIN)
CONTROL_RUN = {**RUN, "account": CONTROL}
SWEEP = Stage(swapping, example_bytes, megabytes=models_memory(3), on_device=True)
STAGES: dict[str, Stage] = {
    "retrieve_task": Stage(constant(20), bytes_of=data_bytes, megabytes=lambda facts: 2000),
    "perturb_task": Stage(constant(SCRIPT + 1), bytes_of=data_bytes),
    "task_table": Stage(task_table, megabytes=lambda facts: 3000),
    "retrieve_model": Stage(model_retrieval, bytes_of=model_bytes, megabytes=models_memory(2)),
    "train_original": Stage(training, scratch=training_state, **RUN),
    "train_perturbed": Stage(training, scratch=training_state, **RUN),
    "train_frozen": Stage(head_training, scratch=head_state, **RUN),
    "control_original": Stage(control_training, scratch=training_state, **CONTROL_RUN),
    "control_perturbed": Stage(control_training, scratch=training_state, **CONTROL_RUN),
    "control_frozen": Stage(control_training, scratch=training_state, **CONTROL_RUN),
    "summarise_control": Stage(constant(SCRIPT + 1)),
    "summarise_control_training": Stage(constant(SCRIPT + 1)),
    "summarise_variants": Stage(constant(SCRIPT + 1)),
    "split_half": Stage(constant(SCRIPT), bytes_of=half_bytes),
    "train_half": Stage(
        half_training,
        bytes_of=half_bytes,
        scratch=half_state,
        megabytes=training_memory,
        on_device=True,
    ),
    "gather_halves": Stage(constant(SCRIPT + 1), bytes_of=half_bytes),
    "summarise_generalisation": Stage(constant(SCRIPT + 1)),
    "swap": SWEEP,
    "swap_component": SWEEP,
    "rewind_pretrained": SWEEP,
    "rewind_memorised": SWEEP,
    "patch": Stage(patching, example_bytes, megabytes=models_memory(3), on_device=True),
    "weight_change": Stage(weight_change, megabytes=models_memory(3)),
    "retrain": Stage(
        retraining,
        example_bytes,
        scratch=window_state,
        megabytes=window_memory,
        on_device=True,
        account=RETRAINING,
    ),
    "gather_retrained": Stage(constant(SCRIPT), example_bytes),
    "gradients": Stage(gradients, megabytes=models_memory(5), on_device=True),
    "probe": Stage(probing, scratch=state_bytes, megabytes=models_memory(3), on_device=True),
    "centroids": Stage(
        centroids, scratch=mixture_bytes, megabytes=models_memory(3), on_device=True
    ),
    "summarise": Stage(constant(SCRIPT + 1)),
    "locate_examples": Stage(constant(SCRIPT)),
    "summarise_examples": Stage(summarised_examples, bytes_of=all_examples),
    "summarise_components": Stage(constant(SCRIPT + 1)),
    "summarise_training": Stage(constant(SCRIPT + 1)),
    "summarise_events": Stage(constant(SCRIPT + 1)),
    "summarise_centroids": Stage(constant(SCRIPT + 1)),
    "correlate": Stage(constant(SCRIPT + 5)),
    "summarise_progression": Stage(constant(SCRIPT + 3)),
    "figures": Stage(constant(SCRIPT + 1)),
    "report": Stage(constant(SCRIPT + 5), bytes_of=lambda facts, name: 20e6),
    "budget": Stage(constant(SCRIPT)),
}
STAGES |= {rule.name: STAGES[rule.costs] for rule in subject_rules() if rule.name not in STAGES}


def stage_of(rule: str) -> str | None:
    """The stage a rule belongs to: its own name, or "figures"; None without an entry."""
    name = "figures" if rule.startswith("figure_") else rule
    return name if name in STAGES else None


def on_device(stage: str) -> bool:
    """Whether a stage's time hangs on the device."""
    return stage in STAGES and STAGES[stage].on_device
