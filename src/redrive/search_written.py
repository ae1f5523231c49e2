"""A field's term as it stands in the filter, before the field has made sense of it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from redrive.errors import FilterError
from redrive.search_terms import Op

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from redrive.search_scanner import Value

_LONGEST_SHOWN = 60


class Written(NamedTuple):
    """A field's term as it stands in the filter: `-name:comparison value,value`."""

    name: str
    comparison: Op | None
    values: tuple[Value, ...]
    """At least one."""
    negated: bool
    now: datetime


def wrong(text: str, column: int, remedy: str) -> NoReturn:
    raise FilterError(text, column=column, remedy=remedy)


def nearest(wanted: str, known: Iterable[str]) -> str:
    """A remedy: the one that was probably meant, or all of them. Capitals do not count."""
    names = {each.casefold(): each for each in known}
    close = get_close_matches(wanted.casefold(), names, n=1)
    return f"did you mean {names[close[0]]}?" if close else f"known: {', '.join(names.values())}."


def shown(text: str) -> str:
    """What was written, in quotes, for an error: a long one is not repeated whole."""
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


def values_op(written: Written) -> Op:
    """IS, BEGINS or EXISTS, for values that have no order. All values of a term are compared alike."""
    first, *others = written.values
    if written.comparison is not None:
        no_order(written)
    if first.begins and not first.text and not first.quoted and not others:
        return Op.EXISTS
    for each in written.values:
        if each.begins and not each.text:
            wrong("a beginning is missing in front of *", each.column, "* alone finds any value")
        if each.begins is not first.begins:
            wrong("some of these values end in * and some do not", each.column, "end all of them in *, or none")
    return Op.BEGINS if first.begins else Op.IS


def no_order(written: Written) -> NoReturn:
    wrong(
        f"{shown(written.name)} has no order",
        written.values[0].column - len(written.comparison or ""),
        "write the value directly behind the colon",
    )


def one_value(written: Written) -> Value:
    """The only value of a comparison."""
    if len(written.values) > 1:
        wrong(
            "one value too many to compare with",
            written.values[1].column,
            "write one term for each value",
        )
    value = written.values[0]
    if value.begins:
        wrong("* does not go with a comparison", value.column, "leave the * out")
    return value
