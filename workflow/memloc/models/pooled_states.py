"""Hidden states of every layer at the token the model classifies from, in one pass (section 3.1).

BERT and MPNet classify from the first token, decoders from the last real one. Which it is shows in
the model itself: of layer L's output, logits depend on that token alone.
"""

import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import torch
from torch import nn
from transformers import PreTrainedModel

from memloc.data.tokens import Examples, token_batches
from memloc.errors import MemlocError
from memloc.machine.device import autocast
from memloc.models.last_state import BEFORE, output_of, reads_after_norm
from memloc.models.layer_stack import LayerStack
from memloc.models.layers import find_layers, toy_inputs
from memloc.store.files import full_disk, is_full, require_space

Inputs = dict[str, torch.Tensor]
TokensOf = Callable[[Inputs], torch.Tensor]
DTYPES = {"float32": torch.float32, "float16": torch.float16}


class _Enough(Exception):
    """The last layer that is wanted has run."""


def first_tokens(inputs: Inputs) -> torch.Tensor:
    """Numbers of each row's first token in the flattened (rows, tokens)."""
    rows, tokens = inputs["input_ids"].shape
    return torch.arange(rows, device=inputs["input_ids"].device) * tokens


def last_tokens(inputs: Inputs) -> torch.Tensor:
    """Numbers of each row's last real token in the flattened (rows, tokens)."""
    return first_tokens(inputs) + inputs["attention_mask"].sum(1) - 1


def pooled_tokens(model: PreTrainedModel) -> TokensOf:
    """Which token of each row the classifier reads: `first_tokens` or `last_tokens`.

    Raises MemlocError for a model that reads several tokens, or other ones.
    """
    inputs = toy_inputs(model, rows=2)
    read = tokens_read(model, inputs)
    for tokens in (first_tokens, last_tokens):
        if torch.equal(read.flatten().nonzero().flatten(), tokens(inputs)):
            return tokens
    raise MemlocError(
        f"{type(model).__name__} classifies from the positions "
        f"{[row.nonzero().flatten().tolist() for row in read]} of inputs of "
        f"{inputs['attention_mask'].sum(1).tolist()} tokens; probing and centroids need a model "
        "that reads the first or the last real token"
    )


def tokens_read(model: PreTrainedModel, inputs: Inputs) -> torch.Tensor:
    """Whether each token's state after layer L has a part in the logits (rows, tokens)."""
    last_states: list[torch.Tensor] = []

    def keep(_: nn.Module, args: tuple, output: Any) -> Any:
        state = LayerStack.output(output).detach().requires_grad_()
        last_states.append(state)
        return LayerStack.with_state(output, state)

    hook = find_layers(model)[-1].register_forward_hook(keep)
    try:
        with torch.enable_grad():
            logits = model(**inputs).logits
            (gradient,) = torch.autograd.grad(logits[:, 0].sum(), last_states)
    finally:
        hook.remove()
    return gradient.any(-1)


def pooled(states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The states (rows, width) of one token per row, of states (rows, tokens, width)."""
    return states.flatten(0, 1)[tokens]


def pooled_batch(
    model: PreTrainedModel,
    inputs: Inputs,
    tokens_of: TokensOf,
    last_layer: int,
    normed: bool = False,
) -> torch.Tensor:
    """Pooled states (last_layer + 1, rows, width) of one batch: layer 0 is what layer 1 receives,
    layer l what layer l puts out. Later layers don't run. `normed`: the last layer is L, and its
    state is that after the final norm."""
    tokens = tokens_of(inputs)
    states: list[torch.Tensor] = []

    def before(_: nn.Module, args: tuple, kwargs: dict) -> None:
        states.append(pooled(LayerStack.received(args, kwargs)[0], tokens))

    def after(_: nn.Module, args: tuple, output: Any) -> None:
        states.append(pooled(LayerStack.output(output), tokens))
        if len(states) > last_layer and not normed:
            raise _Enough

    layers = find_layers(model)[:last_layer]
    hooks = [layers[0].register_forward_pre_hook(before, with_kwargs=True)]
    hooks += [layer.register_forward_hook(after) for layer in layers]
    try:
        with output_of(model.base_model) as body:
            model(**inputs)
    except _Enough:
        pass
    finally:
        for hook in hooks:
            hook.remove()
    if normed:
        states[-1] = pooled(body[0], tokens)
    return torch.stack([state.float() for state in states])


@torch.no_grad()
def pooled_states(
    model: PreTrainedModel,
    examples: Examples,
    pad_id: int,
    batch_tokens: int,
    precision: str,
    out: torch.Tensor,
    last_state: str = BEFORE,
) -> torch.Tensor:
    """Fill `out` (layers + 1, n, width) on the CPU with states of layers 0.. and return it.

    Examples are batched by length, in evaluation mode. `last_state`: whether that of layer L is
    read before or after the final norm. Raises MemlocError for a state that is not finite in the
    type of `out`.
    """
    model.eval()
    tokens_of = pooled_tokens(model)
    whole = len(out) == len(find_layers(model)) + 1
    normed = whole and reads_after_norm(model, last_state)

    def read(inputs: Inputs) -> torch.Tensor:
        with autocast(precision, model.device):
            return pooled_batch(model, inputs, tokens_of, len(out) - 1, normed)

    def described(layer: int) -> str:
        return f"at layer {layer} is not finite in {out.dtype}"

    batches = token_batches(examples, batch_tokens, pad_id, model.device, "hidden states")
    return fill_states(out, examples.index, batches, read, described)


def fill_states(
    out: torch.Tensor,
    index: torch.Tensor,
    batches: Iterable[tuple[torch.Tensor, Inputs]],
    read: Callable[[Inputs], torch.Tensor],
    described: Callable[..., str],
) -> torch.Tensor:
    """Fill `out` (..., n, width) on the CPU with what ``read(inputs)`` gives, batch by batch.

    Raises MemlocError for a state that is not finite in the type of `out`: ``described(*place)``
    says so of a place in the leading dimensions; `index` (n,) names the example.
    """
    for rows, inputs in batches:
        states = read(inputs).to(out.dtype).cpu()
        wrong = (~states.isfinite().all(-1)).nonzero()
        if len(wrong):
            *place, row = wrong[0].tolist()
            remedy = (
                "set probing.states to float32"
                if out.dtype == torch.float16
                else "the model's weights or its training are at fault"
            )
            raise MemlocError(
                f"the hidden state of example {index[rows][row].item()} {described(*place)}; "
                f"{remedy}"
            )
        out[..., rows, :] = states
    return out


def _take_room(file: IO[bytes], folder: Path, count: int) -> None:
    """Hold `count` bytes for a file: writing to a mapping that finds none kills the process."""
    try:
        os.ftruncate(file.fileno(), count)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, count)
    except OSError as error:
        raise full_disk(folder, count) if is_full(error) else error from error


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
    size = layers * rows * width * kind.itemsize
    require_space(folder, size, "a temporary file of hidden states")
    # The file never has a name, and the mapping outlives it: nothing stays when a job is killed.
    with tempfile.TemporaryFile(dir=folder) as file:
        _take_room(file, folder, size)
        flat = torch.frombuffer(mmap.mmap(file.fileno(), size), dtype=kind)
    yield flat.view(layers, rows, width)
