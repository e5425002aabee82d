"""The one exception that users are meant to read, and values in it of bounded length."""

import unicodedata
from collections.abc import Iterable
from typing import Any

NAMED = 10  # rows or values that a message names before it only counts them


class MemlocError(Exception):
    """Something a user can mend: the message names the file or key, the value, and the remedy."""


def encodable(text: str) -> str:
    r"""A text with lone surrogates, which no file can hold, written out as in ``\ud800``."""
    return text.encode("utf-8", "backslashreplace").decode()


def unwritable(text: str) -> str | None:
    """The first character of a text that is none to be read, as ``U+0000``; None without one.

    Those are control characters, halves of characters (lone surrogates), code points that no
    character will ever have, and the byte-order mark.
    """
    for character in text:
        number = ord(character)
        none = number & 0xFFFE == 0xFFFE or 0xFDD0 <= number <= 0xFDEF or number == 0xFEFF
        if none or unicodedata.category(character) in ("Cc", "Cs"):
            return f"U+{number:04X}"
    return None


def shortly(value: Any, most: int = 60) -> str:
    """A value as Python writes it, cut to `most` characters; texts in ASCII, so that odd ones show.

    A file on one line, taken for a value, must not fill the message.
    """
    shown = ascii(value[: most + 1]) if isinstance(value, str) else repr(value)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def listed(names: Iterable[object]) -> str:
    """Names for a message, the first ones if they are many."""
    shown = [shortly(name) for name in names]
    return ", ".join(shown[:NAMED]) + (f" and {len(shown) - NAMED} more" if shown[NAMED:] else "")
