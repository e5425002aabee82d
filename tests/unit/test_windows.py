"""Windows of layers and their names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloc.errors import MemlocError
from memloc.windows import all_windows, parse_window, parse_windows, window_name


@given(st.integers(1, 30))
def test_windows_are_all_runs_of_layers(n_layers):
    windows = all_windows(n_layers)
    assert len(windows) == len(set(windows)) == n_layers * (n_layers + 1) // 2
    assert windows == sorted(windows) and all(1 <= s <= e <= n_layers for s, e in windows)
    assert [parse_window(window_name(w), n_layers) for w in windows] == windows


@pytest.mark.parametrize("name", ["0-3", "3-2", "2-13", "2", "2-3-4", "a-b", "02-3", "", "-1-2"])
def test_windows_outside_the_model_are_refused(name):
    with pytest.raises(MemlocError, match="1 <= START <= END <= 12"):
        parse_window(name, 12)


def test_window_specifications():
    assert parse_windows("all", 4) == all_windows(4)
    assert parse_windows("from-3", 4) == [(3, 3), (3, 4)]
    assert parse_windows("2-4", 4) == [(2, 4)]
    for wrong in ("from-5", "from-0", "from-x", "3-5", "0-1", "4-3", "some", "from-"):
        with pytest.raises(MemlocError, match="has 4 layers"):
            parse_windows(wrong, 4)
