"""Windows: all runs of consecutive layers, numbered 1..L (section 3.1)."""

from memloc.errors import MemlocError

Window = tuple[int, int]


def all_windows(n_layers: int) -> list[Window]:
    """The L(L+1)/2 windows (start, end), 1-based and inclusive, by start, then end."""
    return [(start, end) for start in range(1, n_layers + 1) for end in range(start, n_layers + 1)]


def window_name(window: Window) -> str:
    """How a window is written in file names and column names: ``(3, 5)`` is ``"3-5"``."""
    return f"{window[0]}-{window[1]}"


def window_of(name: str) -> Window:
    """The window that `window_name` made a name of, as in the columns of our own tables."""
    start, _, end = name.partition("-")
    return int(start), int(end)


def parse_window(name: str, n_layers: int) -> Window:
    """The window called `name`, or MemlocError when it is malformed or outside 1..n_layers."""
    parts = name.split("-")
    if len(parts) == 2 and all(part.isdecimal() for part in parts):
        start, end = window_of(name)
        if 1 <= start <= end <= n_layers and window_name((start, end)) == name:
            return start, end
    raise MemlocError(
        f"window {name!r}: expected START-END with 1 <= START <= END <= {n_layers} "
        f"(the model has {n_layers} layers), e.g. 1-{n_layers}"
    )


def parse_windows(spec: str, n_layers: int) -> list[Window]:
    """The windows a file name asks for: "all", "from-S" (those that start at S) or "S-E".

    Raises MemlocError when the model has no such window.
    """
    windows = all_windows(n_layers)
    if spec == "all":
        return windows
    if not spec.startswith("from-"):
        return [parse_window(spec, n_layers)]
    chosen = [window for window in windows if f"from-{window[0]}" == spec]
    if not chosen:
        raise MemlocError(
            f"windows {spec!r}: expected from-START with START in 1..{n_layers} "
            f"(the model has {n_layers} layers)"
        )
    return chosen
