"""Hidden states of every layer at the model's own pooling position, in one pass (section 3.1).

Where a model pools (the first token of BERT and MPNet, the last real token of decoders) is seen
in the model itself: of layer L's output, logits depend on that position alone.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import torch
from torch import nn
from transformers import PreTrainedModel

from memloc.data.tokens import Examples, token_batches
from memloc.errors import MemlocError
from memloc.machine.device import autocast
from memloc.models.layer_stack import LayerStack
from memloc.models.load import find_layers, toy_inputs
from memloc.store.files import full_disk, is_full, require_space

DTYPES = {"float32": torch.float32, "float16": torch.float16}


class _Enough(Exception):
    """The last layer that is wanted has run."""


def pooling_position(model: PreTrainedModel) -> str:
    """Which hidden state of a row the classifier reads: "first" or "last" (real token).

    Raises MemlocError for a model that reads several positions, or other ones.
    """
    inputs = toy_inputs(model, rows=2)
    last_states: list[torch.Tensor] = []

    def keep(_: nn.Module, args: tuple, output: object) -> object:
        state = LayerStack.output(output).detach().requires_grad_()
        last_states.append(state)
        return (state, *output[1:]) if isinstance(output, tuple) else state

    hook = find_layers(model)[-1].register_forward_hook(keep)
    try:
        with torch.enable_grad():
            logits = model(**inputs).logits
            (gradient,) = torch.autograd.grad(logits[:, 0].sum(), last_states)
    finally:
        hook.remove()
    read = [row.any(-1).nonzero().flatten().tolist() for row in gradient]
    lengths = inputs["attention_mask"].sum(1).tolist()
    if read == [[0] for _ in lengths]:
        return "first"
    if read == [[length - 1] for length in lengths]:
        return "last"
    raise MemlocError(
        f"{type(model).__name__} classifies from the positions {read} of inputs of {lengths} "
        "tokens; probing and centroids need a model that reads the first or the last real token"
    )


def pooled_batch(
    model: PreTrainedModel, inputs: dict[str, torch.Tensor], position: str, last_layer: int
) -> torch.Tensor:
    """Pooled states (last_layer + 1, rows, width) of one batch: layer 0 is what layer 1 receives,
    layer l what layer l puts out (so no final norm after layer L). Later layers don't run."""
    rows = torch.arange(len(inputs["input_ids"]), device=model.device)
    places = inputs["attention_mask"].sum(1) - 1 if position == "last" else torch.zeros_like(rows)
    states: list[torch.Tensor] = []

    def before(_: nn.Module, args: tuple) -> None:
        states.append(args[0][rows, places])

    def after(_: nn.Module, args: tuple, output: object) -> None:
        states.append(LayerStack.output(output)[rows, places])
        if len(states) > last_layer:
            raise _Enough

    layers = find_layers(model)[:last_layer]
    hooks = [layers[0].register_forward_pre_hook(before)]
    hooks += [layer.register_forward_hook(after) for layer in layers]
    try:
        model(**inputs)
    except _Enough:
        pass
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack([state.float() for state in states])


@torch.no_grad()
def pooled_states(
    model: PreTrainedModel,
    examples: Examples,
    pad_id: int,
    batch_tokens: int,
    precision: str,
    out: torch.Tensor,
) -> torch.Tensor:
    """Fill `out` (layers + 1, n, width) on the CPU with states of layers 0.. and return it.

    Examples are batched by length, in evaluation mode. Raises MemlocError for a state that is
    not finite in the type of `out`.
    """
    model.eval()
    position = pooling_position(model)
    batches = token_batches(examples, batch_tokens, pad_id, model.device, "hidden states")
    for rows, inputs in batches:
        with autocast(precision, model.device):
            states = pooled_batch(model, inputs, position, len(out) - 1)
        states = states.to(out.dtype).cpu()
        _refuse_nonfinite(states, examples.index[rows])
        out[:, rows] = states
    return out


def _refuse_nonfinite(states: torch.Tensor, index: torch.Tensor) -> None:
    wrong = (~states.isfinite().all(-1)).nonzero()
    if len(wrong):
        layer, row = wrong[0].tolist()
        remedy = (
            "set probing.states to float32"
            if states.dtype == torch.float16
            else ("the model's weights or its training are at fault")
        )
        raise MemlocError(
            f"the hidden state of example {index[row].item()} at layer {layer} is not finite in "
            f"{states.dtype}; {remedy}"
        )


def _take_room(file: IO[bytes], count: int) -> None:
    """Hold `count` bytes for a file: writing to a mapping that finds none kills the process."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file.fileno(), 0, count)
    except OSError as error:
        raise full_disk(file.name, count) if is_full(error) else error from error


@contextmanager
def room_for_states(
    layers: int, rows: int, width: int, dtype: str, folder: str | Path | None = None
) -> Iterator[torch.Tensor]:
    """An empty tensor (layers, rows, width) in a temporary file, gone with the process.

    `folder` holds the file (default: the system's temporary folder); the operating system keeps
    as much of it in memory as there is room for.
    """
    kind = DTYPES[dtype]
    folder = Path(folder or tempfile.gettempdir())
    size = layers * rows * width
    require_space(folder, size * kind.itemsize, "a temporary file of hidden states")
    with tempfile.NamedTemporaryFile(dir=folder, prefix="states-") as file:
        _take_room(file, size * kind.itemsize)
        flat = torch.from_file(file.name, shared=True, size=size, dtype=kind)
        # The mapping outlives the name, so that nothing stays behind even when a job is killed.
    yield flat.view(layers, rows, width)
