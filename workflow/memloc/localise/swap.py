"""Layer swapping: theta_M2 with the layers of a window taken from theta_O (section 3.1).

All L(L+1)/2 windows run in one sweep over the layers. At every layer three kinds of states
exist: the untouched prefix, windows still open (in theta_O since their start) and windows
already closed (back in theta_M2); states of a kind go through the layer as one batch.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from transformers import PreTrainedModel

from memloc.localise.sweep import measure
from memloc.models.blocks import keep_component
from memloc.models.layer_stack import Entry, LayerStack
from memloc.models.layers import find_layers
from memloc.models.load import check_compatible, load_other
from memloc.windows import Window, all_windows

ROWS_AT_ONCE_TOKENS = 32_768  # padded tokens a layer call handles; bounds its activations


class Swapper:
    """theta_M2 (`memorised`) and theta_O (`original`), ready to be mixed by windows.

    Any model that differs from theta_M2 in its weights alone may take theta_O's place.
    """

    name = "layer swapping"

    def __init__(self, memorised: PreTrainedModel, original: PreTrainedModel):
        check_compatible(memorised, original, self.name)
        self.stack = LayerStack(memorised)
        self.original = find_layers(original)
        self.windows = all_windows(len(self.original))

    @torch.no_grad()
    def sweep(self, inputs: dict[str, torch.Tensor]) -> dict[Window, torch.Tensor]:
        """Logits (rows, classes) of every window for one batch."""
        entry = self.stack.enter(inputs)
        prefix = entry.hidden
        open_: list[torch.Tensor] = []
        closed: list[torch.Tensor] = []
        open_names: list[Window] = []
        closed_names: list[Window] = []
        for number, theirs in enumerate(self.original, start=1):
            ours = self.stack.layers[number - 1]
            closed = self._through(number, ours, closed, entry)
            # Windows ended at the previous layer and now pass through theta_M2 again.
            closed += self._through(number, ours, open_, entry)
            closed_names += [(start, number - 1) for start, _ in open_names]
            open_ = self._through(number, theirs, [*open_, prefix], entry)
            open_names = [(start, number) for start in range(1, number + 1)]
            if number < len(self.original):
                prefix = self._through(number, ours, [prefix], entry)[0]
        return self._logits(closed_names + open_names, closed + open_, entry)

    def _through(
        self, number: int, layer: torch.nn.Module, states: list[torch.Tensor], entry: Entry
    ) -> list[torch.Tensor]:
        results: list[torch.Tensor] = []
        for group in self._groups(states):
            hidden = self.stack.call(number - 1, layer, torch.cat(group), entry)
            results += hidden.split(entry.stride)
        return results

    def _logits(
        self, names: list[Window], states: list[torch.Tensor], entry: Entry
    ) -> dict[Window, torch.Tensor]:
        logits: list[torch.Tensor] = []
        for group in self._groups(states):
            logits += self.stack.leave(torch.cat(group), entry).float().split(entry.rows)
        return dict(zip(names, logits, strict=True))

    @staticmethod
    def _groups(states: list[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
        if states:
            tokens = states[0].shape[0] * states[0].shape[1]
            size = max(1, ROWS_AT_ONCE_TOKENS // tokens)
            for first in range(0, len(states), size):
                yield states[first : first + size]


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Swap every window of theta_M2 for theta_O's layers, or for one block of these.

    inputs: data, theta_M2, theta_O. outputs and settings: see `measure`; settings has component
    too: "layer", "attention" or "mlp".
    """

    def swapper(model: PreTrainedModel) -> Swapper:
        theirs = load_other(inputs["theta_O"], model)
        keep_component(theirs, model, settings["component"])
        return Swapper(model, theirs)

    measure(inputs, outputs, settings, batch_tokens, swapper)
