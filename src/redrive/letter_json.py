"""A letter as JSON values, and back exactly: what archives hold, exports write and imports read.

Bytes that are not UTF-8 are base64, and say so; properties always are; nothing and empty differ; headers are as
header_json.py has them.
A list's letter (no failures, revisions or history) is read back as far as it goes.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from redrive.dead_letter import DeadLetter, Happening, Revision, Status, Unreadable
from redrive.failure import Failure, FailureKind, Frame, Host, Raised
from redrive.header_json import headers_of, plain_headers
from redrive.message import Message, cut

_REASON_BUDGET = 300
_ID = r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z"

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Encoding = Literal["utf-8", "base64"] | None


def letter_values(letter: DeadLetter) -> dict[str, Any]:
    """Everything, for `json.dumps`."""
    told = {name: getattr(letter, name) for name in _SUMMARY} | {"status": str(letter.status)}
    return {
        **{name: _plain_moment(value) for name, value in told.items()},
        "lane": letter.lane,
        "blocked_by": letter.blocked_by,
        "unreadable": letter.unreadable and str(letter.unreadable),
        "message": _message_values(letter.message),
        "failures": [
            {"generation": generation, **_failure_values(failure)}
            for generation, failure in zip(letter.generations, letter.failures, strict=True)
        ],
        "revisions": [_revision_values(each) for each in letter.revisions],
        "history": [
            {name: _plain_moment(value) for name, value in msgspec.structs.asdict(each).items()}
            for each in letter.history
        ],
    }


def letter_of(values: Any) -> DeadLetter:
    """What `letter_values` was given, or a letter of `export`. ValueError says what is wrong with others."""
    try:
        told = msgspec.convert(values, _Letter)
        return DeadLetter(
            **{name: getattr(told, name) for name in _SUMMARY},
            lane=told.lane,
            unreadable=told.unreadable,
            message=_message(told.message),
            failures=tuple(_failure(each) for each in told.failures),
            generations=tuple(each.generation for each in told.failures),
            revisions=tuple(_revision(each) for each in told.revisions),
            history=tuple(told.history),
        )
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise ValueError(cut(str(error), _REASON_BUDGET)) from None


def _message_values(message: Message) -> dict[str, Any]:
    return {
        "id": message.id,
        "source": message.source,
        "queue": message.queue,
        "sent_at": message.sent_at.isoformat(),
        "headers": plain_headers(message.headers),
        **_bytes_values("key", message.key),
        **_bytes_values("body", message.body),
        "properties": None if message.properties is None else _base64(message.properties),
    }


def _failure_values(failure: Failure) -> dict[str, Any]:
    return {
        "attempt": failure.attempt,
        "at": failure.at.isoformat(),
        "kind": str(failure.kind),
        "handler": failure.handler,
        "host": msgspec.structs.asdict(failure.host),
        "chain": [_chain_values(raised) for raised in failure.chain],
    }


def _chain_values(raised: Raised) -> dict[str, Any]:
    return {
        "type": raised.type,
        "text": raised.text,
        "link": raised.link,
        "frames": [msgspec.structs.asdict(frame) for frame in raised.frames],
    }


def _bytes_values(name: str, raw: bytes | None) -> dict[str, str | None]:
    if raw is None:
        return {name: None, f"{name}_encoding": None}
    try:
        return {name: raw.decode(), f"{name}_encoding": "utf-8"}
    except UnicodeDecodeError:
        return {name: _base64(raw), f"{name}_encoding": "base64"}


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


class _Message(msgspec.Struct):
    id: str
    queue: str
    sent_at: Moment
    headers: list[Any]
    source: str | None = None
    key: str | None = None
    key_encoding: Encoding = None
    body: str | None = None
    body_encoding: Encoding = None
    properties: str | None = None
    """Missing in what was written before there were any."""


class _Frame(msgspec.Struct):
    file: str
    line: int
    function: str
    source: str
    own: bool


class _Raised(msgspec.Struct):
    type: str
    text: str
    link: str = ""
    frames: list[_Frame] = []


class _Failure(msgspec.Struct):
    generation: Count
    attempt: Count
    at: Moment
    kind: FailureKind
    handler: str
    chain: Annotated[list[_Raised], msgspec.Meta(min_length=1)]
    host: Host = Host()


class _Revision(msgspec.Struct):
    number: Count
    at: Moment
    by: str
    reason: str
    message: _Message
    unreadable: Unreadable | None = None


class _Letter(msgspec.Struct):
    id: Annotated[str, msgspec.Meta(pattern=_ID)]
    status: Status
    how: str | None
    queue: str
    handler: str
    kind: FailureKind
    type: str
    text: str
    group_id: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")]
    identity: str
    generation: Count
    revision: Count
    deliveries: Count
    attempts: Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
    created_at: Moment
    first_attempt_at: Moment
    last_attempt_at: Moment
    changed_at: Moment
    message: _Message
    lane: str | None = None
    unreadable: Unreadable | None = None
    failures: list[_Failure] = []
    revisions: list[_Revision] = []
    history: list[Happening] = []


_SUMMARY = _Letter.__struct_fields__[: _Letter.__struct_fields__.index("message")]


def _plain_moment(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _revision_values(revision: Revision) -> dict[str, Any]:
    return {
        "number": revision.number,
        "at": revision.at.isoformat(),
        "by": revision.by,
        "reason": revision.reason,
        "unreadable": revision.unreadable and str(revision.unreadable),
        "message": _message_values(revision.message),
    }


def _message(told: _Message) -> Message:
    return Message(
        id=told.id,
        queue=told.queue,
        body=_raw("body", told.body, told.body_encoding),
        sent_at=told.sent_at,
        headers=headers_of(told.headers),
        key=_raw("key", told.key, told.key_encoding),
        source=told.source,
        properties=_raw("properties", told.properties, "base64"),
    )


def _raw(name: str, text: str | None, encoding: Encoding) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True) if encoding == "base64" else text.encode("utf-8")
    except (ValueError, UnicodeEncodeError):
        raise ValueError(f"the {name} is not {encoding or 'utf-8'}") from None


def _failure(told: _Failure) -> Failure:
    return Failure(
        attempt=told.attempt,
        at=told.at,
        kind=told.kind,
        handler=told.handler,
        chain=tuple(
            Raised(
                each.type,
                each.text,
                tuple(Frame(*msgspec.structs.astuple(frame)) for frame in each.frames),
                each.link,
            )
            for each in told.chain
        ),
        host=told.host,
    )


def _revision(told: _Revision) -> Revision:
    return Revision(
        number=told.number,
        at=told.at,
        by=told.by,
        reason=told.reason,
        message=_message(told.message),
        unreadable=told.unreadable,
    )
