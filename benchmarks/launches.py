"""Kernels that a training step launches on a GPU, counted without one.

Every operation below autograd is seen on its way to the device, in a real step of the workflow on
tensors that have shapes but no numbers: BERT's shape (12 layers x 768), 8 rows of 48 tokens, some
of them padding. Four steps: a model alone, and all its windows retrained, each in float32 and in
bfloat16.

    PYTHONPATH=workflow python benchmarks/launches.py [--tiny]

What is assumed of the GPU's side:

- An operation is one kernel. Views, empty tensors and what only the host does are none.
- Dropout is one kernel, and so is attention (the memory-efficient kernel, since there is a mask);
  the backward pass of attention takes three, that of an embedding three, that of a layer norm two:
  one where its scale is frozen. A batched product takes one more where it adds to something.
- Operations on lists of tensors (AdamW, norms, products, copies) take one kernel for 320 pieces of
  65,536 numbers, and for at most 110, 64, 48 or 36 tensors where they read one to four lists.
"""

import argparse
import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from memloc.data.tokens import Examples
from memloc.localise.retrain import clip, folding, variants
from memloc.localise.retrain.group import GroupRun, JobSettings, RetrainingRecipe
from memloc.localise.retrain.variants import SharedModel
from memloc.models.layers import find_layers, freeze_embeddings
from memloc.training import products
from memloc.training.stream import Corpus, Recipe, Stream
from memloc.windows import all_windows
from swapping import build

REAL = SimpleNamespace(layers=12, width=768, rows=8, tokens=48)
TINY = SimpleNamespace(layers=2, width=64, rows=2, tokens=8)
NAMES = """_local_scalar_dense _record_function_enter_new _record_function_exit _reshape_alias
_unsafe_view alias as_strided chunk detach device diagonal empty empty_like empty_strided expand
is_pinned lift lift_fresh new_empty new_empty_strided permute prim reshape resize_ scalar_tensor
select set_ slice split split_with_sizes squeeze t transpose unbind unfold
unsafe_split_with_sizes unsqueeze view"""
NO_KERNEL = set(NAMES.split())
SEVERAL = {
    "embedding_dense_backward": 3,
    "_scaled_dot_product_efficient_attention_backward": 3,
    "_foreach_norm": 1,  # besides its lists: one that ends what the pieces have begun
}
PIECE, PIECES, TENSORS = 65_536, 320, {1: 110, 2: 64, 3: 48, 4: 36}


def of_lists(lists: list[list[Tensor]]) -> int:
    """Kernels of one operation over lists of tensors that belong together."""
    most = TENSORS[min(len(lists), 4)]
    launched = tensors = pieces = 0
    for tensor in lists[0]:
        tensors += 1
        pieces += math.ceil(tensor.numel() / PIECE)
        while pieces > PIECES:
            launched, pieces, tensors = launched + 1, pieces - PIECES, 1
        if tensors == most:
            launched, pieces, tensors = launched + 1, 0, 0
    return launched + (tensors > 0)


def kernels_of(name: str, args: tuple, kwargs: dict[str, Any]) -> int:
    """Kernels of an operation on a device."""
    if name.startswith(("_foreach", "_fused")):
        lists = [a for a in args if isinstance(a, list | tuple) and a and isinstance(a[0], Tensor)]
        return of_lists(lists) + SEVERAL.get(name, 0)
    if name == "native_layer_norm_backward":
        *_, (_for_x, for_scale, for_offset) = args
        return 1 + (for_scale or for_offset)
    if name == "baddbmm":
        return 1 + (kwargs.get("beta", 1) != 0)
    return SEVERAL.get(name, 1)


class Launches(TorchDispatchMode):
    """Counts kernels by the operation that launches them."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        name = func._schema.name.split("::")[1]
        if name not in NO_KERNEL:
            self.kernels[name] += kernels_of(name, args, kwargs or {})
        return func(*args, **(kwargs or {}))

    @property
    def total(self) -> int:
        return sum(self.kernels.values())


class AsOnGpu(TorchFunctionMode):
    """Within it, what a CPU takes apart is called as the one operation that a GPU has for it."""

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        rule = {F.dropout: self.dropout, F.scaled_dot_product_attention: self.attention}.get(func)
        return (rule or func)(*args, **(kwargs or {}))

    @staticmethod
    def dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        return torch.native_dropout(x, p, True)[0] if training and p else x

    @staticmethod
    def attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        **_: Any,
    ) -> Tensor:
        if attn_mask is not None:
            if attn_mask.dtype == torch.bool:
                attn_mask = torch.where(attn_mask, 0.0, -torch.inf)
            attn_mask = attn_mask.to(query.dtype).expand(*query.shape[:-1], key.shape[-2])
        return torch.ops.aten._scaled_dot_product_efficient_attention(
            query, key, value, attn_mask, True, dropout_p, is_causal, scale=scale
        )[0]


def examples(size: SimpleNamespace) -> Examples:
    """One batch, its first row half as long as the others."""
    ids = [[7] * size.tokens for _ in range(size.rows)]
    ids[0] = ids[0][: size.tokens // 2]
    rows = torch.arange(size.rows)
    return Examples(ids, rows % 2, rows < 0, rows)


def count(step: Callable[[], object]) -> Launches:
    """The kernels of a step, of the second one: the first makes what later ones reuse."""
    step()
    with Launches() as launches:
        step()
    return launches


def alone(size: SimpleNamespace, precision: str) -> Launches:
    """A step of fine-tuning one model."""
    batch, rows = examples(size), torch.arange(size.rows)
    with (
        warnings.catch_warnings(),
        patch.object(products, "alike", lambda ours, theirs, tolerance: True),
        FakeTensorMode(allow_non_fake_inputs=True),
        AsOnGpu(),
    ):
        warnings.filterwarnings("ignore", "Accessing the data pointer")  # which is 0 for all
        model = build(size.layers, size.width, 1).train()
        freeze_embeddings(model)
        recipe = Recipe(1, 1e-5, size.rows, 0.1, 0.01, 1.0)
        stream = Stream("task", model, Corpus(batch, batch, 0), recipe, precision, 1)
        return count(lambda: stream.step(rows))


def retraining(size: SimpleNamespace, precision: str, windows: int | None = None) -> Launches:
    """A step of retraining windows (all: None) side by side, each clipped by its own norm."""
    batch, rows = examples(size), torch.arange(size.rows)
    memorised, pretrained = (build(size.layers, size.width, seed) for seed in (1, 2))
    shared = SharedModel(memorised, False, 1)  # it tries layers out, with numbers
    recipe = RetrainingRecipe(1, 1e-5, size.rows, 0.1, 0.01, 1.0, train_head=False)
    with (
        patch.object(clip, "looks", lambda gradient: False),
        patch.object(variants, "travels_alone", lambda prefix: False),
        patch.object(folding, "side_by_side", torch.cat),  # once: what has no numbers has no place
        FakeTensorMode(allow_non_fake_inputs=True),
        AsOnGpu(),
    ):
        run = GroupRun(
            shared,
            find_layers(pretrained),
            all_windows(size.layers)[:windows],
            batch,
            JobSettings(1, 0, precision),
            recipe,
        )
        shared.model.train()
        numbers = iter((1, 2))

        def step() -> None:
            shared.masks.begin(next(numbers))
            run.step(rows)

        return count(step)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--most", type=int, default=0, help="list so many operations of each step")
    options = parser.parse_args(arguments)
    size = TINY if options.tiny else REAL
    windows = len(all_windows(size.layers))
    print(f"kernels a step, {size.layers} x {size.width}, {size.rows} x {size.tokens} tokens")
    for name, step in (("alone", alone), (f"{windows} windows", retraining)):
        for precision in ("float32", "bfloat16"):
            found = step(size, precision)
            print(f"  {name:<12} {precision:<9} {found.total:6,}")
            for operation, kernels in found.kernels.most_common(options.most):
                print(f"    {operation:<50} {kernels:5}")


if __name__ == "__main__":
    main()
