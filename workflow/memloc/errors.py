"""The one exception that users are meant to read."""


class MemlocError(Exception):
    """Something a user can mend: the message names the file or key, the value, and the remedy."""
