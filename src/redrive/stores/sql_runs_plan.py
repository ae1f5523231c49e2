"""A run's plan as it is stored: JSON, read back as it was given.

A filter's values are texts, numbers or moments, and JSON has no moments: the term's field tells which they are.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from redrive.errors import UsageError
from redrive.letter_query import LetterQuery
from redrive.run import RunPlan
from redrive.search_terms import DataTerm, Field, FieldTerm, Filter, HeaderTerm, Op, TextTerm

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S", bound=msgspec.Struct)


class _StoredTerm(msgspec.Struct, kw_only=True, tag="FieldTerm"):
    field: Field
    op: Op
    values: tuple[str | int, ...] = ()
    negated: bool = False


class _StoredFilter(msgspec.Struct):
    terms: tuple[_StoredTerm | HeaderTerm | DataTerm | TextTerm, ...] = ()


def write(plan: RunPlan) -> bytes:
    try:
        return msgspec.json.encode(plan)
    except UnicodeEncodeError:
        raise UsageError(
            "the plan holds text that is not valid Unicode", remedy="write names and reasons as plain text"
        ) from None


@lru_cache(maxsize=16)  # it is read with every portion of the run's letters
def read(stored: bytes) -> RunPlan:
    return _struct(RunPlan, stored, selection=_selection)


def _selection(stored: msgspec.Raw) -> LetterQuery:
    return _struct(LetterQuery, stored, where=_filter)


def _filter(stored: msgspec.Raw) -> Filter:
    terms = msgspec.json.decode(stored, type=_StoredFilter).terms
    return Filter(tuple(_field_term(term) if isinstance(term, _StoredTerm) else term for term in terms))


def _field_term(stored: _StoredTerm) -> FieldTerm:
    values: tuple[Any, ...] = stored.values
    if stored.field in {Field.CREATED, Field.CHANGED}:
        values = tuple(msgspec.convert(value, datetime) for value in values)
    return FieldTerm(field=stored.field, op=stored.op, values=values, negated=stored.negated)


def _struct(kind: type[S], stored: bytes | msgspec.Raw, **readers: Callable[[msgspec.Raw], Any]) -> S:
    """Field by field: by its own reader, or as its type says."""
    raw = msgspec.json.decode(stored, type=dict[str, msgspec.Raw])
    types = _types(kind)
    return kind(
        **{
            name: readers[name](value) if name in readers else msgspec.json.decode(value, type=types[name])
            for name, value in raw.items()
            if name in types
        }
    )


@cache
def _types(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(kind)}
