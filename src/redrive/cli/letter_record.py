"""A letter as plain values, for JSON, CSV and tables: letter_json.py's, with what people look for beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from redrive import kafka_origin, sqs_origin
from redrive.event import describe
from redrive.header_json import plain
from redrive.letter_json import letter_values

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter

__all__ = ["SUMMARY", "correlation_of", "error_line", "plain", "record", "summary", "whole_record"]

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
    """The letter with its message, body included; times are exact, for `import` reads it."""
    told = letter_values(letter)
    return {name: told[name] for name in SUMMARY[:-1]} | {
        "message_id": letter.message.id,
        "unreadable": told["unreadable"],
        "message": told["message"],
    }


def whole_record(letter: DeadLetter) -> dict[str, Any]:
    """The letter with its message, every attempt, every revision and its history."""
    told = letter_values(letter)
    failures = [
        {"type": failure.type, "text": failure.text, "trace": failure.trace, **values}
        for failure, values in zip(letter.failures, told["failures"], strict=True)
    ]
    return told | {"message_id": letter.message.id, "failures": failures, **_came(letter)}


def _came(letter: DeadLetter) -> dict[str, Any]:
    """Where it was first read, if that was Kafka or SQS, and what it is followed by from service to service."""
    in_kafka, on_sqs = kafka_origin.origin_of(letter.message), sqs_origin.origin_of(letter.message)
    return {
        "kafka": None if in_kafka is None else msgspec.structs.asdict(in_kafka),
        "sqs": None if on_sqs is None else msgspec.structs.asdict(on_sqs),
        "correlation_id": correlation_of(letter),
    }


def correlation_of(letter: DeadLetter) -> str | None:
    return describe(letter.message, letter.queue).correlation_id
