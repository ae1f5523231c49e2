"""The fields of the filter language: their names, what each accepts, and how its values are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from redrive.dead_letter import Status
from redrive.failure import FailureKind
from redrive.search_moments import read_age, reader_of_moment, reader_of_side
from redrive.search_terms import Field, FieldTerm, Op
from redrive.search_written import Written, nearest, no_order, one_value, shown, values_op, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from redrive.search_scanner import Value

SHORTEST_ID = 4
MAX_NUMBER = 2**31 - 1
_HEXADECIMAL = frozenset("0123456789abcdef-")


class Reading(NamedTuple):
    what: str
    """For people: what it selects by."""
    example: str
    read: Callable[[Written], FieldTerm]


def _text(field: Field) -> Callable[[Written], FieldTerm]:
    def read(written: Written) -> FieldTerm:
        op = values_op(written)
        if op is Op.EXISTS:
            return FieldTerm(field=field, op=op, negated=written.negated)
        for each in written.values:
            if not each.text:
                wrong("an empty value", each.column, f"-{field}:* finds letters without any")
        return FieldTerm(
            field=field, op=op, values=tuple(each.text for each in written.values), negated=written.negated
        )

    return read


def _known(field: Field, known: Iterable[str]) -> Callable[[Written], FieldTerm]:
    by_name = {each.casefold(): str(each) for each in known}

    def read_one(value: Value) -> str:
        found = by_name.get(value.text.casefold())
        if found is None or value.begins:
            close = nearest(value.text, by_name.values())
            wrong(f"no {field} is called {_shown(value)}", value.column, close)
        return found

    return _each(field, Op.IS, read_one)


def _beginning(field: Field) -> Callable[[Written], FieldTerm]:
    def read_one(value: Value) -> str:
        text = value.text.lower()
        if len(text.replace("-", "")) < SHORTEST_ID or not _HEXADECIMAL.issuperset(text):
            wrong(
                f"{shown(value.text)} is not the beginning of an id",
                value.column,
                f"give at least {SHORTEST_ID} characters of it: digits and a to f",
            )
        return text

    return _each(field, Op.BEGINS, read_one)


def _each(field: Field, op: Op, read_one: Callable[[Value], str]) -> Callable[[Written], FieldTerm]:
    def read(written: Written) -> FieldTerm:
        if written.comparison is not None:
            no_order(written)
        values = tuple(read_one(each) for each in written.values)
        return FieldTerm(field=field, op=op, values=values, negated=written.negated)

    return read


def _shown(value: Value) -> str:
    return shown(value.text + "*" * value.begins)


def _number(field: Field) -> Callable[[Written], FieldTerm]:
    def read_one(value: Value) -> int:
        digits = value.text.isascii() and value.text.isdigit() and len(value.text) <= len(str(MAX_NUMBER))
        if not digits or value.begins or int(value.text) > MAX_NUMBER:
            wrong(
                f"{_shown(value)} is not a number of {field}",
                value.column,
                f"write it like {field}:3 or {field}:>=3, at most {MAX_NUMBER:,}",
            )
        return int(value.text)

    def read(written: Written) -> FieldTerm:
        values = written.values if written.comparison is None else (one_value(written),)
        numbers = tuple(read_one(each) for each in values)
        return FieldTerm(field=field, op=written.comparison or Op.IS, values=numbers, negated=written.negated)

    return read


FIELDS: dict[str, Reading] = {
    "queue": Reading("the queue it failed in", "queue:orders", _text(Field.QUEUE)),
    "type": Reading("the exception's type, its full name or last part", "type:TimeoutError", _text(Field.TYPE)),
    "handler": Reading("the handler that gave up", "handler:charge", _text(Field.HANDLER)),
    "status": Reading("its status", "status:PENDING,QUARANTINED", _known(Field.STATUS, Status)),
    "kind": Reading("the kind of the last failure", "kind:permanent", _known(Field.KIND, FailureKind)),
    "group": Reading("its group's id or the beginning of it", "group:9f2c", _beginning(Field.GROUP)),
    "source": Reading("who sent the message", "source:checkout", _text(Field.SOURCE)),
    "id": Reading("its id or the beginning of it", "id:0198f2", _beginning(Field.ID)),
    "correlation": Reading("the message's correlation id", "correlation:abc-123", _text(Field.CORRELATION)),
    "event": Reading("the message's event type", "event:order.*", _text(Field.EVENT)),
    "attempts": Reading("how often it was tried", "attempts:>=3", _number(Field.ATTEMPTS)),
    "generation": Reading("which life it is in", "generation:>1", _number(Field.GENERATION)),
    "revision": Reading("how often it was edited", "revision:>0", _number(Field.REVISION)),
    "owner": Reading("who owns its group", "owner:payments", _text(Field.OWNER)),
    "age": Reading("how long ago it was recorded", "age:>2d", read_age),
    "before": Reading("recorded before that moment", "before:2026-11-01", reader_of_side(Op.LESS)),
    "after": Reading("recorded at that moment or later", "after:2026-11-01", reader_of_side(Op.AT_LEAST)),
    "created": Reading(
        "the moment it was recorded", "created:<=2026-11-01T12:00:00Z", reader_of_moment(Field.CREATED)
    ),
    "changed": Reading("the moment it changed last", "changed:<10m", reader_of_moment(Field.CHANGED)),
}
"""By the name that is written. `header.NAME` and `data.PATH` are read by the grammar."""

OPEN_FIELDS = {
    "header.NAME": ("a header of the message", "header.tenant:acme"),
    "data.PATH": ("a value in the message's data", "data.customer.id:123"),
}


def check_field(name: str, column: int) -> None:
    """FilterError with the nearest name, unless a field is called so."""
    if name not in FIELDS:
        close = nearest(name, [*FIELDS, *OPEN_FIELDS])
        wrong(f"unknown field {shown(name)}", column, f"{close} To look for text with a colon, put it in quotes")
