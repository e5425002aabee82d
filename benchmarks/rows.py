"""Seconds that a data set of a million rows takes to be retrieved and perturbed, and the memory.

    PYTHONPATH=workflow python benchmarks/rows.py --rows 1000000

The rows are made up: 18 words of 5,000 and one of four labels, in a csv, jsonl or parquet file.
"""

import argparse
import json
import random
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import common
from memloc.data.perturb import perturb_file
from memloc.data.retrieve import retrieve
from memloc.study.sources import local_files
from memloc.study.tasks import load_task, task_params

LABELS = list("abcd")
FORMS = ("csv", "jsonl", "parquet")


def write_task(folder: Path, kind: str, count: int) -> None:
    """A task file and its rows."""
    stream = random.Random(0)
    words = [f"word{i}" for i in range(5000)]
    rows = [
        {"text": " ".join(stream.choices(words, k=18)), "label": LABELS[i % 4]}
        for i in range(count)
    ]
    file = folder / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif kind == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        file.write_text("text,label\n" + "".join(f"{r['text']},{r['label']}\n" for r in rows))
    task = {
        "label": "Rows",
        "category": "topic",
        "labels": LABELS,
        "columns": {"text": ["text"], "label": "label"},
        "split": {"all": "train", "share": 0.5},
        "source": {"files": {"train": file.name}},
    }
    (folder / "rows.yaml").write_text(json.dumps(task))  # which YAML reads as well


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    options = parser.parse_args(arguments)
    print(common.machine())
    for kind in options.forms:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_task(folder, kind, options.rows)
            task = load_task("rows", [folder])
            table = folder / "table.parquet"
            retrieved = common.seconds(
                lambda task=task, table=table, folder=folder: retrieve(
                    task_params(task), local_files(task), table, folder / "manifest.json"
                )
            )
            perturbed = common.seconds(
                lambda table=table, folder=folder: perturb_file(
                    table,
                    folder / "perturbed.parquet",
                    task="rows",
                    labels=LABELS,
                    share=0.5,
                    natural=False,
                    ratio=0.15,
                    data_seed=1,
                )
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{options.rows:,} rows of {kind}: retrieved in {retrieved:.1f} s, perturbed in "
            f"{perturbed:.1f} s; peak of this process so far {peak:.1f} GB"
        )


if __name__ == "__main__":
    main()
