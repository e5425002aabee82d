"""Layer rewinding: theta_M2 with the layers of a window as they were earlier in its own run.

The definition. Every window of consecutive layers of theta_M2 is set back to a rewinding point:
theta_P, the pre-trained weights that the run started from, or theta_M1, the first epoch at which
(nearly) all training examples were predicted rightly. Head, embeddings and final norm stay
theta_M2's, nothing is trained, and the memorisation error counts as in layer swapping: it says what
the window's training since that point is needed for.

Rewinding to theta_P takes away what the window learnt of the task as well, so its clean error must
be read beside it; layer retraining, which trains the window anew, has no such fault. Rewinding to
theta_M1 asks where memories were moved or strengthened after they were made. It may change little.
Where theta_M1 was never reached, theta_M2 takes its place, nothing changes, and the layer weights
are undefined.

The source. Zhang, Bengio and Singer (2022), Are All Layers Created Equal?, set single layers back
to their initial and to earlier values; Stephenson et al. (2021), On the geometry of generalization
and memorization in deep neural networks, undo the memorisation of wrong labels that way, and Maini
et al. (2023), Can Neural Network Memorization Be Localized?, compare layers by it. Windows, and
errors against the perturbed labels, are those of Dankers and Titov (2024), section 3.1.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from memloc.data.examples import Reading
from memloc.errors import MemlocError
from memloc.localise.swap import Swapper
from memloc.localise.sweep import measure
from memloc.models.load import load_other, load_start

POINTS = {"pretrained": "theta_P", "memorised": "theta_M1"}


class Rewinder(Swapper):
    """theta_M2 and an earlier checkpoint of its run, ready to be mixed by windows."""

    name = "layer rewinding"


def load_point(
    model: PreTrainedModel, folder: str | Path, point: str, reading: Reading, seed: int
) -> PreTrainedModel:
    """The rewinding point of theta_M2 (`model`), "memorised" or "pretrained".

    The latter is theta_P, of adapters as they were at first; its head is never used.
    """
    if point == "pretrained":
        return load_start(model, folder, reading.class_names, seed)
    return load_other(folder, model)


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Set every window of theta_M2 back to theta_P or theta_M1.

    inputs: data, theta_M2, and theta_P or theta_M1. outputs and settings: see `measure`; settings
    has point too: "pretrained" (theta_P) or "memorised" (theta_M1).
    """
    point = settings["point"]
    if point not in POINTS:
        raise MemlocError(f"rewinding point {point!r} is unknown; there are {', '.join(POINTS)}")
    reading = Reading(**settings["reading"])

    def rewinder(model: PreTrainedModel) -> Swapper:
        donor = load_point(model, inputs[POINTS[point]], point, reading, settings["seed"])
        return Rewinder(model, donor)

    measure(inputs, outputs, settings, batch_tokens, rewinder)
