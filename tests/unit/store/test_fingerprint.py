"""Fingerprints follow code, through packages too, and nothing else."""

import ast
import sys

import pytest

from memloc.errors import MemlocError
from memloc.store import fingerprint as module
from memloc.store.fingerprint import PACKAGE, fingerprint, reached

FILES = {
    "__init__": "from memloc.beside import z\n",
    "top": "from memloc.middle import f\nx = f()\n",
    "middle": '"""Doc."""\nfrom memloc import bottom\ndef f():\n    """Doc."""\n    return 1\n',
    "bottom": "y = 2\n",
    "beside": "z = 3\n",
    # every way to import from a package
    "rooms/__init__": "from memloc.rooms.door import key\n",
    "rooms/door": "key = 1\n",
    "rooms/attic": "import memloc.rooms.inner.deep as d\n",
    "rooms/inner/__init__": "",
    "rooms/inner/deep": "from . import shelf\n",
    "rooms/inner/shelf": "def g():\n    from ...bottom import y\n    return y\n",
    "by_name": "from memloc.rooms.attic import d\n",
    "by_module": "from memloc.rooms import attic as a\n",
    "by_package": "from memloc.rooms import key\n",
}


@pytest.fixture
def package(tmp_path):
    """A package on disk, as a function that edits a module and gives the fingerprint of another."""
    for name, text in FILES.items():
        path = tmp_path / "memloc" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edited(of, name="top", old="", new=""):
        path = tmp_path / "memloc" / f"{name}.py"
        path.write_text(path.read_text().replace(old, new) if old else path.read_text() + new)
        module._read.cache_clear()
        return fingerprint(of, package=tmp_path / "memloc")

    return edited


def test_fingerprints_follow_code_and_imports_alone(package):
    first = package("top")
    assert package("top", "middle", "Doc.", "Other words.") == first
    assert package("top", "bottom", "y = 2", "# remark\ny = 2") == first
    assert package("top", "beside", "3", "4") == first
    assert package("top", "bottom", "y = 2", "y = 3") != first


@pytest.mark.parametrize(
    ("of", "edited"),
    [
        *(
            (of, at)
            for of in ("by_name", "by_module")
            for at in ("rooms/attic", "rooms/inner/deep")
        ),
        *((of, at) for of in ("by_name", "by_module") for at in ("rooms/inner/shelf", "bottom")),
        *(("by_package", at) for at in ("rooms/__init__", "rooms/door")),
    ],
)
def test_an_edit_anywhere_down_the_packages_counts(package, of, edited):
    first = package(of)
    assert package(of, edited, new="\nw = 9\n") != first


def test_the_packages_own_door_counts_for_nobody(package):
    first = package("by_name")
    assert package("by_name", "__init__", new="\n__version__ = '9'\n") == first


@pytest.mark.parametrize("text", ["from memloc.rooms.cellar import x", "import memloc.cellar"])
def test_an_import_that_leads_nowhere_is_an_error(package, text):
    with pytest.raises(MemlocError, match="cellar is imported, and there is no file"):
        package("top", new=f"\n{text}\n")


def test_what_is_kept_of_code_counts_only_where_it_is_whole_and_of_that_code(
    package, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    first = package("top")
    files = {path.name.partition(".")[0]: path for path in tmp_path.rglob("*.plain")}
    whole = {name: path.read_bytes() for name, path in files.items()}
    assert whole.keys() == {"top", "middle", "bottom"}
    of_middle = whole["middle"]
    for spoilt in (b"", b"?", of_middle[:-1], of_middle.replace(b"1", b"2"), whole["bottom"]):
        files["middle"].write_bytes(spoilt)
        assert package("top") == first
        assert files["middle"].read_bytes() == of_middle
    files["middle"].unlink()
    files["middle"].mkdir()  # nothing can be kept there
    assert package("top") == first
    files["middle"].rmdir()
    files["middle"].write_bytes(of_middle)
    monkeypatch.setattr(module, "_parsed", lambda text: pytest.fail("parsed again"))
    assert package("top") == first and not list(tmp_path.rglob("*.plain.*"))


def test_a_script_and_what_it_imports_count(package, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from memloc.beside import z\n")

    def found():
        module._read.cache_clear()
        return fingerprint("top", script=script, package=tmp_path / "memloc")

    first = found()
    package("top", "beside", new="\nw = 9\n")
    second = found()
    script.write_text("from memloc.beside import z\nprint(z)\n")
    assert len({first, second, found()}) == 3


def test_real_imports_are_followed_without_exception():
    """What Python would load of memloc for a module, but for packages' empty __init__ files."""
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        found = {other for other, _ in reached(name)}
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memloc."):
                base = node.module.partition(".")[2]
                inner = [f"{base}.{alias.name}" for alias in node.names]
                assert base in found or set(inner) <= found, f"{name}: {node.module}"
