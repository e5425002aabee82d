"""`memloc verify`: whether results or a bundle are as they were made, and windows again."""

import argparse
import tempfile
from pathlib import Path

from memloc.budget.words import number_of
from memloc.bundle.archive import is_archive
from memloc.bundle.compare import Found, in_archive, in_folder, in_results, unpack
from memloc.bundle.pack import MANIFEST
from memloc.errors import MemlocError, encodable
from memloc.study.noted import noted_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("place", help="a bundle, a folder it was unpacked in, or a results_dir")
    parser.add_argument("--windows", help="compute these again and compare, as in 3-5,1-1")
    parser.add_argument(
        "--table", help="of this table alone, as in results/rte/bert/seed1/swap.tsv"
    )
    for name in ("task", "model", "seed"):
        parser.add_argument(f"--{name}", help=f"of this {name} alone")
    parser.add_argument("--resources", help="of a results_dir: where its models are")


def main(arguments: argparse.Namespace) -> int:
    """Compare all files with what is said of them; then, if asked to, windows with their table."""
    place = Path(arguments.place)
    if arguments.windows is not None and not arguments.windows.strip(" ,"):
        raise MemlocError(
            f"--windows {arguments.windows!r} names no window. Name some, as in 3-5,1-1"
        )
    if not place.exists():
        raise MemlocError(f"{place} doesn't exist. Name a bundle, or a folder of results")
    found = _found(place)
    for fault in found.faults:
        print(encodable(fault))
    print(_said(place, found))
    if found.faults or arguments.windows is None:
        return int(bool(found.faults))
    if place.is_dir():
        return _again(place, found, arguments)
    with tempfile.TemporaryDirectory(prefix="memloc-") as folder:
        unpack(place, Path(folder))
        return _again(Path(folder), found, arguments)


def _found(place: Path) -> Found:
    if place.is_dir():
        return in_folder(place) if (place / MANIFEST).exists() else in_results(place)
    if not is_archive(place):
        raise MemlocError(f"{place} is no bundle of memloc, or its beginning is damaged")
    return in_archive(place)


def _said(place: Path, found: Found) -> str:
    if found.faults:
        return f"{place}: {number_of(len(found.faults), 'fault')} in {found.count:,} files"
    counts = ((len(found.left_out), "left out"), (found.since, "made since"))
    more = "".join(f"; {number_of(count, 'result')} {what}" for count, what in counts if count)
    return f"{place}: {number_of(found.count, 'file')} as they were made{more}"


def _again(folder: Path, found: Found, arguments: argparse.Namespace) -> int:
    """Compute windows again, below a folder of results and of resources."""
    from memloc.bundle.again import Asked, compute_again  # which reads torch

    if found.results is None:
        config = noted_settings(folder) or {}
        resources = arguments.resources or config.get("resources_dir")
        results = folder
    else:
        results, resources = folder / found.results, folder / str(found.resources)
    if resources is None:
        raise MemlocError(f"{folder}: where its models are isn't noted. Name it: --resources")
    asked = Asked(
        arguments.windows, arguments.table, arguments.task, arguments.model, arguments.seed
    )
    lines, same = compute_again(results, Path(resources), asked)
    print("\n".join(lines))
    return int(not same)
