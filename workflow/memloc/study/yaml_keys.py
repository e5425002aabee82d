"""Keys that a YAML (or JSON) file gives twice: readers of YAML keep the last and say nothing.

Planning imports this module: no torch, no pandas.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import yaml

from memloc.errors import MemlocError
from memloc.store.files import read_plain, reading

# The parser in C, where PyYAML was built with it, is ten times as fast.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def refuse_keys_twice(path: str | Path) -> None:
    """Raise MemlocError, with file and line, where a mapping gives a key twice.

    A file that is missing is left to its reader, who says so; one that can't be read is refused.
    """
    if not os.path.lexists(path):
        return
    with reading(path, "Mend the line named, or write the file anew."):
        root = yaml.compose(read_plain(path).decode("utf-8-sig"), Loader=_Loader)
    for mapping in _mappings(root):
        lines: dict[tuple[str, str], int] = {}
        for key, _ in mapping.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in lines:
                raise MemlocError(
                    f"{path}, line {line}: the key {key.value[:60]!r} is given twice (before in "
                    f"line {lines[name]}), and all but the last would be lost: make it one"
                )
            lines[name] = line


def _mappings(root: yaml.Node | None) -> Iterator[yaml.MappingNode]:
    """All mappings below a node, each once: aliases may make loops."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield node
            waiting += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
