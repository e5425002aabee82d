"""Fingerprints of code: an edited stage re-runs, a touched or re-commented one doesn't.

Snakemake re-runs a job when its params change. Each rule carries the fingerprint of its script and
of every memloc module that the script reaches through imports.
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

from memloc.errors import MemlocError

PACKAGE = Path(__file__).parents[1]
Import = tuple[int, str, str]  # dots before a module's name, its name, the name imported from it
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


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


@cache
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
    code, imported = _plain(path)
    modules = (name for one in imported for name in _modules(*one, path, package))
    return code, tuple(dict.fromkeys(modules))


def _plain(path: Path) -> tuple[str, list[Import]]:
    """A file's plain code and its imports, which stand beside its bytecode once they were found.

    Each plan, a job's on a cluster too, needs those of all modules, and parsing takes a while. What
    is kept is of the same text, found in the same way and whole, or it is found anew.
    """
    text = path.read_bytes()
    kept = Path(cache_from_source(str(path))).with_suffix(".plain")
    with suppress(OSError, ValueError):
        mark, _, content = kept.read_bytes().partition(b"\n")
        if mark == _mark(text, content):
            code, imported = json.loads(content)
            return code, imported
    found = _parsed(text)
    content = json.dumps(found).encode()
    if not sys.dont_write_bytecode:
        _keep(kept, _mark(text, content) + b"\n" + content)
    return found


def _mark(text: bytes, content: bytes) -> bytes:
    return hashlib.sha256(b"\0".join((_way(), text, content))).hexdigest().encode()


@cache
def _way() -> bytes:
    """How code is made plain: this very file."""
    return Path(__file__).read_bytes()


def _keep(path: Path, content: bytes) -> None:
    """Write a file whole, or not where that can't be: it only saves time."""
    draft = path.with_suffix(f".plain.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        draft.write_bytes(content)
        draft.replace(path)
    with suppress(OSError):
        draft.unlink(missing_ok=True)


def _parsed(text: bytes) -> tuple[str, list[Import]]:
    tree = ast.parse(text)
    imported: list[Import] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported += [(0, alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported += [(node.level, node.module or "", alias.name) for alias in node.names]
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree), imported


def _modules(level: int, base: str, name: str, path: Path, package: Path) -> Iterator[str]:
    """Modules of `package`, as dotted names below it, that an import in a file runs.

    `from package.inner import name` runs a module of that name, else `inner` itself.
    """
    if level:
        within = ".".join(path.relative_to(package.parent).parts[:-1])
        base = resolve_name("." * level + base, within)
    head, _, inner = base.partition(".")
    if head != package.name:
        return
    place = package.joinpath(*filter(None, inner.split(".")), name)
    if name and (place.with_suffix(".py").is_file() or place.is_dir()):
        yield f"{inner}.{name}".lstrip(".")
    elif inner:
        yield inner
