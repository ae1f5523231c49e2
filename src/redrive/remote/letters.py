"""Letters through a server."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from redrive.actions import Changed
from redrive.api.cursors import cursor
from redrive.api.letter_wire import LetterChange, LetterPage, LettersChanged, RevisionMade
from redrive.api.selection import ExportAsked, LettersAsked, LetterSelection
from redrive.dead_letter import Transition
from redrive.errors import Unreachable
from redrive.header_json import plain_headers
from redrive.letter_query import MAX_PAGE, Count, LetterQuery
from redrive.remote.line import Line, segment
from redrive.remote.reading import letter_of_line, whole_letter
from redrive.search_terms import FieldTerm
from redrive.statistics import KnownValue

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from redrive.dead_letter import DeadLetter, Status
    from redrive.message import Headers
    from redrive.search_terms import Field

_FULL_ID = 36
_LOOK_EVERY = 0.5
_LOOKS = 240
_CHANGES = {
    Transition.RESOLVE: "resolve",
    Transition.DISCARD: "discard",
    Transition.RESTORE: "restore",
    Transition.QUARANTINE: "quarantine",
    Transition.RELEASE: "release",
    Transition.PURGE: "purge",
}


class _KnownValues(msgspec.Struct):
    items: list[KnownValue]


class _Backlog(msgspec.Struct):
    letters: int


class RemoteLetters:
    _line: Line

    async def letters(self, query: LetterQuery) -> list[DeadLetter]:
        asked = LettersAsked(
            selection=LetterSelection.of(query),
            limit=query.limit,
            after=None if query.after is None else cursor(query.after),
            before=None if query.before is None else cursor(query.before),
        )
        return [letter_of_line(each) for each in (await self._search(asked)).items]

    async def count(self, query: LetterQuery, *, at_most: int | None = None) -> Count:
        asked = LettersAsked(selection=LetterSelection.of(query), limit=1, count=True, count_at_most=at_most)
        return (await self._search(asked)).count or Count(0, exact=True)

    async def _search(self, asked: LettersAsked) -> LetterPage:
        """By a body: what is looked for may be personal, and URLs are written to logs."""
        return await self._line.ask("POST", "/dlq-search", LetterPage, body=asked)

    async def known_values(self, field: Field, beginning: str = "", limit: int = 50) -> list[KnownValue]:
        params = {"beginning": beginning, "limit": limit}
        return (await self._line.ask("GET", f"/stats/values/{field}", _KnownValues, params=params)).items

    async def search_backlog(self, query: LetterQuery | None = None) -> int:
        if query is not None and all(isinstance(term, FieldTerm) for term in query.where.terms):
            return 0
        if query is not None:
            return (await self._search(LettersAsked(selection=LetterSelection.of(query), limit=1))).unsearched
        return (await self._line.ask("GET", "/stats/search-backlog", _Backlog)).letters

    async def index(self, *, on_progress: Callable[[int], None] | None = None) -> int:
        """The server does it by itself: this waits for it. Unreachable if it does not come to an end."""
        left = first = await self.search_backlog()
        for _ in range(_LOOKS):
            if not left:
                return first
            await asyncio.sleep(_LOOK_EVERY)
            before, left = left, await self.search_backlog()
            if on_progress is not None and left < before:
                on_progress(before - left)
        raise Unreachable(
            f"{left:,} letters are not searchable yet",
            remedy="is the server's upkeep off? `redrive db index`, where the store is, does it now",
        )

    async def letter(self, letter_id: str) -> DeadLetter:
        return whole_letter(await self._line.ask("GET", f"/dlq/{segment(letter_id)}", dict))

    async def reveal(self, letter_id: str, reason: str) -> DeadLetter:
        path = f"/dlq/{segment(letter_id)}/reveal"
        return whole_letter(await self._line.ask("POST", path, dict, body={"reason": reason}))

    async def identify(self, given: Iterable[str]) -> list[str]:
        named = [each.strip().lower() for each in given]
        whole = [each if len(each) == _FULL_ID else (await self.letter(each)).id for each in named]
        return list(dict.fromkeys(whole))

    async def export(
        self, query: LetterQuery, *, at_most: int | None = None, whole: bool = False, unmasked: str | None = None
    ) -> AsyncGenerator[DeadLetter]:
        """Letter by letter, as they come: the server is asked once."""
        asked = ExportAsked(selection=LetterSelection.of(query), at_most=at_most, whole=whole)
        if unmasked is None:
            lines = self._line.lines("POST", "/export", body=asked)
        else:
            body = {**msgspec.structs.asdict(asked), "reason": unmasked}
            lines = self._line.lines("POST", "/export/unmasked", body=body)
        async for values in lines:
            yield whole_letter(values)

    # Deciding

    async def resolve(self, letter_ids: Sequence[str], reason: str) -> Changed:
        return await self._change(letter_ids, Transition.RESOLVE, reason)

    async def discard(self, letter_ids: Sequence[str], reason: str) -> Changed:
        return await self._change(letter_ids, Transition.DISCARD, reason)

    async def restore(self, letter_ids: Sequence[str], reason: str) -> Changed:
        return await self._change(letter_ids, Transition.RESTORE, reason)

    async def quarantine(self, letter_ids: Sequence[str], reason: str) -> Changed:
        return await self._change(letter_ids, Transition.QUARANTINE, reason)

    async def release(self, letter_ids: Sequence[str], reason: str) -> Changed:
        return await self._change(letter_ids, Transition.RELEASE, reason)

    async def purge(self, letter_ids: Sequence[str], reason: str) -> Changed:
        return await self._change(letter_ids, Transition.PURGE, reason)

    async def preview(self, letter_ids: Sequence[str], transition: Transition) -> Changed:
        return await self._change(letter_ids, transition, "", dry_run=True)

    async def _change(
        self, letter_ids: Sequence[str], transition: Transition, reason: str, *, dry_run: bool = False
    ) -> Changed:
        named = list(dict.fromkeys(letter_ids))
        done: list[str] = []
        left: dict[str, Status | None] = {}
        for start in range(0, len(named), MAX_PAGE):
            body = {
                "change": _CHANGES[transition],
                "ids": named[start : start + MAX_PAGE],
                "reason": reason,
                "dry_run": dry_run,
            }
            told = await self._line.ask(
                "POST", "/dlq-changes", LettersChanged, body=msgspec.convert(body, LetterChange)
            )
            done += told.done
            left |= told.left
        return Changed(tuple(done), left)

    async def revise(
        self,
        letter_id: str,
        *,
        base: int,
        reason: str,
        body: bytes | UnsetType | None = UNSET,
        payload: bytes | UnsetType = UNSET,
        headers: Headers | UnsetType = UNSET,
    ) -> int:
        edit: dict[str, Any] = {"reason": reason}
        if payload is not UNSET:
            edit |= _written("payload", payload)
        if body is not UNSET:
            edit |= {"body": None} if body is None else _written("body", body)
        if headers is not UNSET:
            edit["headers"] = plain_headers(headers)
        return await self._revised(letter_id, base, edit)

    async def revert(self, letter_id: str, *, to: int, base: int, reason: str) -> int:
        return await self._revised(letter_id, base, {"reason": reason, "revert_to": to})

    async def _revised(self, letter_id: str, base: int, edit: dict[str, Any]) -> int:
        path, headers = f"/dlq/{segment(letter_id)}/revisions", {"if-match": f'"{base}"'}
        return (await self._line.ask("POST", path, RevisionMade, body=edit, headers=headers)).number


def _written(name: str, raw: bytes) -> dict[str, str]:
    try:
        return {name: raw.decode(), f"{name}_encoding": "utf-8"}
    except UnicodeDecodeError:
        return {name: base64.b64encode(raw).decode("ascii"), f"{name}_encoding": "base64"}
