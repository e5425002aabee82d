"""Pooled states of theta_M2 and of its mixtures with theta_O, all from one pass (section 5)."""

from collections.abc import Mapping

import torch
from transformers import PreTrainedModel

from memloc.data.tokens import Examples, token_batches
from memloc.machine.device import autocast
from memloc.models.last_state import BEFORE, output_of, reads_after_norm
from memloc.models.layer_stack import Entry, LayerStack
from memloc.models.layers import find_layers
from memloc.models.pooled_states import fill_states, pooled, pooled_tokens

Choice = tuple[bool, ...]  # of each layer, whether it is theta_O's


def half_choices(n_layers: int) -> dict[str, Choice]:
    """theta_M2 itself, and with theta_O's bottom and top half of the layers.

    Of an odd number of layers the middle one stays theta_M2's, so that both halves are as large.
    """
    half = max(1, n_layers // 2)
    layers = range(n_layers)
    return {
        "trained": tuple(False for _ in layers),
        "bottom": tuple(layer < half for layer in layers),
        "top": tuple(layer >= n_layers - half for layer in layers),
    }


class Mixer:
    """theta_M2 (`memorised`) with layers of theta_O (`original`), several mixtures at once.

    Mixtures travel together as far as they share their layers: for the two halves 2.5 L calls of a
    layer instead of 3 L. `last_state`: whether that of layer L is read before or after the final
    norm, which is theta_M2's in every mixture.
    """

    def __init__(
        self,
        memorised: PreTrainedModel,
        original: PreTrainedModel,
        choices: Mapping[str, Choice],
        last_state: str = BEFORE,
    ):
        self.normed = reads_after_norm(memorised, last_state)
        self.stack = LayerStack(memorised)
        self.theirs = find_layers(original)
        self.choices = dict(choices)
        self.tokens_of = pooled_tokens(memorised)

    @torch.no_grad()
    def pooled(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Pooled states (mixtures, layers 1..L, rows, width) of one batch, float32."""
        entry = self.stack.enter(inputs)
        tokens = self.tokens_of(inputs)
        states: dict[Choice, torch.Tensor] = {(): entry.hidden}
        layers = []
        for number in range(len(self.theirs)):
            states = self._through(number, states, entry)
            if self.normed and number == len(self.theirs) - 1:
                states = self._after_norm(states, entry)
            layers.append(
                torch.stack(
                    [pooled(states[c[: number + 1]], tokens).float() for c in self.choices.values()]
                )
            )
        return torch.stack(layers, 1)

    def _through(
        self, number: int, states: dict[Choice, torch.Tensor], entry: Entry
    ) -> dict[Choice, torch.Tensor]:
        """States after layer `number` (0-based), by the choices made up to there."""
        grown: dict[Choice, torch.Tensor] = {}
        for theirs, layer in ((False, self.stack.layers[number]), (True, self.theirs[number])):
            branches = dict.fromkeys(
                c[: number + 1] for c in self.choices.values() if c[number] == theirs
            )
            if branches:
                given = torch.cat([states[branch[:-1]] for branch in branches])
                hidden = self.stack.call(number, layer, given, entry)
                grown |= zip(branches, hidden.split(entry.rows), strict=True)
        return grown

    def _after_norm(
        self, states: dict[Choice, torch.Tensor], entry: Entry
    ) -> dict[Choice, torch.Tensor]:
        """States after layer L, as the final norm makes them."""
        with output_of(self.stack.model.base_model) as body:
            self.stack.leave(torch.cat(list(states.values())), entry)
        return dict(zip(states, body[0].split(entry.rows), strict=True))


def mixed_states(
    mixer: Mixer,
    examples: Examples,
    pad_id: int,
    batch_tokens: int,
    precision: str,
    out: torch.Tensor,
) -> torch.Tensor:
    """Fill `out` (mixtures, layers, n, width), on the CPU, and return it.

    Examples are batched by length. Raises MemlocError for a state that is not finite.
    """
    device, names = mixer.stack.model.device, list(mixer.choices)

    def read(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        with autocast(precision, device):
            return mixer.pooled(inputs)

    def described(mixture: int, layer: int) -> str:
        return f"after layer {layer + 1} is not finite ({names[mixture]} layers)"

    batches = token_batches(examples, batch_tokens, pad_id, device, "hidden states")
    return fill_states(out, examples.index, batches, read, described)
