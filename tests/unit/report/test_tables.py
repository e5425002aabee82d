"""Cells of the page's tables."""

import pytest

from memloc.report.tables import shown


@pytest.mark.parametrize(
    "value,text",
    [
        (0.98765, "0.988"), (5.0, "5.00"), (12.345, "12.3"), (1234.56, "1235"), (0.0, "0"),
        (0.00012, "1.2e-04"), (float("nan"), "–"), (7, "7"), ("none", "none"), (1.0, "1.00"),
    ],
)  # fmt: skip
def test_numbers_for_reading(value, text):
    assert shown(value) == text
