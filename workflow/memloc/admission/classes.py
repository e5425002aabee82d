"""Whether the classes of a given checkpoint are the task's, in the task's order."""

import re
from collections.abc import Mapping, Sequence

from memloc.errors import MemlocError, listed

GENERIC = re.compile(r"(?:LABEL_)?(\d+)")  # names that transformers gives, or a class's own number


def check_classes(id2label: Mapping[int, str], class_names: Sequence[str]) -> str:
    """A note where the checkpoint's classes have no names of their own; "" where names agree.

    id2label: of its config.json; class_names: the task's labels by class id. Raises MemlocError for
    another number of classes, another order, and names that say nothing of the order.
    """
    names = [str(id2label[number]) for number in sorted(id2label)]
    ours = list(class_names)
    if len(names) != len(ours):
        raise MemlocError(
            f"it tells {len(names)} classes apart ({listed(names)}), the task has {len(ours)} "
            f"({listed(ours)}): give a model of this task, or mend labels in the task file"
        )
    if _plain(names) == _plain(ours):
        return ""
    if all(_is_generic(name, number) for number, name in enumerate(names)):
        taken = ", ".join(
            f"{name} is taken for {own}" for name, own in zip(names, ours, strict=True)
        )
        return f"its classes have no names: {taken}"
    if sorted(_plain(names)) == sorted(_plain(ours)):
        raise MemlocError(
            f"its classes are {listed(names)}, in another order than the task's labels, "
            f"{listed(ours)}: write labels: [{', '.join(names)}] in the task file"
        )
    raise MemlocError(
        f"its classes are {listed(names)}, the task's labels {listed(ours)}: which is which can't "
        "be told. Name the task's labels so, with their raw values in label_values of the task "
        "file, or mend id2label in its config.json"
    )


def is_unnamed(id2label: Mapping[int, str]) -> bool:
    """Whether classes have only numbers."""
    return all(_is_generic(str(name), number) for number, name in id2label.items())


def _is_generic(name: str, number: int) -> bool:
    found = GENERIC.fullmatch(name)
    return found is not None and int(found[1]) == number


def _plain(names: Sequence[str]) -> list[str]:
    return [name.strip().casefold() for name in names]
