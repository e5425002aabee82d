"""Data sets of the hub as `datasets` loads them: configurations, splits and names of classes.

Cache, offline mode, progress bars and the meaning of a repository's files are its own. Never is
code of a repository run: it has none that `datasets` would run.
"""

import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
from huggingface_hub import constants

from memloc.data import hub
from memloc.data.columnar import refuse_lacking, rows_of
from memloc.data.readers import as_table, read_file
from memloc.errors import MemlocError, listed, shortly
from memloc.store.files import reading
from memloc.store.provenance import sha256

logger = logging.getLogger(__name__)
Tables = dict[str, pd.DataFrame]
TYPED = ("parquet", "arrow")
# Read by our own readers, which guess nothing and number lines (see separated and json_rows).
TEXT = ("csv", "json")


def load(
    source: dict[str, Any],
    splits: list[str],
    *,
    cache: str | Path | None = None,
    attempts: int = hub.ATTEMPTS,
    pause: float = hub.PAUSE,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Tables, dict[str, Any]]:
    """Raw tables of `splits` of a task's `source`, and what served them: commit, hashes of files.

    `source` has dataset (OWNER/NAME), revision and, where there are several, config. Raises
    MemlocError, whose words are those of `hub.fetch` for the same trouble.
    """
    repo, revision = source["dataset"], source["revision"]
    name = f"{repo}@{revision}"

    def patiently(work: Callable[[], Any]) -> Any:
        def get() -> Any:
            try:
                return work()
            except Exception as error:
                said = _told(error, name, repo)
                if said is None:
                    raise
                raise said from error

        return hub.patiently(get, name, repo, attempts, pause, sleep)

    builder = patiently(
        lambda: datasets.load_dataset_builder(
            # With hf:// a folder of this name in the working folder is not taken for it.
            f"hf://datasets/{repo}",
            name=source.get("config"),
            revision=revision,
            cache_dir=None if cache is None else str(cache),
        )
    )
    commit = str(builder.hash)
    kind = _kind(builder, name)
    if re.fullmatch("[0-9a-f]{40}", revision) and commit != revision:
        raise MemlocError(
            f"{name}: the hub can't be reached, and the newest state in the cache "
            f"({datasets.config.HF_DATASETS_CACHE}) is {commit}. Run again with the network."
        )
    shown = f"{repo}: {builder.config.name} "
    if kind in TEXT:
        tables, hashes = _from_text_files(builder, source, commit, splits)
    else:
        patiently(lambda: _prepare(builder))
        refuse_lacking(splits, builder.info.splits, name)
        tables, hashes = {}, _hashes(builder, repo)
        for split in splits:
            with reading(f"{shown}{split}", "Look at the repository, or use another revision."):
                rows = rows_of(builder.as_dataset(split=split), named=True)
            tables[split] = as_table(rows, f"{shown}{split} ", f"{shown}{split}")
    served = {"kind": "dataset", "repository": repo, "config": builder.config.name}
    return tables, served | {"revision": revision, "commit": commit, "files": hashes}


def _kind(builder: Any, name: str) -> str:
    """The form of a data set's files, also where only the prepared data are in the cache."""
    kind = type(builder).__module__.split(".")[-1]
    if kind == "cache":
        kind = str(builder.info.builder_name)
        allowed: tuple[str, ...] = TYPED
    else:
        allowed = TYPED + TEXT
    if kind not in allowed:
        raise MemlocError(
            f"{name}: its files are of the kind {kind!r}, and memloc reads {listed(allowed)} so. "
            "Name files of a kind it reads with source.hub and source.files."
        )
    return kind


def _prepare(builder: Any) -> None:
    """Download the data, or find them in the cache, with the hashes of the files they came in."""

    def manager() -> datasets.DownloadManager:
        settings = datasets.DownloadConfig(use_etag=False, token=builder.token)
        place = {"dataset_name": builder.dataset_name, "base_path": builder.base_path}
        return datasets.DownloadManager(download_config=settings, record_checksums=True, **place)

    builder.download_and_prepare(dl_manager=manager())
    cached = type(builder).__module__.endswith("cache")
    if not builder.info.download_checksums and not cached:
        # Prepared by another program, which kept no hashes: once more, from the downloaded files.
        builder.download_and_prepare(
            dl_manager=manager(), download_mode=datasets.DownloadMode.REUSE_CACHE_IF_EXISTS
        )


def _hashes(builder: Any, repo: str) -> dict[str, str]:
    """SHA-256 of the files that the data came in, by name."""
    found = {
        f"{repo}: {url.split('@', 1)[-1].partition('/')[2]}": facts["checksum"]
        for url, facts in (builder.info.download_checksums or {}).items()
    }
    if not found:
        logger.warning("%s: the cache has the data without the hashes of their files", repo)
    return dict(sorted(found.items()))


def _from_text_files(
    builder: Any, source: dict[str, Any], commit: str, splits: list[str]
) -> tuple[Tables, dict[str, str]]:
    """Tables of csv and json files, which `datasets` only finds."""
    repo = source["dataset"]
    files = builder.config.data_files
    refuse_lacking(splits, files, f"{repo}@{commit}")
    form = source | _form(builder, f"{repo}@{commit}")
    tables, hashes = {}, {}
    for split in splits:
        names = [url.removeprefix(f"hf://datasets/{repo}@{commit}/") for url in files[split]]
        paths, _ = hub.fetch(repo, commit, names)
        parts = []
        for name, path in zip(names, paths, strict=True):
            parts.append(read_file(path, form, f"{repo}: {name}"))
            hashes[f"{repo}: {name}"] = sha256(path)
        tables[split] = pd.concat(parts, ignore_index=True)
    return tables, hashes


def _form(builder: Any, name: str) -> dict[str, str]:
    """What a data set's card says of its text files, as keys of our readers."""
    if getattr(builder.config, "field", None):
        raise MemlocError(
            f"{name}: its rows lie below the key {builder.config.field!r} of json files, where "
            "memloc does not look. Write them as one object per line to a file of your own."
        )
    separator = getattr(builder.config, "delimiter", None) or getattr(builder.config, "sep", None)
    return {"format": "tsv"} if separator == "\t" else {}


# --- what went wrong -------------------------------------------------------------------------


def _told(error: Exception, name: str, repo: str) -> MemlocError | None:
    """What to tell users of trouble that no later attempt can mend; None for any other."""
    for link in _chain(error):
        said = hub.hopeless(link, name, repo)
        if said is not None:
            return said
    text = " ".join(str(error).split())
    if "is a gated dataset" in text:
        return hub.gated(name, repo)
    if text.startswith("Revision "):
        return hub.no_revision(name)
    if "doesn't exist on the Hub or cannot be accessed" in text:
        return hub.no_repository(name, "source.dataset")
    lacking = isinstance(error, OSError) or "Couldn't find cache" in text
    if lacking and constants.HF_HUB_OFFLINE:
        return hub.offline(name, str(datasets.config.HF_DATASETS_CACHE))
    if "scripts are no longer supported" in text:
        return MemlocError(
            f"{name}: is a script, and memloc runs no code of a data set. Most have their rows as "
            "files on the branch refs/convert/parquet: name them with source.hub, "
            "source.revision and source.files."
        )
    if isinstance(error, ValueError) and ("Config" in text or "config" in text):
        return MemlocError(f"{name}: {shortly(text, 400)} Correct source.config in the task file.")
    if isinstance(
        error,
        datasets.exceptions.DatasetsError
        | pa.ArrowException
        | datasets.data_files.EmptyDatasetError,
    ):
        cause = " ".join(str(error.__cause__ or error).split())
        return MemlocError(
            f"{name}: can't be loaded: {type(error).__name__}: {shortly(cause, 300)}. Look at the "
            "repository; files can be named with source.hub and source.files."
        )
    return None


def _chain(error: BaseException | None) -> list[Exception]:
    """An error and those that it came of."""
    links: list[Exception] = []
    while isinstance(error, Exception) and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links
