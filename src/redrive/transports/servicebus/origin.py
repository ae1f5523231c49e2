"""What Service Bus said of a message that somebody else sent: kept in `Message.properties` (G2).

The SDK does not tell text from bytes, nor the widths of numbers: what of that is lost is lost before it gets here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from azure.servicebus import ServiceBusMessage
from azure.servicebus.amqp import AmqpMessageBodyType

from redrive import servicebus_paths as paths
from redrive.headers import encode_headers
from redrive.servicebus_origin import DeadLettered, Origin
from redrive.transports.servicebus import last_words

if TYPE_CHECKING:
    from azure.servicebus import ServiceBusReceivedMessage

_TEXTS = (
    "correlation_id",
    "subject",
    "content_type",
    "to",
    "reply_to",
    "reply_to_session_id",
    "session_id",
    "partition_key",
)


def read(received: ServiceBusReceivedMessage, entity: str) -> tuple[Origin, bytes]:
    """What it was, and its body as bytes."""
    found = {name: getattr(received, name) for name in _TEXTS}
    kind, body = _body(received)
    lives: timedelta | None = received.time_to_live
    origin = Origin(
        entity=entity,
        sequence=received.sequence_number or 0,
        message_id=str(received.message_id or ""),
        texts={name: str(value) for name, value in found.items() if value is not None},
        lives=None if lives is None else lives.total_seconds(),
        body=kind,
        dead=_dead(received, entity),
    )
    return origin, body


def write(origin: Origin, body: bytes) -> ServiceBusMessage:
    """As it was sent, without what the broker has added."""
    if origin.body != "data":
        raise ValueError(f"a message whose body is an AMQP {origin.body} cannot be sent with this SDK as it came")
    message = ServiceBusMessage(body)
    for name, text in origin.texts.items():
        setattr(message, name, text)
    if origin.message_id:
        message.message_id = origin.message_id
    if origin.lives is not None:
        message.time_to_live = timedelta(seconds=origin.lives)
    return message


def _dead(received: ServiceBusReceivedMessage, entity: str) -> DeadLettered | None:
    """None: it is alive, as far as anybody says."""
    said = (received.dead_letter_reason, received.dead_letter_error_description, received.dead_letter_source)
    if not paths.parse(entity).subqueue and not any(said):
        return None
    reason, description, source = (str(each or "") for each in said)
    return DeadLettered(reason, last_words.for_people(description), source, received.delivery_count or 0)


def _body(received: ServiceBusReceivedMessage) -> tuple[str, bytes]:
    given = received.body
    if received.body_type == AmqpMessageBodyType.DATA:
        return "data", b"".join(bytes(part) for part in given)
    if given is None:
        return "data", b""
    kind = "sequence" if received.body_type == AmqpMessageBodyType.SEQUENCE else "value"
    return kind, encode_headers((("", list(given) if kind == "sequence" else given),))
