"""A rewound window equals the plain model with the window's earlier layers."""

import pytest
import torch

from memloc.errors import MemlocError
from memloc.localise.rewind import Rewinder, load_point, run
from memloc.windows import all_windows
from tiny import FAMILIES, N_LAYERS
from tiny_study import READING
from window_models import batch, logits_of, pair, with_layers

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("point", ["pretrained", "memorised"])
def test_rewound_windows_equal_plain_models(family, point, tmp_path):
    model, earlier = pair(family)
    # theta_P is saved without a head, as pre-trained models are.
    (earlier.base_model if point == "pretrained" else earlier).save_pretrained(tmp_path)
    donor = load_point(model, tmp_path, point, READING, seed=3)
    inputs = batch(model)
    sweep = Rewinder(model, donor).sweep(inputs)
    assert sorted(sweep) == all_windows(N_LAYERS)
    for window, logits in sweep.items():
        plain = logits_of(with_layers(model, earlier, window), inputs)
        torch.testing.assert_close(logits, plain, atol=1e-5, rtol=0)


def test_unknown_rewinding_point_is_refused():
    with pytest.raises(MemlocError, match="'start' is unknown; there are pretrained, memorised"):
        run({}, {}, {"point": "start"}, 1)
