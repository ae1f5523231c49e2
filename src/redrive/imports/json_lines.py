"""Anybody's failures, one object per line.

    {"queue": "orders", "data": {"order_id": 17}, "id": "m-1", "at": "2026-03-01T12:00:00Z",
     "error": {"type": "TimeoutError", "text": "no answer", "trace": "..."}}

Needed are `queue`, `at` and one of `data` (any JSON, kept as it is written), `body` (text) and `body_base64`. A
letter is known by `identity`, or by `queue` and `id`; without one of these, by the line itself. There may also be
`handler`, `headers` (an object or a list of pairs), `key`, `source`, `attempts`, `kind` and `sent_at`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from redrive.failure import TEXT_BUDGET, FailureKind, Frame, Raised
from redrive.header_json import headers_of, value_of
from redrive.imports.values import MOST_ATTEMPTS, failed_once, moment
from redrive.message import Message, cut

if TYPE_CHECKING:
    from redrive.dead_letter import Entry
    from redrive.imports.rows import Row
    from redrive.message import Headers

_TYPE_BUDGET = 256
_LINE_BUDGET = 512
_MOST_TRACE_LINES = 64


class _Error(msgspec.Struct):
    type: str = ""
    text: str = ""
    message: str = ""
    code: str | int = ""
    trace: str = ""


class _Line(msgspec.Struct):
    queue: str
    at: str | int | float
    id: str | None = None
    identity: str | None = None
    body: str | None = None
    body_base64: str | None = None
    key: str | None = None
    source: str | None = None
    handler: str = "unknown"
    headers: Any = None
    error: _Error | str | None = None
    kind: FailureKind = FailureKind.PERMANENT
    attempts: Annotated[int, msgspec.Meta(ge=1, le=MOST_ATTEMPTS)] = 1
    sent_at: str | int | float | None = None


def recognises(row: Row) -> bool:
    return "queue" in row.values


def letter_of_row(row: Row) -> Entry:
    try:
        told = msgspec.convert(row.values, _Line)
    except msgspec.ValidationError as wrong:
        raise ValueError(str(wrong)) from None
    at = moment("at", told.at)
    identity = told.identity or _identity(told, row.raw)
    message = Message(
        id=told.id or identity,
        queue=told.queue,
        body=_body(row, told),
        sent_at=at if told.sent_at is None else moment("sent_at", told.sent_at),
        headers=_headers(told.headers),
        key=None if told.key is None else told.key.encode("utf-8", "surrogatepass"),
        source=told.source,
    )
    chain = (_raised(told.error),)
    return failed_once(
        message, identity, handler=told.handler, attempts=told.attempts, at=at, chain=chain, kind=told.kind
    )


def raised(type_: str, text: str, trace: str) -> Raised:
    """Whose trace it is nobody knows: its last lines are kept as they are, each as the source of a frame."""
    lines = trace.splitlines()[-_MOST_TRACE_LINES:]
    frames = tuple(
        Frame("trace", number, "?", cut(line, _LINE_BUDGET), own=False) for number, line in enumerate(lines, 1)
    )
    return Raised(cut(type_ or "Error", _TYPE_BUDGET), cut(text, TEXT_BUDGET), frames)


def _raised(error: _Error | str | None) -> Raised:
    if not isinstance(error, _Error):
        return raised("", error or "", "")
    return raised(error.type or str(error.code), error.text or error.message, error.trace)


def _identity(told: _Line, raw: bytes) -> str:
    if told.id is not None:
        return "jsonl:" + json.dumps([told.queue, told.id])
    return f"jsonl:{hashlib.sha256(raw).hexdigest()}"


def _body(row: Row, told: _Line) -> bytes | None:
    given = [name for name in ("data", "body", "body_base64") if name in row.values]
    if len(given) != 1:
        raise ValueError("one of data, body and body_base64 is wanted")
    if given == ["data"]:
        return _written(row)
    if told.body_base64 is not None:
        try:
            return base64.b64decode(told.body_base64, validate=True)
        except ValueError:
            raise ValueError("body_base64 is not base64") from None
    return None if told.body is None else told.body.encode("utf-8", "surrogatepass")


def _written(row: Row) -> bytes:
    """`data` as it stands in the line, so that numbers keep their digits."""
    try:
        return bytes(msgspec.json.decode(row.raw, type=dict[str, msgspec.Raw])["data"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError):  # what only Python's reader takes
        return json.dumps(row.values["data"]).encode()


def _headers(given: Any) -> Headers:
    if given is None:
        return ()
    if isinstance(given, dict):
        return tuple((name, value_of(value)) for name, value in given.items())
    return headers_of(given)
