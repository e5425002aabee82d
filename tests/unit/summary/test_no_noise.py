"""Errors of swapping with and without noise, by hand."""

import pandas as pd
import pytest

from memloc.summary.no_noise import ALL, EVERY, ONE, compared
from memloc.windows import all_windows


def table(noisy, clean):
    frame = pd.DataFrame(all_windows(2), columns=["start", "end"])  # layer 1, both, layer 2
    return frame.assign(noisy_error=noisy, clean_error=clean)


def test_kinds_of_windows_by_hand():
    swapped = [table([0.1, 0.9, 0.3], [0.0, 0.1, 0.1]), table([0.3, 0.7, 0.3], [0.0, 0.3, 0.1])]
    mixed = [table([0.0, 0.2, 0.1], [0.0, 0.1, 0.0]), table([0.1, 0.4, 0.2], [0.1, 0.1, 0.2])]
    found = compared(swapped, mixed).set_index("windows")
    assert list(found.index) == [ONE, EVERY, ALL]
    assert found["noisy_error"].tolist() == pytest.approx([0.25, 2.6 / 6, 0.8])
    assert found["clean_error"].tolist() == pytest.approx([0.05, 0.6 / 6, 0.2])
    assert found["mixing_error"].tolist() == pytest.approx([0.1, 1.0 / 6, 0.3])
    assert found["mixing_clean"].tolist() == pytest.approx([0.075, 0.5 / 6, 0.1])
    assert found["noise_minus_clean"].tolist() == pytest.approx([0.2, 2.0 / 6, 0.6])
    assert found["noise_minus_mixing"].tolist() == pytest.approx([0.15, 1.6 / 6, 0.5])
    assert found.loc[ONE, "sd_mixing"] == pytest.approx(0.1 / 2**0.5)
    assert (found["n_seeds"] == 2).all()
