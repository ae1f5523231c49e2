"""Terms of a filter with the tokens of what they ask for, as it would be on a letter where it is masked.

A letter matches if it matches as it is shown, with its masks, or if it has one of the tokens. Only whole values
are hashed, so beginnings and comparisons have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.search_terms import DataTerm, HeaderTerm, Op, TextTerm
from redrive.stores.private import private_of
from redrive.stores.search_tokens import blind_token, blind_tokens_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from redrive.privacy.blind_index import BlindIndex
    from redrive.search_terms import Term


class BlindText(TextTerm, frozen=True, kw_only=True, tag="TextTerm"):
    blind: tuple[str, ...] = ()


class BlindData(DataTerm, frozen=True, kw_only=True, tag="DataTerm"):
    blind: tuple[str, ...] = ()


class BlindHeader(HeaderTerm, frozen=True, kw_only=True, tag="HeaderTerm"):
    blind: tuple[str, ...] = ()


def blinded(connection: Connection, terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms, as the store's privacy asks them."""
    private, given = private_of(connection), tuple(terms)
    if private is None or not any(map(_can_be_blind, given)):
        return given
    index = private.index(connection)
    return given if index is None else tuple(_blinded(term, index) for term in given)


def blind_tokens_of(term: Term) -> tuple[str, ...]:
    """Any of them is on a letter that holds the term's value under a mask."""
    return term.blind if isinstance(term, BlindText | BlindData | BlindHeader) else ()


def _can_be_blind(term: Term) -> bool:
    if isinstance(term, BlindText | BlindData | BlindHeader):
        return False  # it has been asked for them
    if isinstance(term, TextTerm):
        return not term.begins
    return isinstance(term, DataTerm | HeaderTerm) and term.op is Op.IS


def _blinded(term: Term, index: BlindIndex) -> Term:
    if not _can_be_blind(term):
        return term
    given = msgspec.structs.asdict(term)
    if isinstance(term, TextTerm):
        return BlindText(**given, blind=tuple(map(blind_token, sorted(index.query(term.text)))))
    if isinstance(term, HeaderTerm):
        return BlindHeader(**given, blind=tuple(blind_tokens_for(term, index)))
    return BlindData(**given, blind=tuple(blind_tokens_for(term, index))) if isinstance(term, DataTerm) else term
