"""The frames of AMQP 0-9-1 that every message needs, written by hand because they are the hot path: deliver,
header, body, ack, reject, publish. All other methods are pamqp's (`methods`).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END = 0xCE
OVERHEAD = 8
"""Bytes of a frame beside its payload."""
GREETING = b"AMQP\x00\x00\x09\x01"
HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"

HEAD = Struct(">BHI")
INDEX = Struct(">I")
_CONTENT = Struct(">BHIHHQ")
_DELIVERY_TAG = Struct(">Q")
_SETTLE = Struct(">BHIIQBB")
_SETTLE_SIZE = 13

DELIVER, RETURN, ACK, NACK, REJECT, PUBLISH = 0x3C003C, 0x3C0032, 0x3C0050, 0x3C0078, 0x3C005A, 0x3C0028
CLOSE, CLOSE_OK = 0x140028, 0x140029
CONTENT_CLASS = 60


def ack(channel: int, tag: int, *, multiple: bool = False) -> bytes:
    return _SETTLE.pack(METHOD, channel, _SETTLE_SIZE, ACK, tag, multiple, FRAME_END)


def reject(channel: int, tag: int, *, requeue: bool) -> bytes:
    """By `reject`, not `nack`: since RabbitMQ 4.3 only it counts as a delivery that failed."""
    return _SETTLE.pack(METHOD, channel, _SETTLE_SIZE, REJECT, tag, requeue, FRAME_END)


def settled(payload: bytes) -> tuple[int, bool]:
    """Tag and `multiple` of the broker's ack or nack."""
    return _DELIVERY_TAG.unpack_from(payload, 4)[0], bool(payload[12] & 1)


def publish(  # noqa: PLR0917  the hot path
    channel: int, exchange: bytes, routing_key: bytes, properties: bytes, body: bytes, frame_max: int
) -> bytes:
    """A whole message, mandatory: what reaches no queue is returned."""
    method = b"".join(
        (
            INDEX.pack(PUBLISH),
            b"\x00\x00",
            bytes((len(exchange),)),
            exchange,
            bytes((len(routing_key),)),
            routing_key,
            b"\x01",
        )
    )
    return b"".join(
        (
            HEAD.pack(METHOD, channel, len(method)),
            method,
            b"\xce",
            _CONTENT.pack(HEADER, channel, 12 + len(properties), CONTENT_CLASS, 0, len(body)),
            properties,
            b"\xce",
            *_bodies(channel, body, frame_max - OVERHEAD),
        )
    )


def _bodies(channel: int, body: bytes, room: int) -> Iterator[bytes]:
    for start in range(0, len(body), room):
        part = body[start : start + room]
        yield HEAD.pack(BODY, channel, len(part))
        yield part
        yield b"\xce"


def delivery(payload: bytes) -> tuple[int, bool, bytes]:
    """Tag, `redelivered`, and the rest of a deliver method: exchange and routing key as short strings."""
    at = 5 + payload[4]  # behind the consumer tag
    return _DELIVERY_TAG.unpack_from(payload, at)[0], payload[at + 8] != 0, payload[at + 9 :]


def returned(payload: bytes) -> tuple[bytes, bytes, bytes]:
    """Reason, exchange and routing key of a return method: names need not be text."""
    parts, at = [], 6  # behind the code
    for _ in range(3):
        stop = at + 1 + payload[at]
        parts.append(payload[at + 1 : stop])
        at = stop
    reason, exchange, routing_key = parts
    return reason, exchange, routing_key


def content_size(payload: bytes) -> int:
    size: int = _DELIVERY_TAG.unpack_from(payload, 4)[0]
    return size
