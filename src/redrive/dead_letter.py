"""The durable record of a message that failed, and the one table of what may happen to it.

API, command line, stores and tests all read `TRANSITIONS`. Anything that is not in it is refused with the
letter's current status. The names T1 to T19 are those of the state picture in ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from redrive.control import RedriveTicket
from redrive.failure import Failure
from redrive.message import Message

MAX_GENERATIONS = 3
MAX_REFUSALS = 3
MAX_DEATHS = 3


class Status(StrEnum):
    PENDING = "PENDING"
    REDRIVING = "REDRIVING"
    REDRIVEN = "REDRIVEN"
    RESOLVED = "RESOLVED"
    DISCARDED = "DISCARDED"
    QUARANTINED = "QUARANTINED"


OPEN = frozenset({Status.PENDING, Status.QUARANTINED})
"""What still wants a person."""


class Transition(StrEnum):
    CAME_BACK = "take back"  # T3
    CLAIM = "redrive"  # T4, T5; T6 when an expired claim is taken over
    SENT = "mark as sent"  # T7
    REFUSED = "mark as refused"  # T8
    CONFIRM = "confirm"  # T10
    RESOLVE = "resolve"  # T11
    DISCARD = "discard"  # T12
    RESTORE = "restore"  # T13
    QUARANTINE = "quarantine"  # T14
    RELEASE = "release"  # T15
    UNCLAIM = "unclaim"  # T16
    EDIT = "edit"  # T17
    PURGE = "purge"  # by hand what T18 does by age
    EXPIRE = "expire"  # T19


class Rule(msgspec.Struct, frozen=True):
    sources: frozenset[Status]
    target: Status | None
    """None: the status stays, or (purge) the letter goes."""


def _rule(target: Status | None, *sources: Status) -> Rule:
    return Rule(frozenset(sources), target)


TRANSITIONS: dict[Transition, Rule] = {
    Transition.CAME_BACK: _rule(Status.PENDING, Status.REDRIVING, Status.REDRIVEN, Status.RESOLVED),
    Transition.CLAIM: _rule(Status.REDRIVING, Status.PENDING),
    Transition.SENT: _rule(Status.REDRIVEN, Status.REDRIVING),
    Transition.REFUSED: _rule(Status.PENDING, Status.REDRIVING),
    Transition.CONFIRM: _rule(Status.RESOLVED, Status.REDRIVING, Status.REDRIVEN),
    Transition.RESOLVE: _rule(Status.RESOLVED, Status.PENDING, Status.REDRIVEN, Status.QUARANTINED),
    Transition.DISCARD: _rule(Status.DISCARDED, Status.PENDING, Status.QUARANTINED),
    Transition.RESTORE: _rule(Status.PENDING, Status.DISCARDED, Status.RESOLVED),
    Transition.QUARANTINE: _rule(Status.QUARANTINED, Status.PENDING),
    Transition.RELEASE: _rule(Status.PENDING, Status.QUARANTINED),
    Transition.UNCLAIM: _rule(Status.PENDING, Status.REDRIVING),
    Transition.EDIT: _rule(None, Status.PENDING),
    Transition.PURGE: _rule(None, Status.RESOLVED, Status.DISCARDED),
    Transition.EXPIRE: _rule(Status.DISCARDED, Status.PENDING),
}

BY_HAND = frozenset(
    {
        Transition.RESOLVE,
        Transition.DISCARD,
        Transition.RESTORE,
        Transition.QUARANTINE,
        Transition.RELEASE,
        Transition.EXPIRE,
    }
)
"""Changes that `DeadLetterStore.change` makes: by a person or a rule, with a reason, one audit row each."""


class Fingerprint(msgspec.Struct, frozen=True):
    """What letters of one cause share."""

    id: str
    """32 hexadecimal digits; the group's id."""
    title: str
    """`type: text` with everything that varies taken out."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What a consumer hands to the store: one message that failed for good, with its whole story."""

    identity: str
    """The source identity: deliveries of the same message have the same one (G3)."""
    message: Message
    """As the producer sent it: our control headers are stripped, the body is untouched."""
    queue: str
    handler: str
    failures: tuple[Failure, ...]
    """Oldest first, at least one."""
    fingerprint: Fingerprint
    at: datetime
    first_attempt_at: datetime
    ticket: RedriveTicket | None = None
    """The verified redrive that came back (T3), or None."""
    quarantine: str | None = None
    """Why the letter must not be redriven without a person looking (T14), or None."""
    by: str = "consumer"
    """Who hands it in, as the letter's history tells."""
    lane: str | None = None
    """What its order is kept by; None: its order is not kept."""


class Unreadable(StrEnum):
    """Why what a letter holds cannot be read, in a store that is encrypted. It is never sent then, nor edited."""

    SHREDDED = "shredded"
    LOCKED = "key missing"
    DAMAGED = "damaged"

    @property
    def explained(self) -> str:
        return _UNREADABLE[self]


_UNREADABLE = {
    Unreadable.SHREDDED: "its data key was destroyed: what it held is gone for good",
    Unreadable.LOCKED: "it is encrypted with a key that is not here: name it in encryption.key_path or "
    "encryption.old_keys (`redrive doctor` says which one)",
    Unreadable.DAMAGED: "its seal is broken: somebody or a disk has changed it; restore it from a backup",
}


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The right to send one letter once. `fence` guards the mark: an older claim's mark changes nothing."""

    letter_id: str
    redrive_id: str
    fence: int
    generation: int
    target: str
    revision: int
    message: Message
    """The current revision, to be sent."""
    unreadable: Unreadable | None = None
    """Then the message is empty and must not be sent: the claim was taken over to be settled."""
    lane: str | None = None
    """Those of one lane are sent one after the other."""

    @property
    def ticket(self) -> RedriveTicket:
        return RedriveTicket(self.redrive_id, self.letter_id, self.generation, self.target)


class Actor(msgspec.Struct, frozen=True):
    """Who changes something, and why."""

    name: str
    reason: str = ""
    request_id: str = ""
    """Of the request that asked for it, as the caller and our log know it."""
    token: str = ""
    """The id of the API token that was shown; never its secret."""


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    at: datetime
    by: str
    reason: str
    message: Message
    unreadable: Unreadable | None = None
    """Then the message is empty."""


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a letter's history: the audit row of a change."""

    at: datetime
    by: str
    what: str
    before: str
    after: str
    reason: str


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """The letter as a person reads it."""

    id: str
    status: Status
    how: str | None
    """How it was resolved, discarded or quarantined: `confirmed`, `expired`, `by hand`, a cause."""
    message: Message
    """The current revision; the original is always `revisions[0]`. In a list, its body is None, whatever it is,
    unless the query asked for `bodies`; what `get` gives has it always.
    """
    queue: str
    handler: str
    kind: str
    type: str
    text: str
    group_id: str
    identity: str
    generation: int
    revision: int
    deliveries: int
    attempts: int
    created_at: datetime
    first_attempt_at: datetime
    last_attempt_at: datetime
    changed_at: datetime
    lane: str | None = None
    """What its order is kept by, if it is."""
    blocked_by: str | None = None
    """The letter before it in its lane that has to be settled first."""
    failures: tuple[Failure, ...] = ()
    """Every attempt of every generation, oldest first. Empty in lists; `get` fills it."""
    generations: tuple[int, ...] = ()
    """The generation of each failure, in the same order."""
    revisions: tuple[Revision, ...] = ()
    history: tuple[Happening, ...] = ()
    unreadable: Unreadable | None = None
    """Why the current revision cannot be read: `message` is empty then."""

    @property
    def version(self) -> Version:
        return Version(
            id=self.id,
            changed_at=self.changed_at,
            generation=self.generation,
            revision=self.revision,
            deliveries=self.deliveries,
        )


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A letter as somebody saw it: any change of it and any further delivery makes another one."""

    id: str
    changed_at: datetime
    generation: int
    revision: int
    deliveries: int


class Verdict(StrEnum):
    """What somebody who has looked says about a group."""

    REPLAYABLE = "replayable"
    REQUIRES_FIX = "requires fix"
    DO_NOT_REPLAY = "do not replay"
    INVESTIGATE = "investigate"


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Letters of one cause. Numbers are exact at the moment they were asked for."""

    id: str
    title: str
    queue: str
    handler: str
    first_seen: datetime
    last_seen: datetime
    total: int
    pending: int
    example: str | None
    """The id of the newest letter. None: there is none now, and the group is kept for what was said about it."""
    by_status: Mapping[str, int] = {}
    """How many letters are in which status; those with none are left out."""
    trend: tuple[int, ...] = ()
    """Letters per hour of the last TREND_HOURS, oldest first; the last one is the hour that has begun."""
    owner: str | None = None
    verdict: Verdict | None = None
    note: str | None = None
    runbook: str | None = None
    merged: tuple[str, ...] = ()
    """Groups whose letters come here since somebody merged them into this one."""
    redrives: Mapping[str, int] = {}
    """How the redrives of its newest REDRIVES_OF letters ended, `under way` for those that have not. Empty in
    lists, like `history`.
    """
    history: tuple[Happening, ...] = ()
    """What people said about it, and which groups they merged into it and split off."""


TREND_HOURS = 24
REDRIVES_OF = 1000


class Recorded(StrEnum):
    """What `record` did: the transitions T1, T2 and T3."""

    NEW = "new"
    AGAIN = "again"
    CAME_BACK = "came back"
