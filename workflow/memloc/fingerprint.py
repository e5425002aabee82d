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
            waiting.extend(_read(PACKAGE / f"{name}.py")[1])
    text = "\n".join(f"{name}:{_read(PACKAGE / f'{name}.py')[0]}" for name in sorted(found))
    if script is not None:
        text += f"\n{Path(script).name}:{_read(Path(script))[0]}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    """A file's code without comments, docstrings and layout, and the memloc modules it imports."""
    tree = ast.parse(path.read_text())
    named: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            base, _, module = node.module.partition(".")
            if base == PACKAGE.name:
                named.extend([module] if module else [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            named.extend(
                alias.name.partition(".")[2]
                for alias in node.names
                if alias.name.startswith(f"{PACKAGE.name}.")
            )
    known = tuple(module for module in named if (PACKAGE / f"{module}.py").exists())
    return ast.unparse(tree), known
