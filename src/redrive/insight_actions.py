"""The desk's part about what is looked at first: see `redrive.actions`."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from redrive import faults
from redrive.access import Permission, covers, fits
from redrive.approvals import same_person
from redrive.commonalities import compare
from redrive.errors import NotFound, UsageError
from redrive.group_actions import GroupActions
from redrive.insights import GroupPlace
from redrive.ledger import LETTERS, Deed, Subject
from redrive.letter_query import LetterQuery
from redrive.readable import readable
from redrive.run import RunStatus
from redrive.run_actions import RunActions, queues_of
from redrive.search_completion import MAX_SUGGESTIONS, complete, field_at
from redrive.search_terms import Field, FieldTerm, Filter, Op

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from redrive.commonalities import Comparison
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
    from redrive.loaded import Loaded
    from redrive.message import Message
    from redrive.run import Run
    from redrive.run_report import RunReport
    from redrive.search_completion import Suggestion
    from redrive.statistics import KnownValue
    from redrive.stores.insight_store import InsightStore

COMPARED = 200
"""Letters of each of two samples, at most."""
_LARGEST_COMPARED = 32 * 1024
_COMPARED_BYTES = 1024 * 1024
FACETS_OF = 10_000
_RUNS_LOOKED_AT = 500
_SHORTEST_ID = 8
_FIRST_YEAR, _LAST_YEAR = 1900, 9000
_MOST_PAGES = 20
_OF_IDS = frozenset("0123456789abcdef-")


class InsightActions(GroupActions, RunActions):
    _insights: InsightStore
    _loaded: Loaded

    async def situation(self, since: datetime, until: datetime) -> Situation:
        return await self._insights.situation(*_span(since, until), within=await self._may(Permission.READ))

    async def arrivals(self, since: datetime, until: datetime, *, groups: int = 8) -> Arrivals:
        """With the groups that have the most letters, and the others together."""
        within = await self._may(Permission.READ)
        found = await self._insights.arrivals(*_span(since, until), groups=groups, within=within)
        told = [replace(each, title=self._masks.for_queue(each.queue).text(each.title)) for each in found.groups]
        return replace(found, groups=tuple(told))

    async def seen_groups(self, since: datetime, until: datetime, *, limit: int = 20) -> list[SeenGroup]:
        """New ones first, then those that return."""
        within = await self._may(Permission.READ)
        found = await self._insights.seen_groups(*_span(since, until), limit=limit, within=within)
        return [replace(each, group=self._masked_group(each.group)) for each in found]

    async def group_page(self, query: GroupQuery) -> list[FailureGroup]:
        """Text is looked for in titles as they are shown: what is masked in one is not found by it."""
        within = await self._may(Permission.READ)
        shown: list[FailureGroup] = []
        while len(shown) < query.limit:
            page = await self._insights.group_page(query, within=within)
            shown += [each for each in map(self._masked_group, page) if _holds(each.title, query.text)]
            if len(page) < query.limit:
                break
            query = replace(query, after=GroupPlace.of(page[-1], query.order))
        return shown[: query.limit]

    async def group_attempts(self, group_id: str) -> GroupAttempts:
        group = await self._group(group_id, Permission.READ)
        return await self._insights.group_attempts(group.id, within=await self._may(Permission.READ))

    async def group_redrives(self, group_id: str) -> GroupRedrives:
        group = await self._group(group_id, Permission.READ)
        return await self._insights.group_redrives(group.id, within=await self._may(Permission.READ))

    async def commonalities(self, group_id: str) -> Comparison:
        """What the group's newest letters have in common that others of its queue have not, masked."""
        group, within = await self._group(group_id, Permission.READ), await self._may(Permission.READ)
        mine, others = await self._insights.samples(
            group.id, group.queue, number=COMPARED, largest=_LARGEST_COMPARED, within=within
        )
        here, elsewhere = await self._messages(mine), await self._messages(others)
        return await asyncio.to_thread(self._compared, here, elsewhere)

    async def _messages(self, letter_ids: Sequence[str]) -> list[tuple[str, Message]]:
        """With their queues, up to a number of bytes; those that cannot be read left out."""
        found: list[tuple[str, Message]] = []
        room = _COMPARED_BYTES
        async with aclosing(self._store.whole(letter_ids, story=False)) as told:
            async for letter in told:
                room -= len(letter.message.body or b"")
                if room < 0:
                    break
                if letter.unreadable is None:
                    found.append((letter.queue, letter.message))
        return found

    def _compared(self, here: list[tuple[str, Message]], elsewhere: list[tuple[str, Message]]) -> Comparison:
        def masked(sample: list[tuple[str, Message]]) -> list[Message]:
            return [self._masks.for_queue(queue).message(message) for queue, message in sample]

        return compare(masked(here), masked(elsewhere))

    async def facets(self, query: LetterQuery) -> Facets:
        """What the letters that match are; of FACETS_OF of them, where they are not counted."""
        return await self._insights.facets(await self._seen(query), at_most=FACETS_OF)

    async def known_values(self, field: Field, beginning: str = "", limit: int = 50) -> list[KnownValue]:
        """What could stand behind the field's colon in a filter, most letters first."""
        within = await self._may(Permission.READ)
        found = await self._store.known_values(field, beginning, limit, within=within)
        return [replace(each, title=self._masks.general.text(each.title)) for each in found]

    async def suggestions(self, text: str, at: int) -> list[Suggestion]:
        """What could stand there in a filter."""
        await self._may(Permission.READ)
        field, begun = field_at(text, at)
        known: dict[str, list[str]] = {}
        if field in set(Field):
            values = [*await self.known_values(Field(field), begun, MAX_SUGGESTIONS)]
            values += await self.known_values(Field(field), "", MAX_SUGGESTIONS) if begun else []
            known = {field: [each.value for each in values]}
        return complete(text, at, known)

    async def related(self, letter_id: str, *, limit: int = 50) -> list[DeadLetter]:
        """Other letters of the same correlation id, the newest first."""
        within = await self._may(Permission.READ)
        found = await self._insights.related(await self._whole_id(letter_id), limit=limit, within=within)
        return [self._masked(each) for each in found]

    async def letter_redrives(self, letter_id: str, *, limit: int = 50) -> list[LetterRedrive]:
        """The newest first."""
        return await self._insights.letter_redrives(await self._whole_id(letter_id), limit=limit)

    async def body(self, letter_id: str) -> bytes | None:
        """Of the current revision, masked, without the rest of the letter."""
        letter = await self._with_body(letter_id, Permission.READ)
        masker = self._masks.for_queue(letter.queue)
        return (await asyncio.to_thread(masker.message, letter.message)).body

    async def reveal_body(self, letter_id: str, reason: str) -> bytes | None:
        """As it is. Who looked, and why, is written down before it is given."""
        letter, by = readable(await self._with_body(letter_id, Permission.REVEAL)), self._because(reason)
        await self._runs.note(Deed(what="revealed", subject=Subject.of(LETTERS, (letter.id,))), by=by)
        faults.point("reveal.noted")
        return letter.message.body

    async def _with_body(self, letter_id: str, permission: Permission) -> DeadLetter:
        within, whole_id = await self._may(permission), await self._whole_id(letter_id, permission)
        async with aclosing(self._store.whole([whole_id], story=False, within=within)) as told:
            async for letter in told:
                return letter
        raise _no_letter(letter_id)

    async def _whole_id(self, letter_id: str, permission: Permission = Permission.READ) -> str:
        """Of a letter that whoever asks may know of, without reading it; the beginning of its id will do."""
        named = letter_id.strip().lower()
        if len(named) < _SHORTEST_ID:
            raise UsageError(f"{letter_id!r} is too short for an id", remedy="`redrive list` shows the ids")
        if not set(named) <= _OF_IDS:
            raise _no_letter(letter_id)
        term = FieldTerm(field=Field.ID, op=Op.BEGINS, values=(named,))
        query = await self._seen(LetterQuery(where=Filter((term,)), limit=2), permission)
        found = await self._store.find(query)
        if len(found) > 1:
            raise UsageError(f"more than one letter's id begins with {letter_id!r}", remedy="give more of the id")
        if not found:
            raise _no_letter(letter_id)
        return found[0].id

    async def loaded(self) -> Loaded:
        """What the process works by. About queues outside of the scope, and rules, which may be about any queue,
        nothing is told.
        """
        within, told = await self._may(Permission.READ), self._loaded
        rules = [replace(each, when=self._masks.general.text(each.when)) for each in told.rules]
        if within is None:
            return replace(told, rules=tuple(rules))
        queues = {name: each for name, each in told.queues.items() if _is_within(name, within)}
        guarded = frozenset(name for name in told.approval.queues if _is_within(name, within))
        return replace(
            told, rules=(), queues=queues, approval=replace(told.approval, queues=guarded), partial=True
        )

    async def report_page(
        self, *, active: bool = False, limit: int = 50, after: str | None = None
    ) -> tuple[list[RunReport], str | None]:
        """Runs behind that one, the newest first, and the one that the next page is behind; None: there is none.
        A page may be short, or empty, if many runs of other queues lie between.
        """
        within = await self._may(Permission.READ)
        found: list[Run] = []
        for _ in range(_MOST_PAGES):
            page = await self._runs.runs(active=active, limit=limit, after=after)
            found += [each for each in page if covers(within, queues_of(each.plan))]
            after = page[-1].id if len(page) == limit else None
            if after is None or len(found) >= limit:
                break
        if len(found) > limit:
            found, after = found[:limit], found[limit - 1].id
        return [await self._report(each) for each in found], after

    async def approvals(self, *, limit: int = 50) -> list[RunReport]:
        """Runs that wait for somebody, and could be approved by whoever asks."""
        within = await self._may(Permission.APPROVE)
        found = await self._runs.runs(active=True, limit=_RUNS_LOOKED_AT)
        mine = [each for each in found if each.status is RunStatus.AWAITING_APPROVAL]
        mine = [each for each in mine if not same_person(each.requested_by, self._who.name)]
        mine = [each for each in mine if each.approval and each.approval.expires_at > self._clock.now()]
        mine = [each for each in mine if covers(within, queues_of(each.plan))]
        return [await self._report(each) for each in mine[:limit]]


def _span(since: datetime, until: datetime) -> tuple[datetime, datetime]:
    if since.year < _FIRST_YEAR or until.year > _LAST_YEAR:
        raise UsageError(
            "nothing failed then", remedy=f"ask for moments of the years {_FIRST_YEAR} to {_LAST_YEAR}"
        )
    if until <= since:
        raise UsageError("the span of time ends before it begins", remedy="give a `since` before `until`")
    return since, until


def _holds(title: str, text: str | None) -> bool:
    return text is None or text.lower() in title.lower()


def _is_within(queue: str, scope: tuple[str, ...]) -> bool:
    return any(fits(queue, each) for each in scope)


def _no_letter(letter_id: str) -> NotFound:
    return NotFound(f"no letter {letter_id}", remedy="`redrive list` shows the ids")
