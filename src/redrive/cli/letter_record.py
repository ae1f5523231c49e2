"""A letter as plain values, for JSON, CSV and tables. Bytes that are not UTF-8 are base64, and say so."""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter
    from redrive.failure import Failure
    from redrive.message import Message

SUMMARY = (
    "id",
    "status",
    "how",
    "queue",
    "handler",
    "kind",
    "type",
    "text",
    "group_id",
    "identity",
    "generation",
    "revision",
    "deliveries",
    "attempts",
    "created_at",
    "first_attempt_at",
    "last_attempt_at",
    "changed_at",
    "message_id",
)


def summary(letter: DeadLetter) -> dict[str, Any]:
    """Everything about the letter but its message and its story."""
    return {name: getattr(letter, name) for name in SUMMARY[:-1]} | {"message_id": letter.message.id}


def error_line(letter: DeadLetter) -> str:
    name = letter.type.rpartition(".")[2]
    return f"{name}: {letter.text}" if letter.text else name


def record(letter: DeadLetter) -> dict[str, Any]:
    """The letter with its message, body included."""
    return {**summary(letter), "message": message_record(letter.message)}


def whole_record(letter: DeadLetter) -> dict[str, Any]:
    """The letter with its message, every attempt, every revision and its history."""
    return {
        **record(letter),
        "failures": [
            {"generation": generation, **_failure(failure)}
            for generation, failure in zip(letter.generations, letter.failures, strict=True)
        ],
        "revisions": [
            {
                "number": revision.number,
                "at": revision.at,
                "by": revision.by,
                "reason": revision.reason,
                "message": message_record(revision.message),
            }
            for revision in letter.revisions
        ],
        "history": [msgspec.structs.asdict(happening) for happening in letter.history],
    }


def message_record(message: Message) -> dict[str, Any]:
    return {
        "id": message.id,
        "source": message.source,
        "queue": message.queue,
        "sent_at": message.sent_at,
        "headers": [[name, plain(value)] for name, value in message.headers],
        **_encoded("key", message.key),
        **_encoded("body", message.body),
    }


def plain(value: Any) -> Any:
    """A header's value for JSON: bytes as `{"base64": ...}`, numbers that JSON does not know as text."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value


def _encoded(name: str, raw: bytes | None) -> dict[str, str | None]:
    if raw is None:
        return {name: None, f"{name}_encoding": None}
    try:
        return {name: raw.decode(), f"{name}_encoding": "utf-8"}
    except UnicodeDecodeError:
        return {name: base64.b64encode(raw).decode("ascii"), f"{name}_encoding": "base64"}


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "attempt": failure.attempt,
        "at": failure.at,
        "kind": str(failure.kind),
        "handler": failure.handler,
        "type": failure.type,
        "text": failure.text,
        "trace": failure.trace,
        "host": msgspec.structs.asdict(failure.host),
    }
