"""RESOLVED and DISCARDED letters older than the rules say leave the store: archived, read back, then purged (T18,
SD4).

1. What the last run archived and did not come to purge is purged, if the store still has it as the archive does.
2. A batch of the letters that were settled longest ago is written into an archive file of its own.
   Crash here: a part of a file, thrown away by the next run; the store is untouched.
3. The file is read back from the disk and compared, letter by letter, and noted in the folder's manifest. Where
   copies are asked for, one is made, read back and compared too.
   Crash here: a whole file, and the store untouched: step 1 of the next run.
4. Its letters are purged, a few per transaction, each guarded: one that changed since it was archived stays.
   Crash here: some are gone and in the file, the others are in both: step 1 of the next run.

A letter that changed between two runs is archived again by the later one; the newer file is the one that counts.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, nullcontext
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from redrive import __version__, faults
from redrive.dead_letter import Actor, Unreadable
from redrive.duration import short
from redrive.keeping import Ended
from redrive.pace import Pace
from redrive.upkeep.archive_file import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from redrive.clock import Clock
    from redrive.dead_letter import DeadLetter, Version
    from redrive.keeping import EndedCount, KeepRules, Limits
    from redrive.stores import DeadLetterStore
    from redrive.upkeep.archive import Archive, NewArchive
    from redrive.upkeep.clock_note import ClockNote

_PURGED_AT_ONCE = 100
"""Letters of one transaction: nobody waits long for it."""


_KEPT = frozenset({Unreadable.LOCKED, Unreadable.DAMAGED})
"""A key or a backup may bring back what these letters hold: an archive that has nothing of it must not take their
place. What was shredded nobody can bring back.
"""


class Retained(msgspec.Struct, frozen=True):
    """What became of the letters so far."""

    purged: int = 0
    left: int = 0
    """Changed while they were archived, too large for an archive, or not to be read: still in the store."""
    files: int = 0
    """Archives that were written."""


class Retention:
    """`archive` None: purged without a trace but the lines of history."""

    def __init__(
        self,
        *,
        store: DeadLetterStore,
        archive: Archive | None,
        clock: Clock,
        clock_note: ClockNote,
        actor: str,
    ) -> None:
        self._store = store
        self._archive = archive
        self._clock = clock
        self._clock_note = clock_note
        self._actor = actor
        self.done = Retained()
        """Told even if the run ends in an error."""

    async def due(self, rules: KeepRules, *, sizes: bool = False) -> list[EndedCount]:
        """What a run would take away now, by queue and status."""
        return await self._store.count_ended(rules.limits(self._clock.now()), sizes=sizes)

    async def run(
        self,
        rules: KeepRules,
        *,
        batch: int,
        rate: float | None = None,
        at_most: int | None = None,
        on_progress: Callable[[int], None] | None = None,
        clock_is_right: bool = False,
        still_ours: Callable[[], None] = lambda: None,
    ) -> Retained:
        """Until nothing older than the rules say is left, or `at_most` letters were taken in hand, `rate` of them
        per second. Refused, and nothing is purged, if the clock may be wrong or another process is at it.
        `clock_is_right`: a person says so. `still_ours` is called before anything is purged, and raises if
        somebody else has the work by now.
        """
        pace = Pace(rate, self._clock)
        await self.check_clock(rules, is_right=clock_is_right)
        advance = on_progress or (lambda _done: None)
        passage = _Passage(rules, rules.limits(self._clock.now()), pace, advance, still_ours)
        with nullcontext() if self._archive is None else self._archive.alone():
            await self._finish_last(passage, at_most)
            after: Version | None = None
            met = self.done.purged
            while at_most is None or met < at_most:
                size = batch if at_most is None else min(batch, at_most - met)
                found = await self._store.ended(passage.before, after=after, limit=size)
                if not found:
                    break
                await self._take(found, passage)
                met, after = met + len(found), found[-1].version
        return self.done

    async def check_clock(self, rules: KeepRules, *, is_right: bool = False) -> None:
        """Notes it. Refused if it may have jumped."""
        await self._clock_note.check(keep=rules.shortest, is_right=is_right)

    async def _finish_last(self, passage: _Passage, at_most: int | None) -> None:
        if self._archive is None or not (files := self._archive.files()):
            return
        # Files are written one after the other, so only the newest can hold what is not purged.
        digests = await asyncio.to_thread(_digests_of, self._archive, files[0])
        await asyncio.to_thread(self._archive.note, files[0], len(digests))
        await asyncio.to_thread(self._archive.keep_copy, files[0])
        async with aclosing(self._store.whole(list(digests))) as letters:
            same = [_as_ended(each) async for each in letters if digest_of(each) == digests[each.id]]
        # The limit may have been shorter when they were archived.
        old = [each for each in same if each.version.changed_at < passage.before.of(each.queue, each.status)]
        await self._purge(old[:at_most], passage, files[0].name)

    async def _take(self, found: Sequence[Ended], passage: _Passage) -> None:
        if self._archive is None:
            await self._purge(found, passage, None)
            return
        file = await self._write(self._archive, found)
        await asyncio.to_thread(file.read_back)
        await asyncio.to_thread(self._archive.note, file.path, len(file.versions))
        await asyncio.to_thread(self._archive.keep_copy, file.path)
        faults.point("retention.after_verify")
        self._note(files=1)
        within = {each.id for each in file.versions}
        await self._purge([each for each in found if each.version.id in within], passage, file.path.name)

    async def _write(self, archive: Archive, found: Sequence[Ended]) -> NewArchive:
        faults.point("retention.before_archive")
        chosen = {each.version.id: each.version for each in found}
        file = archive.begin(self._clock.now(), by=f"redrive {__version__}")
        try:
            async with aclosing(self._store.whole(list(chosen))) as letters:
                async for letter in letters:
                    # One that changed since it was chosen need not be old any more.
                    same = letter.version == chosen[letter.id] and letter.unreadable not in _KEPT
                    if not same or not await asyncio.to_thread(file.add, letter):
                        self._note(left=1)
            await asyncio.to_thread(file.finish)
        finally:
            file.abandon()
        faults.point("retention.after_archive")
        return file

    async def _purge(self, ended: Sequence[Ended], passage: _Passage, file: str | None) -> None:
        where = "not archived" if file is None else f"archived in {file}"
        size = passage.pace.window(_PURGED_AT_ONCE, within=1.0)
        for keep, versions in _by_age(ended, passage.rules).items():
            by = Actor(self._actor, f"older than {short(keep)}, {where}")
            for start in range(0, len(versions), size):
                await self._purge_together(versions[start : start + size], by, passage)

    async def _purge_together(self, lot: Sequence[Version], by: Actor, passage: _Passage) -> None:
        for _ in lot:
            await passage.pace.turn()
        faults.point("retention.before_purge")
        passage.still_ours()
        left = await self._store.purge(lot, by=by)
        faults.point("retention.after_purge")
        self._note(purged=len(lot) - len(left), left=len(left))
        passage.advance(len(lot))

    def _note(self, *, purged: int = 0, left: int = 0, files: int = 0) -> None:
        done = self.done
        self.done = Retained(done.purged + purged, done.left + left, done.files + files)


class _Passage(NamedTuple):
    """What one run has to know at every step."""

    rules: KeepRules
    before: Limits
    pace: Pace
    advance: Callable[[int], None]
    still_ours: Callable[[], None]


def _as_ended(letter: DeadLetter) -> Ended:
    return Ended(letter.version, letter.queue, letter.status)


def _by_age(ended: Sequence[Ended], rules: KeepRules) -> dict[float, list[Version]]:
    """By how long the rules keep them, for that is the reason that their histories tell."""
    found: dict[float, list[Version]] = {}
    for each in ended:
        found.setdefault(rules.of(each.queue, each.status), []).append(each.version)
    return found


def _digests_of(archive: Archive, path: Path) -> dict[str, bytes]:
    return {letter.id: digest_of(letter) for letter in archive.read(path)}
