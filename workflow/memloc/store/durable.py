"""What the disk itself holds, and not only the memory that a power failure clears."""

import errno
import os
from pathlib import Path

NO_SYNC = (errno.EINVAL, errno.ENOTSUP)  # file systems that can't sync a folder


def sync_all(path: Path) -> None:
    """Have the disk hold a file, or a folder with all that is in it."""
    for folder, _, names in os.walk(path):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))
    if not path.is_dir():
        sync(path)


def sync(path: Path) -> None:
    """Have the disk hold what a file contains, or which names are in a folder."""
    if path.is_symlink():
        return
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise
    finally:
        os.close(file)
