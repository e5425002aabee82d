"""Section Provenance: what each result came from."""

import yaml

from memloc.report.parts import Content, Part, Section
from memloc.report.records import memloc_versions


def build(content: Content) -> Section:
    """The version of memloc, and what each result came from: a block of records per task."""
    texts = [
        {
            "title": f"Records of {content.task_label(task)}: {len(found)}",
            "text": "\n".join(
                f"# {path}\n{yaml.safe_dump(record, allow_unicode=True)}" for path, record in found
            ),
        }
        for task, found in content.found_records.items()
        if found
    ]
    intro = (
        "Parameters, seeds, versions and device as recorded beside each result."
        if texts
        else "No records were found beside the results."
    )
    facts = [("memloc", ", ".join(memloc_versions(content)))]
    return Section([Part(texts=texts)], intro=intro, facts=facts)
