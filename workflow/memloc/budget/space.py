"""What a job keeps on disk and in memory: its outputs, its partial state, the host's megabytes.

Planning imports this: no torch, no pandas.
"""

from collections.abc import Callable

from memloc.budget.adapters import base_bytes, trained_parameters
from memloc.budget.work import (
    MIXTURES,
    SMALL,
    Facts,
    activations,
    checkpoint,
    state_bytes_of,
    trained_checkpoint,
    trained_stack,
    window_cost,
    window_layers,
)
from memloc.groups import MOMENTS, SHARE_OF_FREE, trained_bytes
from memloc.study.params import lora_of
from memloc.windows import parse_windows

HOST_MB = 3000  # of a process with torch and a device's libraries
CONTEXT = 0.6e9  # bytes of a GPU that such a process takes for itself, before any tensor
LARGEST_GROUP = 67e9  # bytes of what windows train side by side: what fits a GPU of 80 GB
CHECKPOINTS = ("final", "memorised")


def model_bytes(facts: Facts, name: str) -> float:
    """Of a retrieved or trained model's folder; other outputs are small."""
    if name in CHECKPOINTS:
        return trained_checkpoint(facts)
    return checkpoint(facts) if name == facts.wildcards["model"] else SMALL


def taken_bytes(facts: Facts, name: str) -> float:
    """Of a checkpoint that is given, which is copied; what lies beside it is small."""
    return checkpoint(facts) if name in CHECKPOINTS else SMALL


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
    return 2 * state_bytes_of(facts.settings["generalisation"]) * trained_stack(facts)


def half_bytes(facts: Facts, name: str) -> float:
    """Of a table with a few numbers per training example; as text they take more."""
    numbers = 10 + 4 * facts.task.classes  # of a half's table: the label's probability and all
    return SMALL + facts.task.train * (100 if name.endswith(".tsv") else numbers)


def training_state(facts: Facts) -> float:
    """Weights and moments of the epoch saved and the one before, theta_M1, epochs kept."""
    recipe = facts.settings["training"]
    kept = 1 + len(recipe["keep_epochs"])
    return (2 * state_bytes_of(recipe) + 4 * kept) * trained_stack(facts)


def head_state(facts: Facts) -> float:
    """The same of a head."""
    return 28 * facts.model.width * (facts.model.width + facts.task.classes)


def training_memory(facts: Facts) -> float:
    """Host MB: weights, gradients and moments, as if all of it stayed on the host."""
    model = facts.model
    length = facts.task.padded(facts.settings["training"]["batch_size"])
    state = trained_state(facts)
    rows = facts.settings["training"]["batch_size"]
    kept = activations(model, rows, length) * model.layers
    return HOST_MB + 1.3 * (state + kept) / 1e6


def trained_state(facts: Facts) -> float:
    """Bytes of a model in training: its weights, and gradients and moments of what is trained."""
    state = state_bytes_of(facts.settings["training"]) * trained_stack(facts)
    return base_bytes(facts.model, facts.settings) + state


def window_parameters(facts: Facts) -> float:
    """Parameters that a job's windows own, as many as are trained at once."""
    windows = parse_windows(facts.wildcards.get("windows", "all"), facts.model.layers)
    opened = window_layers(windows, facts.model.layers)[1]
    most = LARGEST_GROUP / trained_bytes(facts.settings["retraining"]["moments"])
    return min(most, opened * trained_parameters(facts.model, facts.settings))


def window_state(facts: Facts) -> float:
    """Weights and moments of a job's windows, of the epoch saved and the one before."""
    return 2 * state_bytes_of(facts.settings["retraining"]) * window_parameters(facts)


def window_memory(facts: Facts) -> float:
    """Host MB: moments pass through it when they are saved. On a CPU, fewer windows at once."""
    base = base_bytes(facts.model, facts.settings) if lora_of(facts.settings) else 0
    moments = MOMENTS[facts.settings["retraining"]["moments"]] * window_parameters(facts)
    return HOST_MB + 1.2 * (moments + base) / 1e6


def window_device(facts: Facts) -> float:
    """Bytes of the device's memory that retraining can't do without: two models, and the window
    of all layers, which are computed again in the backward pass."""
    model = facts.model
    windows = parse_windows(facts.wildcards.get("windows", "all"), model.layers)
    largest = max(window_cost(facts).of(window, recomputed=True) for window in windows)
    return CONTEXT + 2 * base_bytes(model, facts.settings) + largest / SHARE_OF_FREE


def state_bytes(facts: Facts) -> float:
    """Pooled states of all layers, float32, of two models."""
    return 2 * 4 * facts.task.train * facts.model.layers * facts.model.width


def mixture_bytes(facts: Facts) -> float:
    """Pooled states of all layers, float32, of every mixture."""
    return MIXTURES * 4 * facts.task.train * facts.model.layers * facts.model.width


def models_memory(count: int) -> Callable[[Facts], float]:
    """Host MB of a job that holds `count` models and no gradients; of adapters, one base."""

    def megabytes(facts: Facts) -> float:
        held = count * trained_checkpoint(facts)
        held += base_bytes(facts.model, facts.settings) if lora_of(facts.settings) else 0
        return HOST_MB + 1.3 * held / 1e6 + 1000

    return megabytes


def whole_models(count: int) -> Callable[[Facts], float]:
    """Host MB of a job that holds `count` models as they were retrieved."""
    return lambda facts: HOST_MB + 1.3 * count * checkpoint(facts) / 1e6 + 1000


def training_device(facts: Facts) -> float:
    """Bytes of the device's memory that fine-tuning takes: with its longest batch."""
    settings, model = facts.settings["training"], facts.model
    state = trained_state(facts)
    kept = activations(model, settings["batch_size"], facts.task.longest) * model.layers
    return CONTEXT + 1.2 * (state + kept)


def sweep_device(facts: Facts) -> float:
    """Bytes of the device's memory that a sweep takes: three models, of adapters over one base, and
    a batch of all windows.

    A layer makes some six numbers of its width for each state that passes it.
    """
    model, windows = facts.model, facts.model.layers * (facts.model.layers + 1) / 2
    states = 4 * 6 * facts.settings["swapping"]["batch_tokens"] * model.width * windows
    base = base_bytes(model, facts.settings) if lora_of(facts.settings) else 0
    return CONTEXT + 1.2 * (base + 3 * trained_checkpoint(facts) + states)


def device_bytes(facts: Facts) -> dict[str, float]:
    """What retraining all windows side by side takes of a device's memory: the base, and weight,
    gradient and moments of each parameter that windows own. Activations come on top; windows that
    don't fit at once train in groups."""
    opened = window_layers(parse_windows("all", facts.model.layers), facts.model.layers)[1]
    own = opened * trained_parameters(facts.model, facts.settings)
    each = trained_bytes(facts.settings["retraining"]["moments"])
    return {"base": base_bytes(facts.model, facts.settings), "windows": each * own}
