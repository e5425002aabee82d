"""What a job has to compute: steps on a device, and seconds that hang on none.

A token costs a layer 2 x its parameters for the dense parts and 4 x length x width for attention; a
backward pass costs two forward ones. Planning imports this: no torch, no pandas.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memloc.budget.adapters import backward, trained_parameters
from memloc.budget.parts import Parts
from memloc.budget.sizes import ModelSize, Sizes, TaskSize
from memloc.budget.speed import (
    COUNTED_LAYERS,
    FORWARD,
    PROBE,
    SAVING,
    STEP,
    WINDOWS,
    Rate,
    Steps,
)
from memloc.groups import MOMENTS, WindowCost
from memloc.study.control import pair_of
from memloc.study.params import lora_of
from memloc.windows import Window, all_windows, parse_windows

START = 4.0  # seconds to import torch and to load a model; a cold network disk takes longer
SCRIPT = 1.5  # seconds to start a script that needs neither
SMALL = 20e3  # bytes of a table
RECIPES = ("training", "retraining", "generalisation", "probing")  # sections of the configuration
PROBE_ROWS, PROBE_KINDS = 0.7, 3  # of probes: shares of the rows they train on, label kinds
# Numbers that a token leaves in a layer for the backward pass, in multiples of the layer's width,
# and of that times the tokens of its input: as localise.retrain's measure_cost measures a layer of
# BERT (heads 64 wide, dropout on), for inputs of 32 to 448 tokens.
KEPT, KEPT_OF_ATTENTION = 20, 2 / 64
MIXTURES = 3  # centroid analysis: theta_M2, and with theta_O's bottom and top half


@dataclass(frozen=True)
class Saves:
    """Partial state of so many bytes, saved after an epoch once `seconds` have passed."""

    size: float
    epochs: int
    seconds: float

    def count(self, lasting: float) -> int:
        """How often it is saved while all epochs take `lasting` seconds; the last one isn't."""
        if not self.epochs or not lasting:
            return 0
        epochs_between = max(1, math.ceil(self.seconds * self.epochs / lasting))
        return (self.epochs - 1) // epochs_between


@dataclass(frozen=True)
class Work:
    """Steps on a device, seconds that hang on no device, and what is saved meanwhile."""

    steps: tuple[Steps, ...] = ()
    seconds: float = 0.0
    saves: Saves = Saves(0.0, 0, 0.0)

    def __add__(self, other: "Work") -> "Work":
        return replace(self, steps=self.steps + other.steps, seconds=self.seconds + other.seconds)

    def __mul__(self, times: float) -> "Work":
        steps = (replace(s, count=s.count * times, flops=s.flops * times) for s in self.steps)
        return replace(self, steps=tuple(steps), seconds=self.seconds * times)

    @property
    def flops(self) -> float:
        """Floating-point operations of all steps."""
        return sum(steps.flops for steps in self.steps)

    def duration(self, rate: Rate) -> float:
        """Seconds on a device."""
        computing = sum(map(rate.seconds, self.steps))
        return computing + self.saves.count(computing) * self.saves.size / SAVING + self.seconds

    def saved(self, rate: Rate) -> float:
        """Bytes of partial state that are written on a device."""
        return self.saves.count(sum(map(rate.seconds, self.steps))) * self.saves.size


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
        made = {"moments": "float32", **self.recipe}  # as it was before there was another type
        own = {section: {**found[section], **made} for section in RECIPES}
        control = {**found["control"], "training": made}
        return {**found, **own, "control": control}

    @property
    def backward(self) -> float:
        """What a backward pass costs, in forward passes."""
        return backward(self.model, self.settings)


# --- passes through a model ----------------------------------------------------------------


def token_flops(model: ModelSize, length: float) -> float:
    """Operations of one layer for one token among `length` of its input; forward only."""
    return 2 * model.layer_parameters + 4 * length * model.width


def row_flops(facts: Facts, length: float) -> float:
    """Operations of one layer for an input padded to `length` tokens; forward only.

    Where tokens are packed, linear layers see the real ones alone; attention sees all.
    """
    whole = length * token_flops(facts.model, length)
    if not facts.settings["packed"]:
        return whole
    return whole - max(0.0, length - facts.task.mean) * token_flops(facts.model, 0)


def passes(facts: Facts, rows: float, batch: int, layers: float, mixed: bool = False) -> Steps:
    """`rows` inputs through `layers` layers, forward; `mixed` batches are padded, sorted hardly."""
    length = facts.task.padded(batch) if mixed else facts.task.mean
    flops = rows * layers * row_flops(facts, length)
    packed = mixed and bool(facts.settings["packed"])  # sorted ones have little to leave out
    return Steps(FORWARD, math.ceil(rows / batch), layers, flops, packed=packed)


def training_steps(
    facts: Facts, rows: float, recipe: Mapping[str, Any], passed: float, trained: float
) -> Work:
    """Steps of an epoch on mixed batches; passed: layers, of which a whole step has three a layer.

    trained: parameters that the optimiser moves.
    """
    found = passes(facts, rows, recipe["batch_size"], passed, mixed=True)
    kind, layers = (STEP, passed / 3) if trained else (FORWARD, facts.model.layers)
    if lora_of(facts.settings):  # its backward pass costs less, and launches as much
        layers = facts.model.layers
    short = bool(trained) and is_short(recipe)
    return Work((replace(found, kind=kind, layers=layers, trained=trained, short=short),))


def is_short(recipe: Mapping[str, Any]) -> bool:
    """Whether a recipe has AdamW's moments in bfloat16."""
    return bool(recipe["moments"] != "float32")


def state_bytes_of(recipe: Mapping[str, Any]) -> int:
    """Bytes of a trained parameter in a partial state: its weight and two moments."""
    return 4 + MOMENTS[recipe["moments"]]


def trained_stack(facts: Facts) -> float:
    """Parameters of all layers that fine-tuning trains."""
    return facts.model.layers * trained_parameters(facts.model, facts.settings)


def saving(facts: Facts, parameters: float, recipe: Mapping[str, Any]) -> Saves:
    """Weights and two moments of what is trained, saved as the settings say."""
    size = state_bytes_of(recipe) * parameters
    return Saves(size, recipe["epochs"], 60 * facts.settings["save_minutes"])


def prediction(facts: Facts, rows: float) -> Work:
    """`rows` inputs through the whole model in large batches sorted by length."""
    batch = facts.settings["evaluation_batch_size"]
    return Work((passes(facts, rows, batch, facts.model.layers),))


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


def training(facts: Facts, backward: float | None = None) -> Work:
    """Fine-tuning with an evaluation on training and validation rows after every epoch."""
    backward = facts.backward if backward is None else backward
    recipe, task = facts.settings["training"], facts.task
    passed = (1 + backward) * facts.model.layers
    trained = trained_stack(facts) if backward else 0.0
    epoch = training_steps(facts, task.train, recipe, passed, trained)
    epoch += prediction(facts, task.train + task.validation)
    saves = saving(facts, trained, recipe)
    return replace(epoch * recipe["epochs"], seconds=START, saves=saves)


def control_training(facts: Facts) -> Work:
    """Batches of both tasks: the auxiliary one trains all layers, the other those of its pair."""
    control = facts.settings["control"]
    recipe = {**facts.settings["training"], **control["training"]}
    other = Facts({**facts.wildcards, "task": control["auxiliary"]}, facts.sizes)
    layers, pair = facts.model.layers, facts.wildcards.get("pair")
    whole = trained_stack(facts)
    # gradients pass through all layers from the pair upwards, and its weights have some too
    backward = layers - pair_of(pair)[0] + 1 + 2 * (facts.backward - 1) if pair else 0
    own = (facts, layers + backward, 2 * whole / layers if pair else 0.0)
    epoch = Work()
    for part, passed, trained in (own, (other, (1 + facts.backward) * layers, whole)):
        epoch += training_steps(part, part.task.train, recipe, passed, trained)
    epoch += prediction(facts, facts.task.train + facts.task.validation)
    epoch += prediction(other, other.task.validation)
    saves = saving(facts, whole, recipe)
    return replace(epoch * recipe["epochs"], seconds=2 * START, saves=saves)


def head_training(facts: Facts) -> Work:
    """The same with frozen layers: no backward pass goes through them."""
    return training(facts, backward=0)


def half_training(facts: Facts) -> Work:
    """Fine-tuning on half of the training rows, then one prediction of all of them."""
    recipe, task = facts.settings["generalisation"], facts.task
    passed, trained = (1 + facts.backward) * facts.model.layers, trained_stack(facts)
    epoch = training_steps(facts, task.train / 2, recipe, passed, trained)
    found = epoch * recipe["epochs"] + prediction(facts, task.train)
    return replace(found, seconds=START, saves=saving(facts, trained, recipe))


def losses(facts: Facts) -> Work:
    """One prediction of all training rows."""
    return prediction(facts, facts.task.train) + Work(seconds=START)


def swapping(facts: Facts) -> Work:
    """All windows in one sweep over the layers."""
    task = facts.task
    every = facts.settings["swapping"]["clean_examples"] == "all"
    rows = (task.train if every else 2 * task.noisy) + task.validation
    layers = facts.model.layers
    sweep = passes(facts, rows, sweep_batch(facts, "swapping"), swapped_layers(layers))
    # states of a kind share a call: three a layer
    return Work((replace(sweep, layers=3 * layers),), 2 * START)


def head_swapping(facts: Facts) -> Work:
    """All heads of a layer side by side, from their layer to the top; heads are 64 wide, as a
    rule."""
    layers, whole = facts.model.layers, swapping(facts)
    heads = max(1, facts.model.width // 64)
    passed = layers + heads * layers * (layers + 1) // 2
    sweep = _passing(whole, passed, layers)
    return Work((replace(sweep, layers=layers + layers * (layers + 1) // 2),), whole.seconds)


def patching(facts: Facts) -> Work:
    """Both models once, and all windows from their ends on."""
    layers = facts.model.layers
    passed = 2 * layers + window_layers(all_windows(layers), layers)[2]
    whole = swapping(facts)
    return Work((_passing(whole, passed, layers),), whole.seconds)


def _passing(sweep: Work, passed: float, layers: int) -> Steps:
    """The steps of a sweep over all swapped windows, with other passes of a layer in each."""
    (steps,) = sweep.steps
    return replace(steps, flops=steps.flops * passed / swapped_layers(layers))


def retraining(facts: Facts) -> Work:
    """The windows of a job side by side: own layers are trained, later ones passed through."""
    recipe, task, model = facts.settings["retraining"], facts.task, facts.model
    windows = parse_windows(facts.wildcards.get("windows", "all"), model.layers)
    prefix, opened, closed = window_layers(windows, model.layers)
    rows = max(1, task.train - 2 * task.noisy)
    layers = prefix + (1 + facts.backward) * opened + 2 * closed
    found = passes(facts, rows, recipe["batch_size"], layers, mixed=True)
    trained = opened * trained_parameters(model, facts.settings)
    # windows share their launches, and what doesn't fit at once comes in groups
    parts = Parts(tuple(windows), window_cost(facts), layers)
    epoch = replace(found, kind=WINDOWS, layers=model.layers, trained=trained, parts=parts)
    epoch = replace(epoch, short=is_short(recipe))
    (end,) = prediction(facts, 2 * task.noisy + task.validation).steps
    end = replace(end, flops=end.flops * (prefix + opened + closed) / model.layers)
    saves = saving(facts, trained, recipe)
    return replace(Work((epoch,)) * recipe["epochs"] + Work((end,), 2 * START), saves=saves)


def window_cost(facts: Facts) -> WindowCost:
    """What windows take of the device's memory, with the longest batch there will be."""
    recipe, task, model = facts.settings["retraining"], facts.task, facts.model
    rows, length = recipe["batch_size"], task.padded(task.train)
    kept, states = activations(model, rows, length), 4 * rows * length * model.width
    layer = trained_parameters(model, facts.settings)
    return WindowCost(model.layers, layer, 0, kept, states, recipe["moments"])


def activations(model: ModelSize, rows: float, length: float) -> float:
    """Bytes that a layer keeps of a batch for the backward pass, in float32."""
    return 4 * rows * length * model.width * (KEPT + KEPT_OF_ATTENTION * length)


def gradients(facts: Facts) -> Work:
    """Noisy and as many clean examples, forward and backward, through theta_M1 and theta_F."""
    batch = sweep_batch(facts, "gradients")
    layers = 2 * facts.model.layers
    steps = passes(facts, 2 * facts.task.noisy, batch, (1 + facts.backward) * layers)
    return Work((replace(steps, kind=STEP, layers=layers),), 2 * START)


def probing(facts: Facts) -> Work:
    """States of all layers in one pass, then every probe of every layer side by side."""
    recipe, task, model = facts.settings["probing"], facts.task, facts.model
    # layers 0..L of theta_M2, and layer 1 of theta_F
    probes = (model.layers + 2) * PROBE_KINDS * len(recipe["seeds"])
    rows, hidden = PROBE_ROWS * task.train * recipe["epochs"], recipe["hidden"]
    inner = hidden * hidden * (recipe["hidden_layers"] - 1)
    flops = 6 * rows * probes * (model.width * hidden + inner)
    training_probes = Steps(PROBE, rows / recipe["batch_size"], COUNTED_LAYERS, flops)
    return prediction(facts, 2 * task.train) + Work((training_probes,), 2 * START)


def centroids(facts: Facts) -> Work:
    """All training rows through theta_M2 and through it with half of theta_O's layers: the top
    half shares its lower layers. All pairs of classes then, a layer at a time."""
    task, layers = facts.task, facts.model.layers
    batch = sweep_batch(facts, "centroids")
    pairs = task.classes * (task.classes - 1)
    places = MIXTURES * layers * (pairs * 1e-3 + task.train * facts.model.width * 2e-8)
    return Work((passes(facts, task.train, batch, 2.5 * layers),), places + 2 * START)


def checkpoint(facts: Facts) -> float:
    """Bytes of a model on disk, float32."""
    return 4 * facts.model.parameters + 4e6


def trained_checkpoint(facts: Facts) -> float:
    """Bytes of what fine-tuning leaves: a model, or an adapter alone with its head."""
    if not lora_of(facts.settings):
        return checkpoint(facts)
    adapter = facts.model.layers * trained_parameters(facts.model, facts.settings)
    return 4 * (adapter + facts.model.width * facts.task.classes) + 4e6


def weight_change(facts: Facts) -> Work:
    """Three models read, and compared at some 100 MB/s."""
    return Work(seconds=START + 3 * checkpoint(facts) / 1e8)


def model_retrieval(facts: Facts) -> Work:
    """A download at 30 MB/s, and one look at the model."""
    return Work(seconds=START + checkpoint(facts) / 30e6)


def taking_in(facts: Facts) -> Work:
    """Three models read at some 100 MB/s, and all rows predicted on a processor of 50 GFLOP/s."""
    rows = prediction(facts, facts.task.train + facts.task.validation)
    return Work(seconds=START + 3 * checkpoint(facts) / 1e8 + rows.flops / 5e10)


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
