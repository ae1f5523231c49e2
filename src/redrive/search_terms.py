"""What a filter is, once its text has been read.

A Filter is terms, all of which must match. It holds no pattern and no relative time: every value is literal and
every moment absolute, so a compiler only has to bind them. `search_match.matches` is what each term means.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

import msgspec

MAX_TEXT = 4096
MAX_TERMS = 64
MAX_SEGMENTS = 16
MAX_PLACES = 6
"""Segments of a path that can be places in an array. Each may be a key too, which doubles what a path can mean."""
MAX_VALUE = 1024


class Op(StrEnum):
    IS = ":"
    MORE = ">"
    LESS = "<"
    AT_LEAST = ">="
    AT_MOST = "<="
    BEGINS = "*"
    """A literal beginning: no character in it has a meaning."""
    EXISTS = "exists"
    FITS = "fits"
    """As `access.fits` has it: whose queue it is that somebody asks about. No text of a filter is read as it."""


COMPARISONS = frozenset({Op.MORE, Op.LESS, Op.AT_LEAST, Op.AT_MOST})


class Field(StrEnum):
    QUEUE = "queue"
    TYPE = "type"
    """The exception's type: its full name or its last part."""
    HANDLER = "handler"
    STATUS = "status"
    KIND = "kind"
    GROUP = "group"
    SOURCE = "source"
    ID = "id"
    CORRELATION = "correlation"
    EVENT = "event"
    """The event type (`event_type`)."""
    ATTEMPTS = "attempts"
    GENERATION = "generation"
    REVISION = "revision"
    """0: as it came."""
    OWNER = "owner"
    """Of the letter's group."""
    CREATED = "created"
    """Also what `age`, `before` and `after` are read as."""
    CHANGED = "changed"
    """When its status or its revision changed last, or it was recorded."""


class FieldTerm(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Any of `values` matches.

    | field                                         | op                | values                        |
    |-----------------------------------------------|-------------------|-------------------------------|
    | queue, type, handler, source, correlation,    | IS, BEGINS        | one or more, not empty        |
    | event, owner                                  | EXISTS: not empty | none                          |
    | queue                                         | FITS              | patterns; none: nothing fits  |
    | status, kind                                  | IS                | known ones, as they are kept  |
    | id, group                                     | BEGINS            | lower case, hexadecimal and - |
    | attempts, generation, revision                | IS                | one or more, 0 to 2^31 - 1    |
    |                                               | a comparison      | one                           |
    | created, changed                              | a comparison      | one, aware, in UTC            |
    """

    field: Field
    op: Op
    values: tuple[str | int | datetime, ...] = ()
    negated: bool = False


class HeaderTerm(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A header of exactly that name (capitals count) with any of `values` as its text. IS and BEGINS have one
    value or more, EXISTS has none.
    """

    name: str
    op: Op
    values: tuple[str, ...] = ()
    negated: bool = False


class DataTerm(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What `path` leads to in the message's data. Values stand as they were written: `number_of` tells which are
    numbers. IS and BEGINS have one value or more, a comparison has one, EXISTS has none.
    """

    path: tuple[str, ...]
    """At least one segment. `index_of` tells which can be places in an array."""
    op: Op
    values: tuple[str, ...] = ()
    negated: bool = False


class TextTerm(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A word, or words next to each other, in the error or in the body. It has at least one word and
    at most `words.LONGEST_PHRASE`.
    """

    text: str
    begins: bool = False
    """Whether the last word is only the beginning of one."""
    negated: bool = False


Term = FieldTerm | HeaderTerm | DataTerm | TextTerm


class Filter(msgspec.Struct, frozen=True):
    """Matches a letter if every term does; without terms it matches every letter. No text in it holds a NUL or
    half of a surrogate pair: such text is refused, for not every database can be asked for it.
    """

    terms: tuple[Term, ...] = ()


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


def number_of(value: str) -> Decimal | None:
    """The value as a number, exact, if it is written as JSON writes numbers (exponents up to three digits)."""
    return Decimal(value) if _NUMBER.fullmatch(value) else None


def index_of(segment: str) -> int | None:
    """The place in an array that a segment of a path names: 0 is the first. None: it can only be a key."""
    return int(segment) if _INDEX.fullmatch(segment) else None
