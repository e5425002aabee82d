"""What a study needs from outside, and has: a line for each of its data sets and models."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.store.files import bytes_of, read_json, readable
from memloc.store.tables import write_tsv

logger = logging.getLogger(__name__)
COLUMNS = ["kind", "name", "source", "commit", "size", "bytes"]


def write_fetched(
    output: str | Path, tasks: Mapping[str, Sequence[str]], models: Mapping[str, str]
) -> None:
    """Write and log what was fetched (COLUMNS); size: rows of a task, parameters of a model.

    `tasks`: name -> its retrieved table and manifest; `models`: name -> its folder.
    """
    rows = [_task(name, *files) for name, files in tasks.items()]
    rows += [_model(name, folder) for name, folder in models.items()]
    for row in rows:
        what = "rows" if row["kind"] == "task" else "parameters"
        at = f" at {row['commit']}" if row["commit"] else ""
        logger.info(
            "%s %s: %s %s, %s, from %s%s",
            *(row["kind"], row["name"], f"{row['size']:,}", what, readable(row["bytes"])),
            *(row["source"], at),
        )
    whole = readable(sum(row["bytes"] for row in rows))
    logger.info("%d tasks and models are here, %s: no later job needs a network", len(rows), whole)
    write_tsv(pd.DataFrame(rows), output, COLUMNS)


def _task(name: str, table: str, manifest: str) -> dict[str, Any]:
    facts = read_json(manifest)
    served = facts["source"]
    where = served.get("repository") or served.get("package") or _places(served["files"])
    return {
        "kind": "task",
        "name": name,
        "source": f"{served['kind']} {where}",
        "commit": served.get("commit", ""),
        "size": sum(facts["rows"].values()),
        "bytes": Path(table).stat().st_size,
    }


def _places(files: Iterable[str]) -> str:
    """The folders that files lie in."""
    return ", ".join(sorted({str(Path(file).parent) for file in files}))


def _model(name: str, folder: str) -> dict[str, Any]:
    facts = read_json(Path(folder) / "manifest.json")
    kind = next(kind for kind in ("hub", "package", "folder") if kind in facts["source"])
    return {
        "kind": "model",
        "name": name,
        "source": f"{kind} {facts['source'][kind]}",
        "commit": facts.get("commit", ""),
        "size": int(facts["parameters"]),
        "bytes": bytes_of(folder),
    }
