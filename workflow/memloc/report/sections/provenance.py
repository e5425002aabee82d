"""Section Provenance: what each result came from."""

import yaml

from memloc.report.parts import Part, Section
from memloc.report.records import records


def build(content):
    """What each result came from: the records of one task in one block."""
    texts = [
        {
            "title": f"Records of {content.task_label(task)}: {len(found)}",
            "text": "\n".join(
                f"# {path}\n{yaml.safe_dump(record, allow_unicode=True)}" for path, record in found
            ),
        }
        for task, found in records(content).items()
        if found
    ]
    intro = (
        "Parameters, seeds, versions and device as recorded beside each result."
        if texts
        else "No records were found beside the results."
    )
    return Section([Part(texts=texts)], intro=intro)
