"""Files of data-set repositories on the Hugging Face hub, all of one commit."""

import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from huggingface_hub import constants, hf_hub_download
from huggingface_hub import errors as hub_errors

from memloc.errors import MemlocError

Answer = TypeVar("Answer")
logger = logging.getLogger(__name__)
ATTEMPTS = 3  # in each, the client itself asks about a file for some 20 s
PAUSE = 2.0  # seconds before the second attempt; doubled for each further one
TIMEOUT = 20.0  # seconds to wait for the answer about a file


def fetch(
    repo: str,
    revision: str,
    files: list[str],
    *,
    endpoint: str | None = None,
    cache: str | Path | None = None,
    attempts: int = ATTEMPTS,
    pause: float = PAUSE,
    timeout: float = TIMEOUT,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[list[Path], str]:
    """Download `files` of a data-set repository, or find them in the cache.

    Returns their paths and the commit they are of. The first file fixes that commit, so that a
    branch which moves meanwhile can't mix two states. The hub's client keeps the cache, resumes
    interrupted downloads, and respects HF_HOME, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE. Raises
    MemlocError.
    """
    paths: list[Path] = []
    commit = revision
    for file in files:

        def get(file: str = file, commit: str = commit) -> str:
            return hf_hub_download(
                repo,
                file,
                repo_type="dataset",
                revision=commit,
                endpoint=endpoint,
                cache_dir=cache,
                etag_timeout=timeout,
            )

        name = f"{repo}@{revision}: {file}"
        paths.append(Path(patiently(get, name, repo, attempts, pause, sleep)))
        commit = _commit(paths[-1])
    return paths, commit


def _commit(path: Path) -> str:
    """The commit in a cached file's path, …/snapshots/COMMIT/…

    Read by hand: the client's resolve_revision needs a request of its own, and a mirror that
    answers it.
    """
    found = re.search(r"/snapshots/([^/]+)/", path.as_posix())
    if found is None:
        raise MemlocError(f"{path}: not where the hub's cache keeps files. Is HF_HOME set rightly?")
    return found.group(1)


def patiently(
    get: Callable[[], Answer],
    name: str,
    repo: str,
    attempts: int,
    pause: float,
    sleep: Callable[[float], None],
) -> Answer:
    """Call `get` until it succeeds, and return its answer; what waiting can't mend stops at once.

    Repeated by hand, because the client gives up on a server error in place of a file's content,
    and on a connection that stays away for some seconds while it downloads.
    """
    for attempt in range(1, attempts + 1):
        try:
            return get()
        except Exception as error:
            final = hopeless(error, name, repo)
            if final is not None:
                raise final from error
            if not _passing(error):
                raise
            if attempt == attempts:
                raise _unreachable(error, name, attempts) from error
            wait = pause * 2 ** (attempt - 1)
            logger.warning("%s: %s; trying again in %.0f s", name, _brief(error), wait)
            sleep(wait)
    raise AssertionError("attempts must be at least 1")


def hopeless(error: Exception, name: str, repo: str) -> MemlocError | None:
    """What to tell users of an error that no later attempt can mend; None for any other."""
    if isinstance(error, hub_errors.GatedRepoError):
        return gated(name, repo)
    if isinstance(error, hub_errors.RepositoryNotFoundError):
        return no_repository(name, "source.hub or source.dataset")
    if isinstance(error, hub_errors.RevisionNotFoundError):
        return no_revision(name)
    if isinstance(error, hub_errors.LocalEntryNotFoundError):
        return offline(name, constants.HF_HUB_CACHE) if constants.HF_HUB_OFFLINE else None
    if isinstance(error, hub_errors.EntryNotFoundError):
        return MemlocError(f"{name}: no such file in it. Check source.files in the task file.")
    if isinstance(error, hub_errors.OfflineModeIsEnabled):
        return offline(name, constants.HF_HUB_CACHE)
    if isinstance(error, hub_errors.HfHubHTTPError) and _status(error) in (401, 403):
        return MemlocError(
            f"{name}: access refused ({_status(error)}). Set HF_TOKEN to a valid one."
        )
    return None


def gated(name: str, repo: str) -> MemlocError:
    """The error for a data set whose terms have to be accepted."""
    return MemlocError(
        f"{name}: the data set is gated. Accept its terms at "
        f"{constants.ENDPOINT}/datasets/{repo} and set HF_TOKEN (or run `hf auth login`)."
    )


def no_repository(name: str, key: str) -> MemlocError:
    """The error for a data set that isn't there; `key` is where the task file names it."""
    return MemlocError(
        f"{name}: no such data set, or it is private. Check {key} in the task file; for a "
        "private one set HF_TOKEN."
    )


def no_revision(name: str) -> MemlocError:
    """The error for a branch or commit that isn't there."""
    return MemlocError(f"{name}: no such revision. Check source.revision in the task file.")


def offline(name: str, cache: str) -> MemlocError:
    """The error for data that are not in the cache while the hub is switched off."""
    return MemlocError(
        f"{name}: not in the cache ({cache}), and the hub is switched off "
        "(HF_HUB_OFFLINE). Retrieve once with the network, copy the cache, or serve the data from "
        "a folder with --config tasks_dir=FOLDER."
    )


def _unreachable(error: Exception, name: str, attempts: int) -> MemlocError:
    return MemlocError(
        f"{name}: not downloaded after {attempts} attempts: {_brief(error)}. Check the network and "
        "run again (finished parts are kept), or serve the data from a folder with "
        "--config tasks_dir=FOLDER."
    )


def _passing(error: Exception) -> bool:
    """Whether a later attempt may succeed: server trouble, time-outs, cut connections."""
    if isinstance(error, hub_errors.HfHubHTTPError):
        status = _status(error)
        return status is None or status in (408, 429) or status >= 500
    # The HTTP library's errors derive from Exception alone; its package differs by hub version.
    library = type(error).__module__.split(".")[0]
    return isinstance(error, OSError) or library.startswith(("httpx", "httpcore", "requests"))


def _status(error: hub_errors.HfHubHTTPError) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


def _brief(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
