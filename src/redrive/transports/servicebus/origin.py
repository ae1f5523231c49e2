"""What Service Bus said of a message that somebody else sent: kept in `Message.properties`, with AMQP's types, so
that it can be sent again as it came (G2).

Left behind are what the broker has added (its annotations, the count of deliveries, the moment of expiry), which
it adds again, and the footer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from azure.servicebus.amqp import (
    AmqpAnnotatedMessage,
    AmqpMessageBodyType,
    AmqpMessageHeader,
    AmqpMessageProperties,
)
from msgspec.structs import replace

from redrive import servicebus_paths as paths
from redrive.servicebus_origin import DeadLettered, Origin
from redrive.transports.servicebus import last_words, wire_types
from redrive.transports.servicebus.amqp_values import guessed, kept, packed, readable, sendable, unpacked
from redrive.transports.servicebus.outgoing import PARTITION_KEY, Outgoing

if TYPE_CHECKING:
    from datetime import timedelta

    from azure.servicebus import ServiceBusReceivedMessage

_TEXTS = {
    "to": "to",
    "subject": "subject",
    "reply_to": "reply_to",
    "correlation_id": "correlation_id",
    "content_type": "content_type",
    "content_encoding": "content_encoding",
    "group_id": "session_id",
    "reply_to_group_id": "reply_to_session_id",
}
"""Of AMQP's names, the SDK's."""
_OTHERS = ("message_id", "user_id", "creation_time", "group_sequence")
_BROKERS_OWN = frozenset(
    f"x-opt-{name}"
    for name in (
        "sequence-number",
        "enqueue-sequence-number",
        "enqueued-time",
        "locked-until",
        "lock-token",
        "message-state",
        "scheduled-enqueue-time",
        "deadletter-source",
        "partition-id",
    )
)


def read(received: ServiceBusReceivedMessage, entity: str) -> Origin:
    raw = received.raw_amqp_message
    texts, typed = _properties(raw.properties)
    annotations = [(kept(name), kept(value)) for name, value in (raw.annotations or {}).items()]
    own = [(name, value) for name, value in annotations if readable(name) not in {*_BROKERS_OWN, PARTITION_KEY}]
    partition = next((value for name, value in annotations if readable(name) == PARTITION_KEY), None)
    if isinstance(partition, str):
        texts["partition_key"] = partition
    kind, _, sections = _body(raw)
    lives: timedelta | None = received.time_to_live
    return Origin(
        entity=entity,
        sequence=int(received.sequence_number or 0),
        message_id=_text(typed.get("message_id")),
        texts=texts,
        typed={name: value for name, value in typed.items() if name != "message_id" or not isinstance(value, str)},
        application=_untold(raw.application_properties or {}),
        annotations=own,
        priority=None if raw.header is None or raw.header.priority is None else int(raw.header.priority),
        durable=None if raw.header is None else raw.header.durable,
        lives=None if lives is None else lives.total_seconds(),
        body=kind,
        sections=sections,
        dead=dead_of(received, entity),
    )


def body_of(received: ServiceBusReceivedMessage) -> bytes:
    return _body(received.raw_amqp_message)[1]


def write(origin: Origin, body: bytes) -> Outgoing:
    """As it was sent, without what the broker has added. ValueError for what the SDK cannot send."""
    annotated = AmqpAnnotatedMessage(**_sendable_body(origin, body))
    own = {name: text for name, text in ((name, origin.texts.get(told)) for name, told in _TEXTS.items()) if text}
    typed = {name: _bare(value) for name, value in origin.typed.items()}
    named = {"message_id": origin.message_id} if origin.message_id else {}
    annotated.properties = AmqpMessageProperties(**(named | own | typed))
    annotated.annotations = {_key(name): sendable(value) for name, value in origin.annotations}
    lives = None if origin.lives is None else round(origin.lives * 1000)
    annotated.header = AmqpMessageHeader(time_to_live=lives, priority=origin.priority, durable=origin.durable)
    outgoing = Outgoing(annotated)
    outgoing.partition_key = origin.texts.get("partition_key")
    return outgoing


def renamed(origin: Origin, message_id: Any) -> Origin:
    """With the id that it had before a redrive gave it its own."""
    typed = {name: value for name, value in origin.typed.items() if name != "message_id"}
    told = {} if isinstance(message_id, str) else {"message_id": message_id}
    return replace(origin, message_id=_text(message_id), typed=typed | told)


def unreadable(received: ServiceBusReceivedMessage, entity: str) -> tuple[Origin, bytes]:
    """Of a message that nothing could be made of: what there is, in Python's words, for people."""
    raw = received.raw_amqp_message
    data = list(raw.body) if raw.body_type == AmqpMessageBodyType.DATA else raw.body
    told = {"properties": raw.properties, "application properties": raw.application_properties, "body": data}
    text = "\n".join(f"{name}: {value!s}" for name, value in told.items())
    origin = Origin(entity=entity, sequence=int(received.sequence_number or 0), body="unreadable")
    return origin, text.encode("utf-8", "backslashreplace")


def _properties(given: AmqpMessageProperties | None) -> tuple[dict[str, str], dict[str, Any]]:
    """Texts, and others."""
    found = {} if given is None else {name: kept(getattr(given, name)) for name in (*_TEXTS, *_OTHERS)}
    there = {name: value for name, value in found.items() if value is not None}
    texts = {_TEXTS[name]: text for name in _TEXTS if isinstance(text := _plain(there.get(name)), str)}
    return texts, {name: value for name, value in there.items() if _TEXTS.get(name) not in texts}


def _plain(value: Any) -> Any:
    """The SDK knows itself which of the properties are symbols."""
    return readable(value) if isinstance(value, list) and value[0] == "SYMBOL" else value


def _untold(properties: dict[Any, Any]) -> dict[str, Any]:
    found = {str(readable(kept(name))): kept(value) for name, value in properties.items()}
    return {name: value for name, value in found.items() if guessed(readable(value)) != value}


def _bare(value: Any) -> Any:
    """Of AMQP's own properties the SDK knows the types; of ids it goes by Python's."""
    if not isinstance(value, list):
        return value
    return UUID(bytes=value[1]) if value[0] == "UUID" else value[1]


def _key(name: Any) -> Any:
    """An annotation's is a symbol or a number."""
    told = readable(name)
    return told.encode() if isinstance(told, str) else told


def _text(value: Any) -> str:
    """Of a message's id."""
    told = readable(value)
    if isinstance(told, bytes):
        return told.decode("utf-8", "backslashreplace")
    return "" if told is None else str(told)


def dead_of(received: ServiceBusReceivedMessage, entity: str) -> DeadLettered | None:
    """None: it is alive, as far as anybody says."""
    properties = received.application_properties or {}
    annotations = received.raw_amqp_message.annotations or {}
    reason, description, source = (
        _text(kept(told.get(name)))
        for told, name in (
            (properties, b"DeadLetterReason"),
            (properties, b"DeadLetterErrorDescription"),
            (annotations, b"x-opt-deadletter-source"),
        )
    )
    if not paths.parse(entity).subqueue and not (reason or description or source):
        return None
    return DeadLettered(reason, last_words.for_people(description), source, int(received.delivery_count or 0))


def _body(raw: AmqpAnnotatedMessage) -> tuple[str, bytes, list[int]]:
    if raw.body_type == AmqpMessageBodyType.DATA:
        parts = [bytes(part) for part in raw.body]
        return "data", b"".join(parts), [len(part) for part in parts] if len(parts) > 1 else []
    if raw.body_type == AmqpMessageBodyType.SEQUENCE:
        return "sequence", packed([kept(part) for part in raw.body]), []
    value = kept(raw.body)
    if value is None:
        return "data", b"", []
    if isinstance(value, str):
        return "text", value.encode(), []
    return ("binary", value, []) if isinstance(value, bytes) else ("value", packed(value), [])


def _sendable_body(origin: Origin, body: bytes) -> dict[str, Any]:
    if origin.body == "data":
        return {"data_body": _cut(body, origin.sections)}
    if not wire_types.told():
        raise ValueError("this version of the SDK cannot send a body that is no data")
    if origin.body == "text":
        return {"value_body": {"TYPE": "STRING", "VALUE": body.decode()}}
    if origin.body == "binary":
        return {"value_body": {"TYPE": "BINARY", "VALUE": body}}
    stored = unpacked(body)
    if origin.body == "sequence" and isinstance(stored, list):
        return {"sequence_body": [[sendable(each) for each in part] for _, part in stored]}
    if origin.body == "value":
        return {"value_body": sendable(stored)}
    raise ValueError(f"a message whose body was {origin.body} cannot be sent as it came")


def _cut(body: bytes, sections: list[int]) -> list[bytes]:
    """As it came, unless somebody has changed its length."""
    if sum(sections) != len(body) or not sections:
        return [body]
    ends = [sum(sections[: number + 1]) for number in range(len(sections))]
    return [body[end - length : end] for end, length in zip(ends, sections, strict=True)]
