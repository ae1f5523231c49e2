"""What a filter means, in plain Python over one letter with its body. Stores must find the same letters."""

from __future__ import annotations

import operator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from redrive.access import fits
from redrive.search_document import body_words, document, error_words, header_text
from redrive.search_terms import (
    DataTerm,
    Field,
    FieldTerm,
    Filter,
    HeaderTerm,
    Op,
    Term,
    TextTerm,
    index_of,
    number_of,
)
from redrive.words import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from redrive.access import Scope
    from redrive.dead_letter import DeadLetter
    from redrive.message import Headers

_COMPARE = {Op.MORE: operator.gt, Op.LESS: operator.lt, Op.AT_LEAST: operator.ge, Op.AT_MOST: operator.le}
_WORDS_OF_JSON = {"true": True, "false": False, "null": None}


def matches(
    filter_: Filter,
    letter: DeadLetter,
    within: Scope = None,
    /,
    *,
    event_type: str | None = None,
    correlation: str | None = None,
    owner: str | None = None,
) -> bool:
    """Whether every term matches, and the letter's queue is one of those in `within`. `owner` is that of the
    letter's group; the letter has its current body.
    """
    if within is not None and not any(fits(letter.queue, pattern) for pattern in within):
        return False
    facts = _facts(letter, event_type=event_type, correlation=correlation, owner=owner)
    return all(_holds(term, letter, facts) is not term.negated for term in filter_.terms)


def _holds(term: Term, letter: DeadLetter, facts: dict[Field, tuple[Any, ...]]) -> bool:
    if isinstance(term, FieldTerm):
        return field_matches(term, facts[term.field])
    if isinstance(term, HeaderTerm):
        return header_matches(term, letter.message.headers)
    if isinstance(term, DataTerm):
        return data_matches(term, document(letter.message))
    return text_matches(term, error_words(letter.type, letter.text)) or text_matches(
        term, body_words(letter.message.body)
    )


def _facts(
    letter: DeadLetter, *, event_type: str | None, correlation: str | None, owner: str | None
) -> dict[Field, tuple[Any, ...]]:
    return {
        Field.QUEUE: (letter.queue,),
        Field.TYPE: (letter.type, letter.type.rpartition(".")[2]),
        Field.HANDLER: (letter.handler,),
        Field.STATUS: (str(letter.status),),
        Field.KIND: (letter.kind,),
        Field.GROUP: (letter.group_id,),
        Field.SOURCE: (letter.message.source,),
        Field.ID: (letter.id,),
        Field.CORRELATION: (correlation,),
        Field.EVENT: (event_type,),
        Field.ATTEMPTS: (letter.attempts,),
        Field.GENERATION: (letter.generation,),
        Field.REVISION: (letter.revision,),
        Field.OWNER: (owner,),
        Field.CREATED: (letter.created_at,),
        Field.CHANGED: (letter.changed_at,),
    }


def field_matches(term: FieldTerm, facts: Sequence[Any]) -> bool:
    """Whether one of a letter's values for the field does. None is no value."""
    present = [fact for fact in facts if fact is not None and fact != ""]
    if term.op is Op.EXISTS:
        return bool(present)
    return any(_compares(term.op, fact, value) for fact in present for value in term.values)


def _compares(op: Op, fact: Any, value: Any) -> bool:
    if op is Op.IS:
        return bool(fact == value)
    return fact.startswith(value) if op is Op.BEGINS else bool(_COMPARE[op](fact, value))


def header_matches(term: HeaderTerm, headers: Headers) -> bool:
    """A name that comes twice matches by any of its values."""
    named = [value for name, value in headers if name == term.name]
    if term.op is Op.EXISTS:
        return bool(named)
    texts = [text for text in map(header_text, named) if text is not None]
    return any(_compares(term.op, text, value) for text in texts for value in term.values)


def data_matches(term: DataTerm, data: Any) -> bool:
    """`data` as `search_document.document` gives it. An array at the end of the path matches by any of its
    elements.
    """
    found = [] if data is UNSET else list(_led_to(data, term.path))
    if term.op is Op.EXISTS:
        return bool(found)
    ends = [end for each in found for end in (each if isinstance(each, list) else [each])]
    return any(_datum_matches(term.op, end, value) for end in ends for value in term.values)


def _led_to(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """Where a path ends. An array on the way is entered at the place that the segment names; if it names none, the
    path goes on in every object among its elements.
    """
    if not path:
        yield value
    elif isinstance(value, dict):
        if path[0] in value:
            yield from _led_to(value[path[0]], path[1:])
    elif isinstance(value, list):
        index = index_of(path[0])
        if index is None:
            for each in value:
                if isinstance(each, dict):
                    yield from _led_to(each, path)
        elif index < len(value):
            yield from _led_to(value[index], path[1:])


def _datum_matches(op: Op, datum: Any, value: str) -> bool:
    """Text compares with text by code points; a number with a number by its size, however it is written."""
    number = number_of(value)
    if isinstance(datum, str):
        return _compares(op, datum, value) if op in (Op.IS, Op.BEGINS) or number is None else False
    if op is Op.BEGINS:
        return False
    if isinstance(datum, bool) or datum is None:
        return op is Op.IS and value in _WORDS_OF_JSON and datum is _WORDS_OF_JSON[value]
    return number is not None and isinstance(datum, int | Decimal) and _compares(op, datum, number)


def text_matches(term: TextTerm, found: Sequence[str]) -> bool:
    """Whether the term's words stand next to each other, in order, among the words found."""
    *firsts, last = words(term.text)
    for start in range(len(found) - len(firsts)):
        end = found[start + len(firsts)]
        if (end.startswith(last) if term.begins else end == last) and found[start : start + len(firsts)] == firsts:
            return True
    return False
