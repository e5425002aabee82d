"""The one exception that users are meant to read, and values in it of bounded length."""

from typing import Any


class MemlocError(Exception):
    """Something a user can mend: the message names the file or key, the value, and the remedy."""


def shortly(value: Any, most: int = 60) -> str:
    """A value as Python writes it, cut to `most` characters; texts in ASCII, so that odd ones show.

    A file on one line, taken for a value, must not fill the message.
    """
    shown = ascii(value[: most + 1]) if isinstance(value, str) else repr(value)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."
