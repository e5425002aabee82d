"""The page that figures are drawn for: how wide and high they may be, how large their text is.

Drawers ask for it where it decides how many panels stand side by side; `fit` keeps to it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

WIDTHS = {"full": 7.0, "single": 3.4}  # inches: a page's text, and one of its two columns


@dataclass(frozen=True)
class Page:
    """Room for a figure, in inches, and the size of its text, in points."""

    width: float = WIDTHS["full"]
    font_size: float = 8.0
    height: float = 9.0

    @property
    def line(self) -> float:
        """Inches from one line of text to the next."""
        return 1.35 * self.font_size / 72

    def letters(self, inches: float) -> int:
        """About how many letters of text stand in a line so long, one at least."""
        return max(1, int(inches * 72 / (0.62 * self.font_size)))


_PAGE: ContextVar[Page] = ContextVar("page", default=Page())  # noqa: B039 (it is frozen)


def page() -> Page:
    """The page that figures are drawn for now."""
    return _PAGE.get()


def page_of(width: str | float, font_size: float) -> Page:
    """The page of the setting `figures`: its width is a name of WIDTHS, or in inches."""
    return Page(WIDTHS[width] if isinstance(width, str) else float(width), float(font_size))


@contextmanager
def drawn_for(chosen: Page) -> Iterator[None]:
    """Have figures drawn for this page."""
    token = _PAGE.set(chosen)
    try:
        yield
    finally:
        _PAGE.reset(token)
