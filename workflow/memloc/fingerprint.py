"""Fingerprints of library modules: an edited stage re-runs, a touched or re-commented one doesn't.

Snakemake reruns a job when its params change. Each rule carries the fingerprint of the
modules it uses, and of all that these import from memloc.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def fingerprint(*modules: str, script: str | Path | None = None) -> str:
    """A short hash of the named memloc modules and everything of memloc they import.

    `script`: a file that counts as well, but not what it imports.
    """
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_imports(name))
    text = "\n".join(f"{name}:{_code(PACKAGE / f'{name}.py')}" for name in sorted(found))
    if script is not None:
        text += f"\n{Path(script).name}:{_code(Path(script))}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{name}.py").read_text())


@cache
def _imports(name: str) -> tuple[str, ...]:
    named = []
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            base, _, module = node.module.partition(".")
            if base == PACKAGE.name:
                named.extend([module] if module else [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            named.extend(
                alias.name.partition(".")[2]
                for alias in node.names
                if alias.name.startswith(f"{PACKAGE.name}.")
            )
    return tuple(module for module in named if (PACKAGE / f"{module}.py").exists())


@cache
def _code(path: Path) -> str:
    """A file's code without comments, docstrings and layout."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
