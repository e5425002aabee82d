"""What a JSON schema finds wrong with a file of the user, in words that name key, value, remedy.

Planning imports this module: no torch, no pandas.
"""

import difflib
from collections.abc import Callable, Iterable
from datetime import date

from jsonschema import ValidationError as Fault
from jsonschema.exceptions import best_match

from memloc.errors import shortly

Special = Callable[[Fault, str], str | None]


def explain(faults: Iterable[Fault], guide: str, special: Special) -> str | None:
    """The most telling fault in words; None where there is none.

    `guide`: the file that shows or describes every key. `special` says what only this kind of file
    needs to have said of a fault and its key, or None.
    """
    fault = best_match(faults)
    if fault is None:
        return None
    key = ".".join(str(part) for part in fault.absolute_path)
    return special(fault, key) or _common(fault, key) or _other(fault, key, guide)


def _common(fault: Fault, key: str) -> str | None:
    """Faults that need more words than the schema's own."""
    given = fault.instance
    if fault.validator == "additionalProperties" and isinstance(given, dict):
        known = fault.schema.get("properties", {})
        unknown = next((name for name in given if name not in known), None)
        where = f"{key}.{unknown}" if key else unknown
        return f"unknown key {where!r}{did_you_mean(str(unknown), known)}. Known: {listed(known)}"
    if fault.validator == "type" and fault.validator_value == "array":
        return f"{key} = {shortly(given)}: write a list, as [{str(given)[:60]}]"
    if fault.validator == "type" and fault.validator_value == "string":
        return _no_text(given, key)
    if fault.validator == "uniqueItems":
        twice = sorted({str(item) for item in given if given.count(item) > 1})
        return f"{key} lists {shortly(', '.join(twice), 300)} twice; name each once"
    return None


def _no_text(given: object, key: str) -> str | None:
    """What YAML took for something else than the text, such as a name, that was meant."""
    if isinstance(given, bool):
        return (
            f"{key} = {given!r}: YAML reads an unquoted yes, no, true or false as a truth value; "
            'write it in quotes: "yes"'
        )
    if given is None:
        return (
            f"{key}: YAML reads an unquoted null, ~ or nothing as no value; write it in quotes: "
            '"null"'
        )
    if isinstance(given, (int, float, date)):
        return (
            f"{key} = {shortly(given)}: YAML reads a number or date here (007 as 7, 1_000 as "
            '1000); write a text in quotes, as it is meant: "007"'
        )
    return None


def _other(fault: Fault, key: str, guide: str) -> str:
    """Any other fault: the schema's own words, and what the key means."""
    if fault.validator == "required":
        return f"{key or 'top level'}: {fault.message}; {guide} shows every key"
    meaning = fault.schema.get("description") if isinstance(fault.schema, dict) else None
    remedy = f"meaning of the key: {meaning}" if meaning else f"{guide} says what it may be"
    return f"{key or 'top level'} = {shortly(fault.instance)}: {_brief(fault)}; {remedy}"


def _brief(fault: Fault) -> str:
    """The schema's own words, which begin with the whole value."""
    whole, shown = repr(fault.instance), shortly(fault.instance)
    return fault.message.replace(whole, shown) if len(shown) < len(whole) else fault.message


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``" (did you mean 'x'?)"`` for a close match, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def listed(names: Iterable[str]) -> str:
    """Names in order, for a message."""
    return ", ".join(sorted(names))
