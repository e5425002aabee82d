"""Linear layers that training.lora.targets names, for a plan and for the jobs that train them."""

from collections.abc import Iterable, Sequence

from memloc.errors import MemlocError, listed

ALL = "all-linear"  # of training.lora.targets: peft's own word for all linear layers but the head


def is_target(name: str, targets: str | Sequence[str]) -> bool:
    """Whether a linear layer, named as in its layer, is one that training.lora.targets wants."""
    asked = [targets] if isinstance(targets, str) else targets
    return targets == ALL or any(f".{name}".endswith(f".{target}") for target in asked)


def refuse_targets(model: str, targets: str | Sequence[str], linear: Iterable[str]) -> None:
    """Raise MemlocError where a target names none of a model's linear layers.

    linear: their names in the layers that they are in.
    """
    names = set(linear)
    for target in [targets] if isinstance(targets, str) else targets:
        if not any(is_target(name, target) for name in names):
            there = sorted({name.rpartition(".")[2] for name in names})
            raise MemlocError(
                f"training.lora.targets: no linear layer of {model} is named {target!r}; its "
                f"layers have {listed(there)}; name some of these, or {ALL}"
            )
