"""What stands in for the weights of linear layers while a model is trained: fewer kernels a step.

Layers that read one tensor, as query, key and value do, are one product. Under bfloat16, weights
are rounded together, where autocast rounds each weight by a kernel of its own, and its gradient by
another.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from memloc.models.adapters import belongs_to_adapter
from memloc.models.alike import CANT, alike
from memloc.models.layer_stack import forwards_replaced
from memloc.models.layers import toy_inputs
from memloc.models.products import linear_parameters
from memloc.models.siblings import siblings_in, side_by_side

logger = logging.getLogger(__name__)


class StandIn:
    """A parameter that stands in for others, which lie in it one after another: in its memory,
    unless it is rounded."""

    def __init__(self, masters: Sequence[nn.Parameter]):
        self.masters = masters
        self.sizes = [len(master) for master in masters]
        self.whole = side_by_side(masters)
        self.read = nn.Parameter(self.whole, masters[0].requires_grad)

    def round(self) -> None:
        """From now on it is a copy in bfloat16."""
        self.read = nn.Parameter(self.whole.to(torch.bfloat16), self.masters[0].requires_grad)

    def check(self) -> None:
        """Raise RuntimeError if what it stands in for lies elsewhere now, so that it is old."""
        if self.masters[0].data_ptr() != self.whole.data_ptr():
            raise RuntimeError("weights that are being trained were moved in memory")

    def hand_on(self, gradient: Tensor) -> None:
        """Give the masters a gradient; they may have one, where something else reads them too."""
        for master, part in zip(self.masters, gradient.split(self.sizes), strict=True):
            master.grad = part if master.grad is None else master.grad + part


class Product:
    """Linear layers that read one tensor, computed when the first of them is called."""

    def __init__(self, parts: Sequence[nn.Linear]):
        self.parts = parts
        self.weight = StandIn([part.get_parameter("weight") for part in parts])
        biases = [] if parts[0].bias is None else [part.get_parameter("bias") for part in parts]
        self.bias = StandIn(biases) if biases else None
        self._own = [part.forward for part in parts]
        self._x: Tensor | None = None
        self._version = 0
        self._made: list[Tensor] = []

    @property
    def stand_ins(self) -> list[StandIn]:
        """Of the weights, and of the biases if there are any."""
        return [self.weight] if self.bias is None else [self.weight, self.bias]

    def of(self, number: int, x: Tensor) -> Tensor:
        """What one of the layers makes of x: computed now, or with the first that read it."""
        if number == 0:
            bias = None if self.bias is None else self.bias.read
            whole = F.linear(x, self.weight.read, bias)
            self._x, self._version = x, x._version
            # Views couldn't be changed in place, which some layers do; nothing else reads `whole`.
            self._made = list(torch.unsafe_split_with_sizes(whole, self.weight.sizes, -1))
        elif x is not self._x or x._version != self._version:
            return self._own[number](x)
        made = self._made[number]
        if number == len(self.parts) - 1:
            self.forget()
        return made

    def forget(self) -> None:
        """Hold nothing of the last forward pass."""
        self._x, self._made = None, []


class StandIns:
    """Stand-ins for a model's linear layers, which compute what those compute.

    A product of siblings sums in another order than they would; the rounding of bfloat16 is
    autocast's, bit for bit. An adapter's own weights are left to autocast, for peft asks for their
    type.
    """

    def __init__(self, model: PreTrainedModel, precision: str, joined: bool = True):
        self.products = _products(model) if joined else []
        joint = [stand_in for product in self.products for stand_in in product.stand_ins]
        taken = {id(master) for stand_in in joint for master in stand_in.masters}
        self._places = [
            (part, name, part.get_parameter(name))
            for part, name, whole in linear_parameters(model)
            if precision == "bfloat16"
            and part.get_parameter(name).dtype == torch.float32
            and id(part.get_parameter(name)) not in taken
            and not belongs_to_adapter(whole)
        ]
        alone = {id(p): p for *_, p in self._places}
        self._alone = {number: StandIn([p]) for number, p in alone.items()}
        self._rounded = list(self._alone.values())
        if precision == "bfloat16":
            self._rounded += [s for s in joint if s.whole.dtype == torch.float32]
        for stand_in in self._rounded:
            stand_in.round()
        self.all = [*self._alone.values(), *joint]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within it, linear layers compute by their stand-ins, from the weights as they are now."""
        for stand_in in self.all:
            stand_in.check()
        _copy([(stand_in.read, stand_in.whole) for stand_in in self._rounded])
        for part, name, master in self._places:
            part._parameters[name] = self._alone[id(master)].read
        try:
            with _computing(self.products):
                yield
        finally:
            for part, name, master in self._places:
                part._parameters[name] = master

    def hand_on_gradients(self) -> None:
        """Move the gradients of what stood in to the weights themselves, in their own type."""
        found = [(s, s.read.grad) for s in self.all if s.read.grad is not None]
        wide = {id(s): torch.empty_like(s.whole) for s, _ in found if s.read.dtype != s.whole.dtype}
        _copy([(wide[id(s)], gradient) for s, gradient in found if id(s) in wide])
        for stand_in, gradient in found:
            stand_in.hand_on(wide.get(id(stand_in), gradient))
            stand_in.read.grad = None


def _products(model: PreTrainedModel) -> list[Product]:
    """The products of siblings; none where they don't make the model's own logits."""
    modules = {f"{name}.weight": part for name, part in model.named_modules()}
    inputs, was_training = toy_inputs(model, rows=2), model.training
    model.eval()  # nothing is dropped, and no random number drawn
    theirs: list[Tensor] = []
    groups = siblings_in(
        model,
        lambda name: not belongs_to_adapter(name),
        lambda: theirs.append(model(**inputs).logits),
    )
    parts = [[modules[name] for name in siblings.weights] for siblings in groups]
    products = [Product(linear) for linear in parts if all(map(_is_plain, linear))]
    try:
        with _computing(products):  # with gradients: autograd refuses some ways
            same = alike([model(**inputs).logits], theirs)
    except CANT:
        same = False
    model.train(was_training)
    if not same:
        logger.warning("layers that read one tensor are computed one by one: as one they differ")
    return products if same else []


def _is_plain(part: nn.Module) -> bool:
    """Whether its forward pass is that of a linear layer."""
    return type(part) is nn.Linear and "forward" not in vars(part)


@contextmanager
def _computing(products: Sequence[Product]) -> Iterator[None]:
    """Within it, the linear layers of products compute by them."""

    def by(product: Product, number: int) -> Callable[[Tensor], Tensor]:
        return lambda input: product.of(number, input)

    parts = [part for product in products for part in product.parts]
    stand_ins = [by(product, n) for product in products for n in range(len(product.parts))]
    try:
        with forwards_replaced(parts, stand_ins):
            yield
    finally:
        for product in products:
            product.forget()


@torch.no_grad()
def _copy(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Copy the second of each pair into the first, by few kernels."""
    if pairs:
        torch._foreach_copy_([into for into, _ in pairs], [of for _, of in pairs])
