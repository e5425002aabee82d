"""What a task's files on this machine hold, counted before anything is retrieved: for the budget.

They are read as retrieval reads them, so that the plan of a study refuses a faulty file in the
same words, before its first job.
"""

import math
import re
from statistics import NormalDist
from typing import Any

import pandas as pd

from memloc.data.retrieve import read_checked
from memloc.store.files import bytes_of
from memloc.study.sources import local_files
from memloc.study.tasks import Task, task_params, text_columns

LARGEST = 20_000_000  # bytes of files that a plan reads: a second or two
P95 = NormalDist().inv_cdf(0.95)
# A word or a punctuation mark; in writing without spaces (Chinese, Japanese, Korean) a character.
WITHOUT_SPACES = r"\u3040-\u9fff\uac00-\ud7af"
WORD = re.compile(rf"[{WITHOUT_SPACES}]|[^\W{WITHOUT_SPACES}]+|[^\w\s]")


def count(task: Task) -> dict[str, Any] | None:
    """Rows of each split after the task file's filters, and words of a training input.

    task: as `load_task` gives it. rows: split (train and heldout, or all) -> count; words: median,
    at least 1, and spread of the logarithm, of all text columns together. None for a task without
    files on this machine, or with more than LARGEST bytes of them. MemlocError for faulty rows.
    """
    files = local_files(task)
    if not files or sum(map(bytes_of, files)) > LARGEST:
        return None
    frame, _ = read_checked(task_params(task), files)
    training = frame[frame["split"] != "heldout"]
    return {
        "rows": {str(name): int(n) for name, n in frame["split"].value_counts(sort=False).items()},
        "words": _words(training[text_columns(task)]),
    }


def _words(texts: pd.DataFrame) -> list[float]:
    """Median, and spread of the logarithm, from the 95th percentile."""
    words = texts.map(lambda text: len(WORD.findall(text))).sum(axis=1)
    median = max(1.0, float(words.median()))
    return [median, max(0.0, math.log(max(1.0, words.quantile(0.95)) / median) / P95)]
