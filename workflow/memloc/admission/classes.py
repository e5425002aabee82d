"""Whether the classes of a given checkpoint are the task's, in the task's order.

Their names say so where they have any, and what the model predicts says so in any case.
"""

import re
from collections.abc import Mapping, Sequence
from math import sqrt

import torch
from scipy.optimize import linear_sum_assignment

from memloc.errors import MemlocError, listed

CLEARLY = 3.3  # standard deviations of a difference of counts: by chance 1 in 2,000
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
    if sorted(_plain(names)) == sorted(_plain(ours)):
        raise MemlocError(
            f"its classes are {listed(names)}, in another order than the task's labels, "
            f"{listed(ours)}: write labels: [{', '.join(names)}] in the task file"
        )
    if all(_is_generic(name, number) for number, name in enumerate(names)):
        taken = ", ".join(
            f"{name} is taken for {own}" for name, own in zip(names, ours, strict=True)
        )
        return f"its classes have no names: {taken}"
    raise MemlocError(
        f"its classes are {listed(names)}, the task's labels {listed(ours)}: which is which can't "
        "be told. Name the task's labels so, with their raw values in label_values of the task "
        "file, or mend id2label in its config.json"
    )


def refuse_other_order(
    predicted: torch.Tensor, labels: torch.Tensor, class_names: Sequence[str]
) -> None:
    """Raise MemlocError where predictions (n,) fit labels (n,) clearly better in another order.

    Another order is one of the task's classes for the model's. Each half of the rows is counted
    under the order that fits the other half best, so that an order that fits by chance alone has
    no advantage. Rows that are right under the other order alone are set against those that are
    right as the classes stand: without a difference, each is as likely as the other.
    """
    number = len(class_names)
    by_class = labels.argsort(stable=True)  # so that each half has its share of every class
    halves = [(predicted[rows], labels[rows]) for rows in (by_class[::2], by_class[1::2])]
    gained = lost = 0
    for (seen, true), fitted in zip(halves, reversed(halves), strict=True):
        other = _best_order(*fitted, number)[seen]
        gained += int(((other == true) & (seen != true)).sum())
        lost += int(((seen == true) & (other != true)).sum())
    if gained - lost <= CLEARLY * sqrt(gained + lost):
        return
    order = _best_order(predicted, labels, number)
    names = ", ".join(class_names[place] for place in order.tolist())
    right, also = (int((found == labels).sum()) for found in (predicted, order[predicted]))
    raise MemlocError(
        f"its classes seem to stand in the order {names}, and the task's labels in the order "
        f"{', '.join(class_names)}: of {len(labels)} clean training rows it predicts "
        f"{right} as labelled, and {also} in that other order. Write labels: [{names}] in the "
        "task file, and id2label of its config.json in that order; or bring the rows of its head "
        "into the task's order"
    )


def _best_order(predicted: torch.Tensor, labels: torch.Tensor, number: int) -> torch.Tensor:
    """The task's class (number,) of each of the model's, by which most rows are right.

    Of orders that fit as well, it is the one that leaves most classes in their place.
    """
    counts = torch.bincount(predicted * number + labels, minlength=number**2)
    gain = counts.view(number, number) * (number + 1) + torch.eye(number, dtype=torch.long)
    return torch.from_numpy(linear_sum_assignment(gain.numpy(), maximize=True)[1])


def is_unnamed(id2label: Mapping[int, str]) -> bool:
    """Whether classes have only numbers."""
    return all(_is_generic(str(name), number) for number, name in id2label.items())


def _is_generic(name: str, number: int) -> bool:
    found = GENERIC.fullmatch(name)
    return found is not None and int(found[1]) == number


def _plain(names: Sequence[str]) -> list[str]:
    return [name.strip().casefold() for name in names]
