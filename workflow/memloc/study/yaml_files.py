"""YAML (or JSON) files of users, of which nothing is lost and whose faults are named with the line.

Readers of YAML keep the last of two equal keys and say nothing, and stumble at a date like
2024-13-45 with no word of file or line. Planning imports this module: no torch, no pandas.
"""

import os
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml

from memloc.errors import MemlocError, shortly
from memloc.store.files import cause, read_plain, reading

# The parser in C, where PyYAML was built with it, is ten times as fast.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MERGE = "tag:yaml.org,2002:merge"  # <<, whose keys may be overridden


def read_yaml(path: str | Path) -> Any:
    """What a file holds, in plain values; None if it is empty.

    Raises MemlocError with file and line where a mapping gives a key twice, or a value isn't what
    YAML takes it for.
    """
    with reading(path, "Mend the line named, or write the file anew."):
        root = _composed(read_plain(path).decode("utf-8-sig"))
        reader = yaml.SafeLoader("")
        for node in _nodes(root):
            if isinstance(node, yaml.ScalarNode):
                _value(reader, node, path)
            elif isinstance(node, yaml.MappingNode):
                _refuse_keys_twice(reader, node, path)
        return None if root is None else reader.construct_document(root)


def refuse_faulty(path: str | Path) -> None:
    """The same for a file that others read; one that is missing is left to them."""
    if os.path.lexists(path):
        read_yaml(path)


def _composed(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError:  # also at characters that JSON writes as two escapes, unlike PyYAML's
        return yaml.compose(text, Loader=yaml.SafeLoader)


def _value(reader: yaml.SafeLoader, node: yaml.ScalarNode, path: str | Path) -> Any:
    if node.tag == MERGE:
        return node.value
    try:
        return reader.construct_object(node)
    except Exception as error:  # each kind of value has errors of its own
        kind, why = node.tag.rpartition(":")[2], getattr(error, "problem", None) or cause(error)
        raise MemlocError(
            f"{path}, line {node.start_mark.line + 1}: {shortly(node.value)} can't be read as "
            f"{kind}: {why}. Mend it, or put quotes around it if it is a text"
        ) from error


def _refuse_keys_twice(
    reader: yaml.SafeLoader, mapping: yaml.MappingNode, path: str | Path
) -> None:
    lines: dict[Hashable, int] = {}
    for key, _ in mapping.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
            continue
        name, line = _value(reader, key, path), key.start_mark.line + 1
        if name in lines:
            raise MemlocError(
                f"{path}, line {line}: the key {shortly(key.value)} is given twice (before in "
                f"line {lines[name]}), and all but the last would be lost: make it one"
            )
        lines[name] = line


def _nodes(root: yaml.Node | None) -> Iterator[yaml.Node]:
    """A node and all below it, each once: aliases may make loops."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, yaml.MappingNode):
            waiting += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
