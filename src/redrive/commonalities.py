"""What letters of a group have in common, and others of their queue have not: fields of their data, and headers.

Two samples are compared, value by value and by whether a field is there at all. What is told is where the group
differs by more than chance would make it. The messages are whatever their producers sent: everything is bounded,
nothing is trusted to be small, flat, or to have each key once. Whoever must not see values gives messages that are
masked.
"""

from __future__ import annotations

from collections import Counter, deque
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from redrive.control import OURS
from redrive.epoch import EPOCH
from redrive.errors import FilterError
from redrive.privacy.masks import holds_mask
from redrive.search_document import document, header_text
from redrive.search_grammar import parse
from redrive.search_terms import DataTerm, Filter, HeaderTerm, Op
from redrive.search_writing import unparse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from redrive.message import Message

MOST_FACTS = 300
"""Places of one message that are looked at, those nearest to its root first."""
MOST_HEADERS = 100
MOST_ELEMENTS = 3
DEEPEST = 8
LONGEST_NAME = 100
LONGEST_VALUE = 200
MOST_TOLD = 20
LEAST_DIFFERENCE = 0.2
_BEYOND_CHANCE = 3.0
"""Standard deviations. Hundreds of facts are compared, some of which differ by two of them by chance."""


class Relation(StrEnum):
    IS = "is"
    EXISTS = "exists"
    MISSING = "missing"


class Commonality(msgspec.Struct, frozen=True, kw_only=True):
    """What more letters of the group have than others of the queue do."""

    name: str
    """As in a filter: `data.country`, `header.tenant`."""
    relation: Relation
    value: str | None = None
    """As text, exact. None: it is about the field, not its value."""
    value_type: str | None = None
    """`string`, `number`, `boolean` or `null`."""
    here: int
    """Letters of the group's sample."""
    elsewhere: int
    """Letters of the other sample."""
    filter: str | None = None
    """Finds letters that have it. None: no filter can."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    here: int
    """Letters of the group that were compared: the newest."""
    elsewhere: int
    """Others of the queue."""
    commonalities: tuple[Commonality, ...]
    """The greatest difference first."""


class _Fact(NamedTuple):
    place: str
    path: tuple[str, ...]
    relation: Relation
    kind: str = ""
    value: str | Decimal = ""


class _Found(NamedTuple):
    difference: float
    """Of the two shares."""
    fact: _Fact
    here: int
    elsewhere: int


def compare(here: Iterable[Message], elsewhere: Iterable[Message]) -> Comparison:
    """The same messages in the same order are the same comparison."""
    mine, others = _Sample(here), _Sample(elsewhere)
    found = sorted(_differences(mine, others), key=_order) if mine.size and others.size else []
    told = [_told(each) for each in islice(_without_repetition(found), MOST_TOLD)]
    return Comparison(here=mine.size, elsewhere=others.size, commonalities=tuple(told))


class _Sample:
    """How many messages have which fact."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self.size = 0
        self.whole = 0
        """Messages of which every place was looked at: of the others nobody knows what they lack."""
        self._facts: Counter[_Fact] = Counter()
        self._of_whole: Counter[_Fact] = Counter()
        for message in messages:
            facts, is_whole = _facts(message)
            self.size += 1
            self._facts.update(facts)
            if is_whole:
                self.whole += 1
                self._of_whole.update(each for each in facts if each.relation is Relation.EXISTS)

    def number(self, fact: _Fact) -> int:
        if fact.relation is Relation.MISSING:
            return self.whole - self._of_whole[fact._replace(relation=Relation.EXISTS)]
        return self._facts[fact]

    def share(self, fact: _Fact) -> float:
        return self.number(fact) / self.size

    def facts(self) -> Iterator[_Fact]:
        return iter(self._facts)


def _differences(mine: _Sample, others: _Sample) -> Iterator[_Found]:
    fields = (each for each in others.facts() if each.relation is Relation.EXISTS)
    lacking = (each._replace(relation=Relation.MISSING) for each in fields)
    for fact in (*mine.facts(), *lacking):
        difference = mine.share(fact) - others.share(fact)
        if difference >= max(LEAST_DIFFERENCE, _BEYOND_CHANCE * _deviation(fact, mine, others)):
            yield _Found(difference, fact, mine.number(fact), others.number(fact))


def _deviation(fact: _Fact, mine: _Sample, others: _Sample) -> float:
    """Of the difference of two shares, if both samples were of one kind."""
    share = (mine.number(fact) + others.number(fact)) / (mine.size + others.size)
    return sqrt(share * (1 - share) * (1 / mine.size + 1 / others.size))


def _order(found: _Found) -> tuple[float, str, tuple[str, ...], str, str, str]:
    fact = found.fact
    return -found.difference, fact.place, fact.path, fact.relation, fact.kind, str(fact.value)


def _without_repetition(found: Sequence[_Found]) -> Iterator[_Found]:
    """That a field is there says nothing more if its value, or what it lies in, says the same of as many."""
    values = {each.fact[:2]: each for each in reversed(found) if each.fact.relation is Relation.IS}
    fields = {each.fact[:3]: each for each in found}
    for each in found:
        fact = each.fact
        value = values.get((fact.place, fact.path))
        holder = fields.get((fact.place, fact.path[:-1], fact.relation))
        if fact.relation is Relation.EXISTS and value is not None and value.difference >= each.difference:
            continue
        if fact.relation is not Relation.IS and holder is not None and holder[2:] == each[2:]:
            continue
        yield each


def _told(found: _Found) -> Commonality:
    fact = found.fact
    value = str(fact.value) if fact.relation is Relation.IS else None
    return Commonality(
        name=".".join((fact.place, *fact.path)),
        relation=fact.relation,
        value=value,
        value_type=fact.kind or None,
        here=found.here,
        elsewhere=found.elsewhere,
        filter=_filter(fact, value),
    )


def _filter(fact: _Fact, value: str | None) -> str | None:
    """None for what was masked, which is not what the letters have, and for what a filter cannot say."""
    if value is not None and holds_mask(value):
        return None
    op, values = (Op.EXISTS, ()) if value is None else (Op.IS, (value,))
    negated = fact.relation is Relation.MISSING
    if fact.place == "header":
        text = unparse(Filter((HeaderTerm(name=fact.path[0], op=op, values=values, negated=negated),)))
    else:
        text = unparse(Filter((DataTerm(path=fact.path, op=op, values=values, negated=negated),)))
    return text if _is_read(text) else None


def _is_read(text: str) -> bool:
    try:
        parse(text, now=EPOCH)
    except FilterError:
        return False
    return True


# What a message says


def _facts(message: Message) -> tuple[set[_Fact], bool]:
    """Each once, and whether they are all that there are."""
    found: set[_Fact] = set()
    is_whole = _look_into(document(message), found)
    names = sorted({name for name, _ in message.headers if len(name) <= LONGEST_NAME and name not in OURS})
    looked_at = set(names[:MOST_HEADERS])
    for name, value in message.headers:
        if name in looked_at:
            found |= set(_of_header(name, value))
    return found, is_whole and len(names) <= MOST_HEADERS


def _of_header(name: str, value: Any) -> Iterator[_Fact]:
    yield _Fact("header", (name,), Relation.EXISTS)
    text = header_text(value)
    if text is not None and len(text) <= LONGEST_VALUE:
        yield _Fact("header", (name,), Relation.IS, "string", text)


def _look_into(root: Any, found: set[_Fact]) -> bool:
    """From the root down, so that what lies near it is looked at first; keys in their order, for a message may
    have them in any.
    """
    waiting: deque[tuple[tuple[str, ...], Any]] = deque(_children((), root))
    left = MOST_FACTS
    while waiting and left:
        left -= 1
        path, value = waiting.popleft()
        found.add(_Fact("data", path, Relation.EXISTS))
        if isinstance(value, dict | list):
            if len(path) < DEEPEST:
                waiting.extend(_children(path, value))
        else:
            found |= set(_of_value(path, value))
    return not waiting


def _children(path: tuple[str, ...], holder: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(holder, dict):
        keys = sorted(key for key in holder if key and len(key) <= LONGEST_NAME)
        return (((*path, key), holder[key]) for key in keys[: MOST_FACTS + 1])  # one more, to be left over
    if isinstance(holder, list):
        return (((*path, str(at)), each) for at, each in enumerate(holder[:MOST_ELEMENTS]))
    return iter(())


def _of_value(path: tuple[str, ...], value: Any) -> Iterator[_Fact]:
    if value is None:
        yield _Fact("data", path, Relation.IS, "null", "null")
    elif isinstance(value, bool):
        yield _Fact("data", path, Relation.IS, "boolean", "true" if value else "false")
    elif isinstance(value, int | Decimal):
        yield from _of_number(path, Decimal(value))
    elif isinstance(value, str) and len(value) <= LONGEST_VALUE:
        yield _Fact("data", path, Relation.IS, "string", value)


def _of_number(path: tuple[str, ...], number: Decimal) -> Iterator[_Fact]:
    if len(str(number)) <= LONGEST_VALUE:
        yield _Fact("data", path, Relation.IS, "number", number)
