"""Which package may import which: the floors of docs/architecture.md, lowest first."""

import ast
import subprocess
import sys

import pytest

from shipped import ROOT

MEMLOC = ROOT / "workflow" / "memloc"
FLOORS = [
    ("",),
    ("machine",),
    ("store",),
    ("study",),
    ("budget", "data"),
    ("models",),
    ("training",),
    ("localise",),
    ("admission",),
    ("explain", "generalise", "control", "bundle"),
    ("summary",),
    ("figures",),
    ("report", "door"),
]
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
HEAVY = ("torch", "transformers", "pandas", "matplotlib", "scipy", "datasets")


def imported(path):
    """Modules of memloc that a file imports, as dotted names below memloc."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: an import relative to its own package"
            base = (node.module or "").split(".")
            if base[0] == "memloc":
                yield from [".".join(base[1:])] if base[1:] else [a.name for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("memloc.")]
            yield from (name.partition(".")[2] for name in names)


def package(dotted):
    head = dotted.split(".")[0]
    return head if (MEMLOC / head).is_dir() else ""


def own_package(path):
    parts = path.relative_to(MEMLOC).parts
    return parts[0] if len(parts) > 1 else ""


def test_every_package_has_a_floor():
    folders = {path.parent for path in MEMLOC.rglob("*.py")}
    assert {own_package(folder / "x.py") for folder in folders} == set(FLOOR)


def test_lower_floors_know_nothing_of_upper_ones():
    wrong = [
        f"{path.relative_to(MEMLOC)} imports {name}"
        for path in sorted(MEMLOC.rglob("*.py"))
        for name in imported(path)
        if package(name) != own_package(path)
        and not FLOOR[package(name)] < FLOOR[own_package(path)]
    ]
    assert not wrong, "\n".join(wrong)


def test_packages_bring_nothing_along():
    """An __init__ that imports would make every part of a package load all of it."""
    texts = {path: path.read_text() for path in MEMLOC.rglob("__init__.py")}
    assert [str(path) for path, text in texts.items() if text and path.parent != MEMLOC] == []


def test_the_root_loads_nothing_before_it_is_asked():
    """memloc's own __init__ names the door's modules in texts alone, so every job can import it."""
    assert list(imported(MEMLOC / "__init__.py")) == []
    code = "import memloc, sys; print([m for m in sys.modules if 'memloc.' in m])"
    said = subprocess.check_output(
        [sys.executable, "-c", code],
        cwd=MEMLOC.parent, text=True, env={"PYTHONPATH": "."},
    )  # fmt: skip
    assert said.strip() == "[]"


@pytest.mark.parametrize("floor", ["study", "budget"])
def test_planning_loads_no_heavy_library(floor):
    modules = [
        f"memloc.{floor}.{path.stem}"
        for path in sorted((MEMLOC / floor).glob("*.py"))
        if path.stem != "__init__"
    ]
    code = f"import {', '.join(modules)}, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    said = subprocess.check_output(
        [sys.executable, "-c", code], cwd=MEMLOC.parent, text=True, env={"PYTHONPATH": "."}
    )
    assert said.strip() == "[]"
