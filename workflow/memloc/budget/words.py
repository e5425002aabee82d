"""Numbers of jobs, hours, bytes, shares and tables in words, for a terminal and for the page."""

from collections.abc import Sequence

GB = 1e9


def align(rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    """Columns of equal width, two blanks between them; `left`: which are flush left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(widths[i]) if i in left else cell.rjust(widths[i])
            for i, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]


def number_of(number: int, noun: str) -> str:
    """ "1 job", "2,000 jobs"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float, digits: int = 0) -> str:
    """A share in per cent; only all of it is called 100 %, and only none of it 0 %."""
    text = f"{100 * share:.{digits}f}"
    if text == "100" and share < 1:
        return "more than 99 %"
    return "less than 1 %" if text == "0" and share > 0 else f"{text} %"


def in_hours(hours: float) -> str:
    """Hours with three digits; none is "-"."""
    if hours == 0:
        return "-"
    if hours < 0.01:
        return "<0.01"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"


def lasting(hours: float) -> str:
    """Hours as a span of time: "12 min", "3 h 05 min", "2 d 4 h"."""
    if hours >= 48:
        days, rest = divmod(round(hours), 24)
        return f"{days} d {rest} h"
    if hours >= 1:
        whole, minutes = divmod(round(60 * hours), 60)
        return f"{whole} h {minutes:02d} min"
    return f"{max(1, round(60 * hours))} min"


def moment(seconds: float) -> str:
    """Seconds as a short span of time: "8 s", else as `lasting` says it."""
    return f"{seconds:.0f} s" if seconds < 90 else lasting(seconds / 3600)


def in_bytes(count: float) -> str:
    """Bytes in MB, GB or TB."""
    if count >= 1e12:
        return f"{count / 1e12:.1f} TB"
    return f"{count / GB:.1f} GB" if count >= GB else f"{max(1, round(count / 1e6))} MB"
