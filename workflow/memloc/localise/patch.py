"""Activation patching: what theta_O's layers add to the state, put in the place of theta_M2's.

The definition. Both models run on an example by themselves; h(l) is theta_M2's hidden state after
layer l and g(l) theta_O's (l = 0: what layer 1 receives). Patching the window s..e gives the state

    h(s - 1) + [g(e) - g(s - 1)]

after layer e, at every token: the sum of what theta_M2's layers 1..s-1 made and what theta_O's
layers s..e added in theta_O's own run. theta_M2 continues from there with its layers e+1..L, final
norm and head, and the noisy error (as in layer swapping) is the effect. For one layer (s = e) this
patches the layer's output on the residual stream.

Why the difference. The whole state g(e) wouldn't depend on s. As both models share their input
embeddings, which are frozen in training, putting it in place would be the swapping of layers 1..e.
For windows that begin at layer 1 patching and swapping agree. For all others they differ: when
swapped, theta_O's layers run on theta_M2's state and may react to it; when patched, they add what
they added in theta_O's own run. That rests on all of theta_O's earlier layers. So a late layer that
only writes out what early layers decided reverts examples when patched, but not when swapped.

In models that normalise after adding (BERT), h and g are normalised states, and h + (g - g') isn't
one. Layer e + 1 receives it as it is.

The source. Interventions on hidden states by those of another run: Vig et al. (2020), Causal
mediation analysis; Geiger et al. (2021), Causal abstractions of neural networks; over windows of
consecutive layers in Meng et al. (2022), Locating and editing factual associations in GPT; between
a model before and after fine-tuning (cross-model activation patching) in Prakash et al. (2024),
Fine-tuning enhances existing mechanisms.
"""

from collections.abc import Mapping
from typing import Any

import torch
from transformers import PreTrainedModel

from memloc.localise.swap import Swapper
from memloc.localise.sweep import measure
from memloc.models.layer_stack import LayerStack
from memloc.models.load import load_other
from memloc.windows import Window


class Patcher(Swapper):
    """theta_M2 and theta_O, the latter's contributions ready to be patched into the former."""

    name = "activation patching"

    def __init__(self, memorised: PreTrainedModel, original: PreTrainedModel):
        super().__init__(memorised, original)
        self.donor = LayerStack(original, self.stack.packed)

    @torch.no_grad()
    def sweep(self, inputs: dict[str, torch.Tensor]) -> dict[Window, torch.Tensor]:
        """Logits (rows, classes) of every window for one batch."""
        entry, theirs = self.stack.enter(inputs), self.donor.enter(inputs)
        state, given = entry.hidden, theirs.hidden
        apart = [state - given]  # h(s - 1) - g(s - 1), by s
        names: list[Window] = []
        states: list[torch.Tensor] = []
        for number, layer in enumerate(self.donor.layers, start=1):
            ours = self.stack.layers[number - 1]
            states = self._through(number, ours, states, entry)
            given = self.donor.call(number - 1, layer, given, theirs)
            names += [(start, number) for start in range(1, number + 1)]
            states += [given + difference for difference in apart]
            if number < len(self.donor.layers):
                state = self._through(number, ours, [state], entry)[0]
                apart.append(state - given)
        return self._logits(names, states, entry)


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Patch every window of theta_M2 with theta_O's contributions.

    inputs: data, theta_M2, theta_O. outputs and settings: see `measure`.
    """

    def patcher(model: PreTrainedModel) -> Swapper:
        return Patcher(model, load_other(inputs["theta_O"], model))

    measure(inputs, outputs, settings, batch_tokens, patcher)
