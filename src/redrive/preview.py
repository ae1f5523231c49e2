"""What a redrive run would do, before it does anything: how many letters, whose, and what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from redrive.dead_letter import DeadLetter, Status
from redrive.letter_query import Count, LetterQuery
from redrive.search_terms import Field, FieldTerm, Filter, Op

GROUPS_SHOWN = 20
SAMPLE = 5


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    """Worth a thought before it begins."""
    STOP = "stop"
    """It would do nothing, or nothing good."""


WORST_FIRST = (Level.STOP, Level.WARN, Level.OK)


class Check(msgspec.Struct, frozen=True):
    name: str
    """What was looked at, a fixed word."""
    level: Level
    text: str
    """What was found, and what to do about it."""


class GroupShare(msgspec.Struct, frozen=True):
    id: str
    title: str
    count: int


class Endings(msgspec.Struct, frozen=True, kw_only=True):
    """How redrives ended."""

    confirmed: int = 0
    came_back: int = 0
    refused: int = 0
    """By the broker."""
    without_word: int = 0
    """Sent, and nobody has said anything since."""

    @property
    def total(self) -> int:
        return self.confirmed + self.came_back + self.refused + self.without_word

    @property
    def decided(self) -> int:
        return self.confirmed + self.came_back


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What the store knows about the letters that a run would take."""

    count: int
    exact: bool
    """False: at least so many. There may be more that could not be counted in short time."""
    by_queue: Mapping[str, int] = {}
    """The most letters first."""
    by_group: tuple[GroupShare, ...] = ()
    """The most letters first, GROUPS_SHOWN of them."""
    groups: int = 0
    """How many there are in all."""
    spread_over: int = 0
    """How many letters `by_queue` and `by_group` tell of: as a rule all that are counted."""
    oldest: datetime | None = None
    newest: datetime | None = None
    """None too where only the oldest letters could be looked at."""
    looked_at: int = 0
    """So many of them, the oldest, were looked at one by one for what follows."""
    redriven: int = 0
    """Were sent before, or tried to."""
    own: Endings = Endings()
    """How the last redrive of each of those ended."""
    earlier: Endings = Endings()
    """How the last redrives of their groups ended, whichever letters these were of."""
    edited: int = 0
    """Do not go back as they came: somebody has edited them."""
    last_chance: int = 0
    """Are QUARANTINED if they come back once more."""
    keyed: int = 0
    """Have a key and are in no order, of the first `keys_of`."""
    ordered: int = 0
    """Of the same: their order is kept."""
    keys_of: int = 0
    same_key: int = 0
    """Have one that another letter of the same queue has too."""
    quarantined: Count = Count(0, exact=True)
    """QUARANTINED letters of the same selection."""
    causes: Mapping[str, int] = {}
    """Why those are, as far as they were looked at: the most letters first."""
    releases: bool = False
    """Whether the run takes those too."""
    sample: tuple[DeadLetter, ...] = ()
    """The oldest, without bodies."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that letters would go to. None: nobody can tell."""

    name: str
    exists: bool | None = None
    consumers: int | None = None
    waiting: int | None = None


class Detour(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription that letters are for: nothing can be sent to it. They land elsewhere."""

    name: str
    place: str
    readers: tuple[str, ...] | None = None
    """Where they land in a topic: who gets them."""
    impossible: str = ""
    """Why they would land nowhere."""


class Targets(msgspec.Struct, frozen=True, kw_only=True):
    queues: tuple[Target, ...] = ()
    readers: tuple[str, ...] | None = None
    """Where letters go to their origin: who reads it; None: not known."""
    readers_are: str = "consumer group"
    detours: tuple[Detour, ...] = ()
    unknown: str = ""
    """Why there is nothing to tell about them."""


class Expired(msgspec.Struct, frozen=True, kw_only=True):
    """Letters of a queue that are older than its `expire_after`."""

    queue: str
    after: float
    letters: Count


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    exact: bool
    by_queue: Mapping[str, int]
    by_group: tuple[GroupShare, ...]
    groups: int
    spread_over: int
    by_target: Mapping[str, int]
    """As `by_queue`, by the queue that letters would go to. Empty: to where each one's producer sent it."""
    oldest: datetime | None
    newest: datetime | None
    sample: tuple[DeadLetter, ...]
    checks: tuple[Check, ...]
    digest: str
    """What an approval of exactly this is bound to. Good only if the count is exact."""

    @property
    def worst(self) -> Level:
        levels = {check.level for check in self.checks}
        return next(level for level in WORST_FIRST if level in levels or level is Level.OK)


def taken_of(selection: LetterQuery, *, quarantined: bool = False) -> LetterQuery:
    """What a run takes of a selection: those that are PENDING, and QUARANTINED ones if it is made for that,
    on all pages.
    """
    found = replace(selection, status=Status.PENDING, after=None, before=None, bodies=False)
    if not quarantined:
        return found
    either = FieldTerm(field=Field.STATUS, op=Op.IS, values=(str(Status.PENDING), str(Status.QUARANTINED)))
    return replace(found, status=None, where=Filter((*selection.where.terms, either)))


def set_apart(selection: LetterQuery) -> LetterQuery | None:
    """The QUARANTINED letters that a selection names. None: it names none."""
    if selection.status not in {None, Status.QUARANTINED}:
        return None
    return replace(taken_of(selection), status=Status.QUARANTINED)
