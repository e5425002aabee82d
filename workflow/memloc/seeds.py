"""Seeds derived per purpose, so that no result hangs on global random state."""

import hashlib


def derive(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose, e.g. ``derive(1, "order", epoch)``.

    Distinct purposes give unrelated streams; the same purpose gives the same one on every
    machine (SHA-256 of the words, never Python's salted ``hash``).
    """
    words = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big") >> 1
