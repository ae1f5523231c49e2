"""Terms of the search index on SQLite: FTS5 for words and tokens, a function of ours for what tokens do not tell.

The function is `search_match` itself, so numbers are compared exactly, which SQLite's own JSON does not do.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from sqlalchemy import Integer, Text, and_, func, literal, literal_column, not_, or_, select, table

from redrive.search_match import data_matches, header_matches
from redrive.search_terms import DataTerm, HeaderTerm, TextTerm
from redrive.stores.blind_terms import blind_tokens_of
from redrive.stores.columns import escape, unescape
from redrive.stores.search_tokens import LOOSE, are_exact, tokens_for
from redrive.words import LONGEST_PHRASE, words

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from sqlalchemy import ColumnElement

    from redrive.message import Headers

_HOLDS = "redrive_holds"

_terms = msgspec.json.Decoder(DataTerm | HeaderTerm)
_facts = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)


def matching(term: TextTerm | DataTerm | HeaderTerm, part: Any) -> ColumnElement[bool]:
    """Whether a row of `search_parts`, by its columns, matches."""
    if isinstance(term, TextTerm):
        return _has(part, full_text_query(term))
    found = _has(part, _any_of((*tokens_for(term), LOOSE)))
    inside = getattr(func, _HOLDS)(part.facts, msgspec.json.encode(term).decode()) == 1
    plain = and_(found, or_(not_(part.loose), inside) if are_exact(term) else inside)
    blind = blind_tokens_of(term)
    return or_(plain, _has(part, _any_of(blind))) if blind else plain


def _any_of(tokens: Iterable[str]) -> str:
    return " OR ".join(f'"{token}"' for token in tokens)


def _has(part: Any, query: str) -> ColumnElement[bool]:
    rowid: ColumnElement[int] = literal_column("rowid", Integer)
    match = literal_column("search_words", Text).bool_op("MATCH")(literal(query, Text))
    found: ColumnElement[bool] = part.id.in_(select(rowid).select_from(table("search_words")).where(match))
    return found


def full_text_query(term: TextTerm) -> str:
    """The words next to each other, the last one perhaps only begun, or what stands for them under a mask. In
    quotes nothing but a quote has a meaning, and no word holds one.
    """
    phrase = " ".join(words(term.text)[:LONGEST_PHRASE])
    return _any_of((phrase, *blind_tokens_of(term))) + " *" * term.begins


def make_searchable(connection: sqlite3.Connection) -> sqlite3.Connection:
    """The connection, which can answer terms about data and headers from now on."""
    connection.create_function(_HOLDS, 2, _holds, deterministic=True)
    return connection


def _holds(facts: str | None, written: str) -> bool:
    if facts is None:
        return False
    term, known = _term(written), _facts.decode(facts)
    if isinstance(term, DataTerm):
        return data_matches(term, known.get("data", UNSET))
    return header_matches(term, _headers(term.name, known.get("headers", {})))


@lru_cache(maxsize=256)
def _term(written: str) -> DataTerm | HeaderTerm:
    term: DataTerm | HeaderTerm = _terms.decode(written)
    return term


def _headers(name: str, known: dict[str, list[str]]) -> Headers:
    """Those of that name, as the message had them; one without a text has the value None."""
    texts = known.get(escape(name))
    if texts is None:
        return ()
    return tuple((name, unescape(text)) for text in texts) or ((name, None),)
