"""A filter's text into its terms.

    filter  = { white space | term }
    term    = [ "-" ] ( phrase | word | name ":" [ comparison ] value { "," value } )
    name    = field | "header." header | "data." segment { "." segment }
    value   = ( quoted | bare ) [ "*" ] | "*"

A word with a colon outside quotes is a field's term, any other word is text to look for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from redrive.search_fields import FIELDS, check_field
from redrive.search_scanner import Scanner, Value, bounded
from redrive.search_terms import (
    MAX_PLACES,
    MAX_SEGMENTS,
    MAX_TERMS,
    MAX_TEXT,
    DataTerm,
    Filter,
    HeaderTerm,
    Op,
    Term,
    TextTerm,
    index_of,
)
from redrive.search_written import Written, one_value, values_op, wrong
from redrive.words import LONGEST_PHRASE, words

if TYPE_CHECKING:
    from datetime import datetime

HEADER, DATA = "header", "data"
COMPARISON_SIGNS = (Op.AT_LEAST, Op.AT_MOST, Op.MORE, Op.LESS)
CONNECTIVES = frozenset({"AND", "OR", "NOT"})
_UNASKABLE = re.compile("[\x00\ud800-\udfff]")
_WITHOUT_COLON = re.compile(rf"((?:{'|'.join(FIELDS)})|(?:{HEADER}|{DATA})\.[^<>=]+)([<>]=?|=)", re.IGNORECASE)


def parse(text: str, *, now: datetime) -> Filter:
    """The filter that the text says; ages and durations count back from `now`. FilterError for any text that is
    none, with the column and a remedy; no other error, whatever the text is.
    """
    _check_text(text)
    scanner = Scanner(text)
    terms: list[Term] = []
    scanner.skip_space()
    while scanner.next:
        if len(terms) == MAX_TERMS:
            wrong(f"more than {MAX_TERMS} terms", scanner.column, "name several values in one term: queue:a,b,c")
        terms.append(_term(scanner, now))
        scanner.skip_space()
    return Filter(tuple(terms))


def _check_text(text: str) -> None:
    if len(text) > MAX_TEXT:
        wrong(f"more than {MAX_TEXT:,} characters", MAX_TEXT + 1, "shorten it")
    if found := _UNASKABLE.search(text):
        wrong("a character that no text in a database can have", found.start() + 1, "leave it out")


def _term(scanner: Scanner, now: datetime) -> Term:
    minus = scanner.column
    negated = bool(scanner.take("-"))
    if negated and (scanner.at_end_of_term or scanner.next == "-"):
        wrong("- excludes what stands directly behind it", minus, "put one - before a term, or leave it out")
    colon = _colon(scanner)
    if colon is None:
        return _text_term(scanner, negated=negated)
    start = scanner.at
    scanner.at = colon + 1
    comparison = scanner.take(*COMPARISON_SIGNS)
    name = scanner.text[start:colon]
    return _named_term(scanner, name, start + 1, Op(comparison) if comparison else None, now, negated=negated)


def _colon(scanner: Scanner) -> int | None:
    """Where the colon behind the term's name stands; None if the term has no name. Only a segment of a path, which
    a dot announces, may be in quotes.
    """
    ahead = Scanner(scanner.text)
    ahead.at = scanner.at
    while not ahead.at_end_of_term:
        if ahead.next == ":":
            return ahead.at
        if ahead.next != '"':
            ahead.at += 1
        elif ahead.at > scanner.at and ahead.text[ahead.at - 1] == ".":
            ahead.quoted()
        else:
            return None
    return None


def _text_term(scanner: Scanner, *, negated: bool) -> TextTerm:
    start = scanner.at
    value = scanner.value()
    if not value.quoted:
        _check_word(scanner.text[start : scanner.at], value)
    count = len(words(value.text))
    if not count:
        wrong("there is no word in this to look for", value.column, "give a letter or a digit")
    if count > LONGEST_PHRASE:
        wrong(f"{count} words in one phrase", value.column, f"look for at most {LONGEST_PHRASE} of them")
    return TextTerm(text=value.text, begins=value.begins, negated=negated)


def _check_word(written: str, value: Value) -> None:
    """A word that was surely meant as something else is refused: to look for it would find the wrong letters."""
    if written in CONNECTIVES:
        wrong(
            f"{written} has no meaning here",
            value.column,
            f'every term must match; queue:a,b is a or b, - is not. To look for the word, quote it: "{written}"',
        )
    if found := _WITHOUT_COLON.match(written):
        name, sign = found.groups()
        wrong(
            f"a colon is missing behind {name}",
            value.column + len(name),
            f"write {name}:{sign.lstrip('=') if sign == '=' else sign}{written[found.end() :]}",
        )


def _named_term(
    scanner: Scanner, name: str, column: int, comparison: Op | None, now: datetime, *, negated: bool
) -> Term:
    kind, dot, rest = name.partition(".")
    kind = kind.lower()
    if kind in {HEADER, DATA}:
        if not rest:
            example = f"{kind}.customer.id:123" if kind == DATA else f"{kind}.tenant:acme"
            wrong(f"{kind} of which name?", column + len(kind) + len(dot), f"write it like {example}")
        path = _header_name(name, column) if kind == HEADER else _path(name, column)
        return _open_term(kind, path, Written(name, comparison, _values(scanner), negated, now))
    check_field(name.lower(), column)
    written = Written(name.lower(), comparison, _values(scanner), negated, now)
    return FIELDS[name.lower()].read(written)


def _open_term(kind: str, path: tuple[str, ...], written: Written) -> HeaderTerm | DataTerm:
    compared = kind == DATA and written.comparison is not None
    op = written.comparison if compared and written.comparison else values_op(written)
    given = (one_value(written),) if compared else written.values
    values = () if op is Op.EXISTS else tuple(each.text for each in given)
    if kind == HEADER:
        return HeaderTerm(name=path[0], op=op, values=values, negated=written.negated)
    return DataTerm(path=path, op=op, values=values, negated=written.negated)


def _values(scanner: Scanner) -> tuple[Value, ...]:
    found = [_value(scanner)]
    while scanner.take(","):
        found.append(_value(scanner))
    return tuple(found)


def _value(scanner: Scanner) -> Value:
    value = scanner.value(ends=",")
    if not (value.text or value.begins or value.quoted):
        wrong("a value is missing", value.column, 'write it without a space, or "" for an empty one')
    return value


def _header_name(name: str, column: int) -> tuple[str]:
    scanner = _behind_dot(name)
    found = _segment(scanner, column, ends="")
    if not found:
        wrong("a header's name is missing", column + scanner.at, "write it like header.tenant:acme")
    if scanner.next:
        wrong("something follows the closing quote", column + scanner.at, 'quote the whole name: header."a b":c')
    return (found,)


def _path(name: str, column: int) -> tuple[str, ...]:
    scanner = _behind_dot(name)
    segments = [_segment(scanner, column, ends=".")]
    while scanner.next:
        if not scanner.take("."):
            wrong("something follows the closing quote", column + scanner.at, 'write it like data."a.b".c:1')
        if len(segments) == MAX_SEGMENTS:
            wrong(f"more than {MAX_SEGMENTS} segments in a path", column + scanner.at, "look for a shorter path")
        segments.append(_segment(scanner, column, ends="."))
    if sum(index_of(each) is not None for each in segments) > MAX_PLACES:
        wrong(f"more than {MAX_PLACES} numbers in a path", column, "look for a shorter path")
    return tuple(segments)


def _behind_dot(name: str) -> Scanner:
    scanner = Scanner(name)
    scanner.at = name.index(".") + 1
    return scanner


def _segment(scanner: Scanner, column: int, *, ends: str) -> str:
    start = scanner.at
    if scanner.next == '"':
        return bounded(scanner.quoted(), column + start)
    while scanner.next and scanner.next not in (ends, '"'):
        scanner.at += 1
    if scanner.next == '"':
        wrong("a quote in the middle of a name", column + scanner.at, 'quote it whole, like data."a.b".c:1')
    if scanner.at == start:
        wrong("a name is missing", column + start, 'write it like data.customer.id:123; "" is the empty key')
    return bounded(scanner.text[start : scanner.at], column + start)
