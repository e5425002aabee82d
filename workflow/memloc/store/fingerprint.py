"""Fingerprints of code: an edited stage re-runs, a touched or re-commented one doesn't.

Snakemake re-runs a job when its params change. Each rule carries the fingerprint of its script and
of every memloc module that the script reaches through imports.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

from memloc.errors import MemlocError

PACKAGE = Path(__file__).parents[1]
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
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    imported = tuple(dict.fromkeys(_imports(nodes, path, package)))
    for node in nodes:
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree), imported


def _imports(nodes: Iterable[ast.AST], path: Path, package: Path) -> Iterator[str]:
    """Modules of `package`, as dotted names below it, that a file imports anywhere in its code."""
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
                yield from _modules(inner, name, package)


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
