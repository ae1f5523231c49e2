"""Letters as the API tells them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from redrive.api.cursors import cursor
from redrive.dead_letter import DeadLetter, Happening, Status, Unreadable
from redrive.failure import Host
from redrive.letter_json import letter_values
from redrive.letter_query import Count, Place

Encoding = Literal["utf-8", "base64"] | None


class LetterLine(msgspec.Struct, frozen=True, kw_only=True):
    """A letter in a list: everything but its message and its story. What is personal in `text` is masked."""

    id: str
    status: Status
    how: str | None
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
    message_id: str


_SAME = tuple(name for name in LetterLine.__struct_fields__ if name != "message_id")


def line(letter: DeadLetter) -> LetterLine:
    same = {name: getattr(letter, name) for name in _SAME}
    return LetterLine(**same, message_id=letter.message.id)


class LetterPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page, newest first."""

    items: list[LetterLine]
    next: str | None
    """The cursor of the older page: `after=`. None: this was the last one."""
    previous: str | None
    """The cursor of the newer page: `before=`. None: nothing is newer than where this one began."""
    count: Count | None = None
    """How many match on all pages, if it was asked for."""
    unsearched: int = 0
    """Letters that the filter cannot find yet, because they are not indexed."""


def page(
    letters: list[DeadLetter], limit: int, *, begun: bool, count: Count | None = None, unsearched: int = 0
) -> LetterPage:
    full = len(letters) == limit
    return LetterPage(
        items=[line(each) for each in letters],
        next=cursor(Place.of(letters[-1])) if letters and full else None,
        previous=cursor(Place.of(letters[0])) if letters and begun else None,
        count=count,
        unsearched=unsearched,
    )


class MessageJson(msgspec.Struct, kw_only=True):
    """What the producer sent, or what an edit made of it. Bytes that are not UTF-8 are base64."""

    id: str
    source: str | None
    queue: str
    sent_at: datetime
    headers: list[Any]
    """In their order, repeats included."""
    key: str | None
    key_encoding: Encoding
    body: str | None
    body_encoding: Encoding
    properties: str | None
    body_size: int
    """In bytes, however much of it is told; of one that is masked as a whole, those of the mask."""
    header_count: int


class FrameJson(msgspec.Struct):
    file: str
    line: int
    function: str
    source: str
    own: bool
    """Of the application itself, not of a library."""


class RaisedJson(msgspec.Struct):
    type: str
    text: str
    link: str
    frames: list[FrameJson]


class FailureJson(msgspec.Struct, kw_only=True):
    """One attempt that failed."""

    generation: int
    attempt: int
    at: datetime
    kind: str
    handler: str
    host: Host
    chain: list[RaisedJson]
    trace: str
    """As Python prints it."""


class RevisionJson(msgspec.Struct, kw_only=True):
    number: int
    at: datetime
    by: str
    reason: str
    message: MessageJson
    unreadable: Unreadable | None = None


class Letter(LetterLine, frozen=True, kw_only=True):
    """A letter with its message and its whole story. What is personal is masked; `reveal` shows it."""

    lane: str | None
    blocked_by: str | None
    unreadable: Unreadable | None
    """Why what the message holds cannot be read: it is empty then."""
    message: MessageJson
    failures: list[FailureJson]
    """Every attempt of every generation, oldest first."""
    revisions: list[RevisionJson]
    """Number 0 is the original."""
    history: list[Happening]


def whole(letter: DeadLetter) -> dict[str, Any]:
    """As `Letter`, to be encoded."""
    told = letter_values(letter)
    traces = [{"trace": failure.trace} for failure in letter.failures]
    failures = [values | trace for values, trace in zip(told["failures"], traces, strict=True)]
    return told | {"message_id": letter.message.id, "failures": failures}


class Attempts(msgspec.Struct):
    items: list[FailureJson]


class Revisions(msgspec.Struct):
    items: list[RevisionJson]


class Reason(msgspec.Struct):
    """Why: the history keeps it."""

    reason: str = ""


class LetterChange(msgspec.Struct, kw_only=True):
    """A decision about letters, and why."""

    change: Literal["resolve", "discard", "restore", "quarantine", "release", "purge"]
    ids: list[str]
    """At most 500."""
    reason: str
    dry_run: bool = False
    """Tells what would be done, and does nothing."""


class LettersChanged(msgspec.Struct):
    done: list[str]
    left: dict[str, Status | None]
    """Those that were not changed, with the status that stood in the way; null: there is no such letter."""


class NewRevision(msgspec.Struct, kw_only=True):
    """An edit: what is not given stays. The original is kept for ever."""

    reason: str
    payload: str | msgspec.UnsetType = msgspec.UNSET
    """`data` of an envelope of ours, or a foreign message's whole body."""
    payload_encoding: Literal["utf-8", "base64"] = "utf-8"
    body: str | msgspec.UnsetType | None = msgspec.UNSET
    body_encoding: Literal["utf-8", "base64"] = "utf-8"
    headers: list[Any] | msgspec.UnsetType = msgspec.UNSET
    """As `message.headers` has them."""
    revert_to: int | msgspec.UnsetType = msgspec.UNSET
    """What that revision held, instead of all the above."""


class RevisionMade(msgspec.Struct):
    number: int


class RetryAccepted(msgspec.Struct):
    run_id: str
    status: str


class DlqEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A letter under the names of S1's table."""

    id: str
    event_type: str
    error_message: str
    retry_count: int
    status: Status
    created_at: datetime
    last_retry_at: datetime
    source_id: str


def event(letter: DeadLetter) -> DlqEvent:
    return DlqEvent(
        id=letter.id,
        event_type=letter.queue,
        error_message=f"{letter.type}: {letter.text}",
        retry_count=letter.attempts,
        status=letter.status,
        created_at=letter.created_at,
        last_retry_at=letter.last_attempt_at,
        source_id=letter.message.id,
    )
