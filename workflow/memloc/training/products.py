"""Linear layers of a model that read one tensor, trained as one product."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from memloc.machine.device import same_products
from memloc.models.adapters import belongs_to_adapter
from memloc.models.alike import CANT, TOLERANCE, alike
from memloc.models.layer_stack import forwards_replaced
from memloc.models.layers import toy_inputs
from memloc.models.siblings import siblings_in, side_by_side

COARSE = 0.05  # of the largest logit: bfloat16 rounds each product to 1 / 256

logger = logging.getLogger(__name__)


class StandIn:
    """A parameter that stands in for others, which lie in it one after another: in its memory,
    unless it is rounded."""

    def __init__(self, masters: Sequence[nn.Parameter]):
        self.masters = masters
        self.sizes = [len(master) for master in masters]
        self.whole = side_by_side(masters)
        self._places = [master.data_ptr() for master in masters]
        self.read = nn.Parameter(self.whole, masters[0].requires_grad)

    def round(self) -> None:
        """From now on it is a copy in bfloat16."""
        self.read = nn.Parameter(self.whole.to(torch.bfloat16), self.masters[0].requires_grad)

    def check(self) -> None:
        """Raise RuntimeError if what it stands in for lies elsewhere now, so that it is old."""
        if [master.data_ptr() for master in self.masters] != self._places:
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
        self._when = 0, False
        self._made: list[Tensor] = []

    @property
    def stand_ins(self) -> list[StandIn]:
        """Of the weights, and of the biases if there are any."""
        return [self.weight] if self.bias is None else [self.weight, self.bias]

    def of(self, number: int, x: Tensor) -> Tensor:
        """What one of the layers makes of x: computed now, or with the first that read it."""
        when = x._version, torch.is_grad_enabled()
        if number == 0:
            bias = None if self.bias is None else self.bias.read
            whole = F.linear(x, self.weight.read, bias)
            self._x, self._when = x, when
            # Views couldn't be changed in place, which some layers do; nothing else reads `whole`.
            self._made = list(torch.unsafe_split_with_sizes(whole, self.weight.sizes, -1))
        elif x is not self._x or when != self._when:
            return self._own[number](x)
        made = self._made[number]
        if number == len(self.parts) - 1:
            self.forget()
        return made

    def forget(self) -> None:
        """Hold nothing of the last forward pass."""
        self._x, self._made = None, []


def find_products(model: PreTrainedModel) -> list[Product]:
    """The products of siblings; none where they don't make the model's own logits."""
    plain = {name: part for name, part in model.named_modules() if _is_plain(part)}
    inputs, was_training = toy_inputs(model, rows=2), model.training
    model.eval()  # nothing is dropped, and no random number drawn
    theirs: list[Tensor] = []
    with same_products():
        torch.set_float32_matmul_precision("highest")  # what TF32 rounds away would part products
        groups = siblings_in(
            model,
            lambda name: name.rpartition(".")[0] in plain and not belongs_to_adapter(name),
            lambda: theirs.append(model(**inputs).logits),
        )
        names = [[name.rpartition(".")[0] for name in siblings.weights] for siblings in groups]
        products = [Product([plain[name] for name in parts]) for parts in names]
        same = _are_right(products, lambda: model(**inputs).logits, theirs)
    model.train(was_training)
    if not same:
        logger.warning("layers that read one tensor are computed one by one: as one they differ")
    return products if same else []


def _are_right(
    products: Sequence[Product], forward: Callable[[], Tensor], theirs: list[Tensor]
) -> bool:
    """Whether a model computes the same by products; in short types, as far as these can tell."""
    if not products:
        return True
    try:
        with computing(products):  # with gradients: autograd refuses some ways
            ours = [forward()]
    except torch.OutOfMemoryError:
        raise
    except CANT:
        return False
    coarse = min(p.itemsize for product in products for p in product.weight.masters) < 4
    return alike(ours, theirs, COARSE if coarse else TOLERANCE)


def _is_plain(part: nn.Module) -> bool:
    """Whether its forward pass is that of a linear layer."""
    return type(part) is nn.Linear and "forward" not in vars(part)


@contextmanager
def computing(products: Sequence[Product]) -> Iterator[None]:
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
