"""Make what is made of docs/: the page of the API from docstrings, and executed notebooks.

python docs/build.py        # `make docs`
"""

import inspect
import os
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).resolve().parent
LIBRARY = DOCS.parent / "workflow"
sys.path.insert(0, str(LIBRARY))

import memloc  # noqa: E402

HEAD = """# The library in a notebook

Made from the docstrings by `make docs`. [bert.ipynb](bert.ipynb) shows these functions at work,
and [decoder.ipynb](decoder.ipynb) on a decoder with an adapter.

```python
import memloc

found = memloc.swap(memorised, original, tokenizer, texts, labels, noisy)
found.mcog  # the memorisation centre of gravity, in layers
found.windows  # a row per window of layers, found.examples one per noisy text
found.plot()  # the matrix of windows
```

The numbers are those of the workflow, by the same code. Layers are numbered from 1. What
`pip install ".[models,figures]"` brings is enough.
"""


def api_page() -> str:
    """The text of docs/api.md."""
    parts = [_entry(name, getattr(memloc, name)) for name in memloc._DOOR]
    return HEAD + "".join(parts)


def _entry(name: str, thing: Any) -> str:
    called = "" if inspect.isclass(thing) else _arguments(thing)
    text = f"\n## memloc.{name}\n\n"
    if called:
        text += f"```python\nmemloc.{name}({called})\n```\n\n"
    return text + f"{inspect.getdoc(thing)}\n" + "".join(_members(thing))


def _arguments(function: Any) -> str:
    """Parameters with their defaults, as they are written in a call."""
    parts: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        name = f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
        given = parameter.default is not parameter.empty
        parts.append(f"{name}={parameter.default!r}" if given else name)
    return ", ".join(parts)


def _members(thing: Any) -> list[str]:
    """Public properties and methods of a class of results, by their docstrings."""
    if not inspect.isclass(thing) or issubclass(thing, Exception):
        return []
    found = []
    for name, member in vars(thing).items():
        called = inspect.isfunction(member)
        if name.startswith("_") or not (called or isinstance(member, property | cached_property)):
            continue
        text, call = inspect.getdoc(member), f"({_arguments(member)})" if called else ""
        found.append(f"\n**`{name}{call.replace('(self, ', '(')}`** {text}\n")
    return found


def executed(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook run from top to bottom, with this clone's library; errors of its cells raise."""
    paths = [str(LIBRARY), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": DOCS}})
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of each cell: another file at every run
    notebook.metadata.pop("language_info", None)
    return notebook


def notebooks() -> list[Path]:
    """The notebooks of docs/."""
    return sorted(DOCS.glob("*.ipynb"))


def main() -> None:
    (DOCS / "api.md").write_text(api_page(), encoding="utf-8")
    for path in notebooks():
        nbformat.write(executed(nbformat.read(path, as_version=4)), path)


if __name__ == "__main__":
    main()
