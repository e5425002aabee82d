"""What memloc refuses, or the system does, said by Snakemake in words alone, without a trace."""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from inspect import signature
from typing import Any

from snakemake.exceptions import WorkflowError

from memloc.errors import MemlocError
from memloc.store.files import forbidden


def readable(function: Callable) -> Callable:
    """The same function, whose errors for users become Snakemake's own kind of error."""

    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except MemlocError as error:
            raise WorkflowError(str(error)) from None
        except OSError as error:
            if said := forbidden(error):
                raise WorkflowError(str(said)) from None
            raise

    with suppress(ValueError):  # builtins have none
        # Snakemake asks for it each time that it calls a function, and finding it takes long.
        called.__signature__ = signature(function)  # type: ignore[attr-defined]
    return called


class Readable:
    """An object whose methods and properties are readable, and those of its parts in `parts`."""

    def __init__(self, wrapped: Any, parts: tuple[str, ...] = ()):
        self._wrapped, self._parts = wrapped, parts

    def __getattr__(self, name: str) -> Any:
        found = readable(getattr)(self._wrapped, name)
        if name not in self._parts and not callable(found):
            return found
        found = Readable(found) if name in self._parts else readable(found)
        setattr(self, name, found)  # looked up thousands of times in a plan
        return found
