"""Terms of the search index on PostgreSQL: a tsquery for words and tokens, a jsonpath for what tokens do not tell.

Both are written here from literal values only, quoted as their grammars say, and given as bound parameters.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, and_, cast, literal, not_, or_
from sqlalchemy.dialects.postgresql import JSONPATH, TSQUERY

from redrive.search_terms import HeaderTerm, Op, TextTerm, index_of, number_of
from redrive.stores.blind_terms import blind_tokens_of
from redrive.stores.columns import escape
from redrive.stores.search_tokens import LOOSE, are_exact, tokens_for
from redrive.words import LONGEST_PHRASE, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import ColumnElement

    from redrive.search_terms import DataTerm

    IndexTerm = TextTerm | DataTerm | HeaderTerm

_JSON_WORDS = frozenset({"true", "false", "null"})


def matching(term: IndexTerm, part: Any) -> ColumnElement[bool]:
    """Whether a row of `search_parts`, by its columns, matches; the index finds those that do."""
    if isinstance(term, TextTerm):
        return indexed(term, part)
    inside = _inside(term, part)
    found = _has(part, _any_of((*tokens_for(term), LOOSE)))
    plain = and_(found, or_(not_(part.loose), inside) if are_exact(term) else inside)
    return _or_blind(plain, term, part)


def indexed(term: IndexTerm, part: Any) -> ColumnElement[bool]:
    """What the index alone says: true of every row that matches, and of some more."""
    if isinstance(term, TextTerm):
        return _has(part, tsquery(term))
    return _has(part, _any_of((*tokens_for(term), LOOSE, *blind_tokens_of(term))))


def probing(term: IndexTerm, part: Any) -> ColumnElement[bool]:
    """The same, for a row that is at hand."""
    if isinstance(term, TextTerm):
        return _has(part, tsquery(term))
    return _or_blind(_inside(term, part), term, part)


def _inside(term: DataTerm | HeaderTerm, part: Any) -> ColumnElement[bool]:
    inside: ColumnElement[bool] = part.facts.bool_op("@@")(cast(literal(jsonpath(term), Text), JSONPATH))
    return inside


def _or_blind(plain: ColumnElement[bool], term: IndexTerm, part: Any) -> ColumnElement[bool]:
    blind = blind_tokens_of(term)
    return or_(plain, _has(part, _any_of(blind))) if blind else plain


def _any_of(tokens: Iterable[str]) -> str:
    return " | ".join(f"'{token}'" for token in tokens)


def _has(part: Any, query: str) -> ColumnElement[bool]:
    found: ColumnElement[bool] = part.words.bool_op("@@")(cast(literal(query, Text), TSQUERY))
    return found


def tsquery(term: TextTerm) -> str:
    """The words next to each other, the last one perhaps only begun, or what stands for them under a mask. Words
    hold neither quote nor backslash.
    """
    phrase = " <-> ".join(f"'{word}'" for word in words(term.text)[:LONGEST_PHRASE])
    blind = blind_tokens_of(term)
    return phrase + ":*" if term.begins else f"({phrase}) | {_any_of(blind)}" if blind else phrase


def jsonpath(term: DataTerm | HeaderTerm) -> str:
    """A predicate that is true of facts that match.

    It is a predicate and no filter (`? (@ == ...)`), for the two enter arrays differently: what is compared here
    is what the path leads to, or the elements of an array that it leads to, and nothing deeper.
    """
    if isinstance(term, HeaderTerm):
        ends = [f'$."headers".{_quoted(escape(term.name))}']
        checks = [_check(term.op, _quoted(escape(value))) for value in term.values]
    else:
        ends = list(_ends('."data"', term.path))
        checks = [check for value in term.values for check in _checks(term.op, value)]
    if term.op is Op.EXISTS:
        return " || ".join(f"exists({end})" for end in ends)
    return " || ".join(f"({end} {check})" for end in ends for check in checks)


def _checks(op: Op, value: str) -> Iterator[str]:
    """Text compares with text, a number with numbers, and what JSON has words for with those."""
    number = number_of(value)
    if op in {Op.IS, Op.BEGINS} or number is None:
        yield _check(op, _quoted(value))
    if number is not None and op is not Op.BEGINS:
        yield _check(op, value)
    if value in _JSON_WORDS and op is Op.IS:
        yield _check(op, value)


def _check(op: Op, written: str) -> str:
    if op is Op.BEGINS:
        return f"starts with {written}"
    return f"{'==' if op is Op.IS else op} {written}"


def _quoted(text: str) -> str:
    # ASCII only, so that nothing can be mistaken for anything else; jsonpath reads JSON's escapes.
    return json.dumps(text)


def _ends(chain: str, path: Sequence[str], base: str = "$", sure: str = "") -> Iterator[str]:
    """Where the path may lead. A segment that can be a place in an array leads to the place if an array is there,
    and to the key if an object is: the two are different paths, each under a condition on the object that the
    `chain` of such segments begins in.
    """
    if not path:
        yield base + sure + chain
        return
    segment, rest = path[0], path[1:]
    index = index_of(segment)
    if index is None:
        yield from _ends(f".{_quoted(segment)}", rest, base + sure + chain)
        return
    for step, kind in ((f"[{index}]", "array"), (f".{_quoted(segment)}", "object")):
        yield from _ends(chain + step, rest, base, _and(sure, f'@{chain}.type() == "{kind}"'))


def _and(sure: str, more: str) -> str:
    # The filter enters an array, and the chain's key would enter another one inside it.
    known = sure.removesuffix(")") if sure else ' ? (@.type() == "object"'
    return f"{known} && {more})"
