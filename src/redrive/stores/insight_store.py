"""The seam to what is looked at first: numbers over time, groups in an order, what became of redrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from redrive.access import Scope
    from redrive.dead_letter import DeadLetter, FailureGroup
    from redrive.insights import (
        Arrivals,
        Facets,
        GroupAttempts,
        GroupQuery,
        GroupRedrives,
        LetterRedrive,
        SeenGroup,
        Situation,
    )
    from redrive.letter_query import LetterQuery


class InsightStore(Protocol):
    """All of it is answered in short time at any number of letters: from counters, from an index, or of a bounded
    number of the newest, which is told then. Whatever takes `within` answers as if nothing outside it existed.
    """

    async def situation(self, since: datetime, until: datetime, *, within: Scope = None) -> Situation: ...

    async def arrivals(self, since: datetime, until: datetime, *, groups: int, within: Scope = None) -> Arrivals:
        """By hours up to a week, by days beyond. A group that is not wholly in the scope is one of the others.
        UsageError for a span of more than three years.
        """
        ...

    async def seen_groups(
        self, since: datetime, until: datetime, *, limit: int, within: Scope = None
    ) -> list[SeenGroup]:
        """Groups that have letters of the span: new ones first, the latest first; then those that return; then the
        others, those with the most letters first.
        """
        ...

    async def group_page(self, query: GroupQuery, *, within: Scope = None) -> list[FailureGroup]: ...

    async def group_attempts(self, group_id: str, *, within: Scope = None) -> GroupAttempts: ...

    async def group_redrives(self, group_id: str, *, within: Scope = None) -> GroupRedrives: ...

    async def samples(
        self, group_id: str, queue: str, *, number: int, largest: int, within: Scope = None
    ) -> tuple[Sequence[str], Sequence[str]]:
        """The ids of the newest letters of the group, and of the newest of the queue that are not in it, those
        whose message has more than `largest` bytes left out: at most `number` of each.
        """
        ...

    async def facets(self, query: LetterQuery, *, at_most: int) -> Facets: ...

    async def related(self, letter_id: str, *, limit: int, within: Scope = None) -> list[DeadLetter]:
        """Other letters with the same correlation id, the newest first, as `find` gives them."""
        ...

    async def letter_redrives(self, letter_id: str, *, limit: int) -> list[LetterRedrive]:
        """The newest first."""
        ...
