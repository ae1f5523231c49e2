"""`/letters`: dead letters of consumers that are not ours, handed in one by one."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec
from fastapi import Request
from msgspec import Meta
from starlette.responses import Response

from redrive.access import Permission
from redrive.api.letters import message_headers, raw_bytes
from redrive.api.routes import AtDesk, Routes, answer, taken
from redrive.clock import new_id
from redrive.failure import Failure, FailureKind, Raised
from redrive.message import Message

intake = Routes("Intake")

Name = Annotated[str, Meta(min_length=1, max_length=255)]
Moment = Annotated[datetime, Meta(tz=True)]


class HandedIn(msgspec.Struct, kw_only=True):
    """A message that a consumer could not handle, and why."""

    queue: Name
    error_type: Annotated[str, Meta(min_length=1, max_length=500)]
    """As the consumer's language names it: `TypeError`, `java.io.IOException`."""
    error_text: Annotated[str, Meta(max_length=100_000)] = ""
    handler: Annotated[str, Meta(max_length=255)] = ""
    message_id: Annotated[str, Meta(max_length=255)] = ""
    """Given twice with the same body, it is one letter. Without it, each is a letter of its own."""
    body: str | None = None
    body_encoding: Literal["utf-8", "base64"] = "utf-8"
    headers: list[Any] = []
    """Pairs of a name and a value, in their order, as `message.headers` of a letter has them."""
    kind: FailureKind = FailureKind.PERMANENT
    attempt: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    """The number of the last one."""
    sent_at: Moment | None = None
    failed_at: Moment | None = None
    first_attempt_at: Moment | None = None


class HandedInLetter(msgspec.Struct):
    letter_id: str
    recorded: str
    """Whether it is new, or one more delivery of a letter that is here."""


@intake.at(
    "POST",
    "/letters",
    Permission.INGEST,
    takes=HandedIn,
    answers=HandedInLetter,
    status=HTTPStatus.CREATED,
    summary="Hand in a dead letter; it is durable when this is answered",
)
async def hand_in(request: Request, desk: AtDesk, given: Annotated[HandedIn, taken(HandedIn)]) -> Response:
    now = request.app.state.door.clock.now()
    message = Message(
        id=given.message_id or new_id(),
        queue=given.queue,
        body=None if given.body is None else raw_bytes(given.body, given.body_encoding),
        sent_at=given.sent_at or given.first_attempt_at or given.failed_at or now,
        headers=message_headers(given.headers),
    )
    failure = Failure(
        attempt=given.attempt,
        at=given.failed_at or now,
        kind=given.kind,
        handler=given.handler,
        chain=(Raised(given.error_type, given.error_text, ()),),
    )
    letter_id, recorded = await desk.hand_in(message, (failure,), first_attempt_at=given.first_attempt_at)
    return answer(HandedInLetter(letter_id, str(recorded)), HTTPStatus.CREATED)
