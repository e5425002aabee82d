"""`pip install .`: the package is memloc alone, whole, and asks for what it imports."""

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes

import pytest
import yaml
from packaging.requirements import Requirement

import memloc
from shipped import ROOT

LIBRARY = ROOT / "workflow" / "memloc"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# The extra that a package may rely on beside the core; of `machine`, what models alone need.
MODELS = ("machine", "data", "models", "training", "localise", "admission")
MODELS += ("explain", "generalise", "control", "bundle", "door")
EXTRA = dict.fromkeys(MODELS, "models") | dict.fromkeys(("figures", "report"), "figures")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The built wheel; its backend is in the lock, so that no network is needed."""
    pytest.importorskip("hatchling", reason="the build backend isn't installed: `make setup`")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--quiet", "--wheel-dir", folder, ROOT], check=True)
    (found,) = folder.glob("*.whl")
    return found


def names_in(wheel):
    return zipfile.ZipFile(wheel).namelist()


def test_it_holds_the_library_and_nothing_else(wheel):
    tops = {name.split("/")[0] for name in names_in(wheel)}
    assert tops == {"memloc", f"memloc-{memloc.__version__}.dist-info"}
    ours = [path for path in LIBRARY.rglob("*") if path.suffix in (".py", ".yaml")]
    assert {f"memloc/{path.relative_to(LIBRARY)}" for path in ours} <= set(names_in(wheel))


def test_its_version_is_that_of_the_library(wheel):
    (metadata,) = [name for name in names_in(wheel) if name.endswith(".dist-info/METADATA")]
    assert message_from_bytes(zipfile.ZipFile(wheel).read(metadata))["Version"] == (
        memloc.__version__
    )
    assert "version" not in PROJECT


def test_it_works_from_another_folder(wheel, tmp_path):
    """The files that modules read beside themselves included: here, a task's schema."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    (tmp_path / "own.yaml").write_text(
        "label: Own\ncategory: own\nsource: {files: {train: own.csv}}\n"
        "columns: {text: [text], label: label}\nlabels: [a, b]\nsplit: {all: train, share: 0.8}\n"
    )
    code = "import memloc; from memloc.study.tasks import load_task; print(memloc.__file__, "
    said = subprocess.check_output(
        [sys.executable, "-c", code + "load_task('own', ['.'])['label'])"],
        cwd=tmp_path,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
    )
    assert said.split() == [str(tmp_path / "site/memloc/__init__.py"), "Own"]


def requirements(*extras):
    listed = list(PROJECT["dependencies"])
    for extra in extras:
        listed += PROJECT["optional-dependencies"][extra]
    return [found for found in map(Requirement, listed) if found.name != "memloc"]


def normal(name):
    return name.lower().replace("_", "-")


def imports(path):
    """Top-level names that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)


def test_each_package_asks_for_what_it_imports():
    shipped_by = importlib.metadata.packages_distributions()
    wrong = []
    for path in sorted(LIBRARY.rglob("*.py")):
        where = path.relative_to(LIBRARY)
        extras = [EXTRA[where.parts[0]]] if where.parts[0] in EXTRA else []
        allowed = {normal(found.name) for found in requirements(*extras)}
        # what a requirement can't be had without may be imported as well
        allowed |= {"markupsafe"} if "jinja2" in allowed else set()
        for name in set(imports(path)) - set(sys.stdlib_module_names) - {"memloc"}:
            if not allowed & {normal(dist) for dist in shipped_by.get(name, [name])}:
                wrong.append(f"{where} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_what_it_asks_for_is_what_the_lock_pins():
    lines = (ROOT / "envs/requirements.lock").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    pinned = {normal(name): version for name, version in pinned.items()}
    asked = requirements(*PROJECT["optional-dependencies"])
    wrong = [
        f"{found} but {pinned.get(normal(found.name))}"
        for found in asked
        if not found.specifier.contains(pinned.get(normal(found.name), "0"))
    ]
    assert not wrong, "\n".join(wrong)
    listed = (ROOT / "envs/requirements.in").read_text().splitlines()
    chosen = [line.split("#")[0].strip() for line in listed]
    for name, version in (line.split("==") for line in chosen if line):
        assert pinned[normal(name)] == version, name


def test_the_conda_environment_needs_no_file_beside_it():
    # Snakemake copies it elsewhere, and makes it anew when its own content changes
    lines = (ROOT / "envs/requirements.lock").read_text().splitlines()
    environment = yaml.safe_load((ROOT / "envs/memloc.yaml").read_text())
    *_, by_pip = environment["dependencies"]
    assert by_pip["pip"] == [line for line in lines if not line.startswith("#")]


def test_the_demos_packages_are_pinned_by_checksum_and_never_built():
    lines = (ROOT / "envs/demo.lock").read_text().splitlines()
    pinned = [line for line in lines if line.strip() and not line.startswith("#")]
    assert pinned and all(re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", p) for p in pinned)
    commands = (ROOT / "Makefile").read_text().splitlines()
    installed = [line for line in commands if "--requirement envs/demo.lock" in line]
    assert installed and all("--require-hashes --only-binary :all:" in line for line in installed)
    bbc = (ROOT / "workflow/tasks/bbc.yaml").read_text()
    assert any(p.rpartition(":")[2] in bbc for p in pinned)  # the task's own checksum is the same
