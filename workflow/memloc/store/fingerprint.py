"""Fingerprints of code: an edited stage re-runs, a touched or re-commented one doesn't.

Snakemake re-runs a job when its params change. Each rule carries the fingerprint of its script and
of every memloc module that the script reaches through imports. What a file's code is without its
comments takes half a second for all of memloc, which every plan would spend: so it is kept beside
the compiled module, with the hash of the source that it is of.
"""

import ast
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source, resolve_name
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError

PACKAGE = Path(__file__).parents[1]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PARTS = ("body", "orelse", "finalbody", "handlers", "cases")  # where a statement has others
KEPT = {"source", "code", "imported"}


def fingerprint(*modules: str, script: str | Path | None = None, package: Path = PACKAGE) -> str:
    """A short hash of a script, of named modules (as "localise.swap") and of all they import.

    `modules` are those that the script only finds by name while it runs. What a script imports from
    outside memloc doesn't count, nor does memloc's own __init__: no result hangs on the version.
    Raises MemlocError for an import of memloc that leads to no file.
    """
    found = reached(*modules, script=script, package=package)
    parts = [f"{name}:{_read(path, package)[0]}" for name, path in found]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def reached(
    *modules: str, script: str | Path | None = None, package: Path = PACKAGE
) -> list[tuple[str, Path]]:
    """Name and file of the script and of every module it reaches, in the order of their names."""
    found: dict[str, Path] = {}
    waiting = [(name, _file(name, package)) for name in modules]
    if script is not None:
        waiting.append((Path(script).name, Path(script)))
    while waiting:
        name, path = waiting.pop()
        if name not in found:
            found[name] = path
            waiting += [(other, _file(other, package)) for other in _read(path, package)[1]]
    return sorted(found.items())


def _file(name: str, package: Path) -> Path:
    """The file of a module, or of a package that is imported from itself."""
    place = package.joinpath(*name.split("."))
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    raise MemlocError(f"{package.name}.{name} is imported, and there is no file {place}.py")


@cache
def _read(path: Path, package: Path) -> tuple[str, tuple[str, ...]]:
    """A file's code without comments, docstrings and layout, and the memloc modules it imports."""
    source = path.read_bytes()
    digest, place = hashlib.sha256(source).hexdigest(), Path(cache_from_source(str(path)))
    place = place.with_suffix(".json")
    kept = _kept(place)
    if kept.get("source") != digest:
        code, imported = _parsed(source, path, package)
        kept = {"source": digest, "code": code, "imported": imported}
        _keep(kept, place)
    names = (_modules(base, name, package) for base, name in kept["imported"])
    return kept["code"], tuple(dict.fromkeys(module for found in names for module in found))


def _kept(place: Path) -> dict[str, Any]:
    """What an earlier process found in a file; nothing where it isn't there whole."""
    try:
        kept = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) and kept.keys() == KEPT else {}


def _keep(found: dict[str, Any], place: Path) -> None:
    """Keep it for later processes, where compiled modules are kept."""
    if sys.dont_write_bytecode:
        return
    draft = place.with_name(f"{place.name}.{os.getpid()}")
    with suppress(OSError):
        place.parent.mkdir(exist_ok=True)
        draft.write_text(json.dumps(found), encoding="utf-8")
        draft.replace(place)


def _parsed(source: bytes, path: Path, package: Path) -> tuple[str, list[tuple[str, str]]]:
    """A file's code without comments, docstrings and layout; base and name of what it imports."""
    tree = ast.parse(source)
    nodes = list(_statements(tree))
    imported = list(_imports(nodes, path, package))
    for node in nodes:
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree), imported


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The module and all statements in it, with those inside others."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for part in PARTS:
            waiting += getattr(node, part, ())


def _imports(nodes: list[ast.AST], path: Path, package: Path) -> Iterator[tuple[str, str]]:
    """Of every import of `package` in a file: the module below it, and what is taken from it."""
    for node in nodes:
        if isinstance(node, ast.Import):
            named = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, path, package)
            named = [(base, alias.name) for alias in node.names]
        else:
            continue
        for base, name in named:
            head, _, inner = base.partition(".")
            if head == package.name:
                yield inner, name


def _absolute(node: ast.ImportFrom, path: Path, package: Path) -> str:
    if not node.level:
        return node.module or ""
    within = ".".join(path.relative_to(package.parent).parts[:-1])
    return resolve_name("." * node.level + (node.module or ""), within)


def _modules(inner: str, name: str, package: Path) -> Iterator[str]:
    """What `from package.inner import name` runs: a module of that name, else `inner` itself."""
    place = package.joinpath(*filter(None, inner.split(".")), name)
    if name and (place.with_suffix(".py").is_file() or place.is_dir()):
        yield f"{inner}.{name}".lstrip(".")
    elif inner:
        yield inner
