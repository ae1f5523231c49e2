"""Pages of letters: where one begins, and what is said about the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from redrive.cli.output import note
from redrive.dead_letter import DeadLetter
from redrive.desk import Desk
from redrive.errors import NotFound
from redrive.letter_query import Count, LetterQuery, Place

COUNTED = 10_000
"""A number beyond it tells a person nothing more, and costs a look at every letter."""


@dataclass(frozen=True, kw_only=True)
class Page:
    letters: Sequence[DeadLetter]
    count: Count | None
    """How many match on all pages; None if nobody asked."""
    first: bool
    """Whether there is nothing newer."""
    backwards: bool
    """Whether it was reached from an older letter."""
    unsearched: int
    """Letters that the query could not find yet."""


async def page(
    actions: Desk, query: LetterQuery, *, limit: int, after: str | None, before: str | None, counted: bool
) -> Page:
    """`after` and `before` are letters' ids, or beginnings of them; at most one is given."""
    wanted = msgspec.structs.replace(
        query,
        limit=limit,
        after=None if after is None else await _place(actions, after),
        before=None if before is None else await _place(actions, before),
    )
    letters = await actions.letters(wanted)
    count = await actions.count(query, at_most=COUNTED) if counted and letters else None
    return Page(
        letters=letters,
        count=count,
        first=after is None and before is None,
        backwards=before is not None,
        unsearched=await actions.search_backlog(query),
    )


async def _place(actions: Desk, given: str) -> Place:
    (letter_id,) = await actions.identify([given])
    found = await actions.letters(LetterQuery(ids=(letter_id,)))
    if not found:
        raise NotFound(f"no letter {letter_id}", remedy="`redrive list` shows the ids")
    return Place.of(found[0])


def tell_page(page: Page, limit: int) -> None:
    """How many there are, and how to go on: on stderr."""
    if page.count is not None:
        number = f"{page.count.number:,}" if page.count.exact else f"more than {page.count.number:,}"
        note(f"{'1-' if page.first else ''}{len(page.letters):,} of {number}")
    if page.unsearched:
        note(f"{page.unsearched:,} letters are not searchable yet: workers do it, or `redrive db index` now")
    if len(page.letters) == limit:
        way, edge = ("--before", page.letters[0]) if page.backwards else ("--after", page.letters[-1])
        note(f"There may be more: add {way} {edge.id}")
