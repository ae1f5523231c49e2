"""F26, K12 on RabbitMQ: whatever properties and headers another program publishes, they are stored and go back
as the bytes they were. Compared as they stand in the content header, read by a client of the tests' own.
"""

from __future__ import annotations

import os
import random
import struct
from collections import defaultdict
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chaos.lab.raw_amqp import Raw, RawClient
from redrive import App, Permanent, Transient
from redrive.access import local
from redrive.actions import Actions
from redrive.errors import PublishRefused
from redrive.letter_query import MAX_PAGE
from redrive.message import Message
from redrive.transports import Delivery
from redrive.transports.rabbitmq.transport import RabbitTransport
from support import hostile
from support.amounts import HOSTILE_MESSAGES
from support.patience import until
from support.workshop import Workshop, workshop

GENERATED = HOSTILE_MESSAGES
SEED = int(os.environ.get("REDRIVE_CHAOS_SEED") or random.SystemRandom().getrandbits(32))
CONTENT_TYPE, ENCODING, HEADERS, MODE, PRIORITY, CORRELATION, REPLY_TO, EXPIRATION = (
    1 << bit for bit in range(15, 7, -1)
)
MESSAGE_ID, TIMESTAMP, TYPE, USER_ID, APP_ID, CLUSTER_ID = (1 << bit for bit in range(7, 1, -1))
FLAGS = tuple(1 << bit for bit in range(15, 1, -1))
SIZES = {MODE: 1, PRIORITY: 1, TIMESTAMP: 8}
NOT_SENT_AGAIN = {EXPIRATION, CLUSTER_ID, USER_ID}
"""What would end a message early, and what nobody may say for another."""
BEYOND_A_FRAME = {"header value: a megabyte", "key: a megabyte"}
"""What stands beside the body has to fit into one frame of AMQP: 128 KiB."""
STAY_BEHIND = {b"CC", b"BCC", b"x-death"}
DEATHS = (b"x-first-death-", b"x-last-death-")


def short(text: bytes) -> bytes:
    return bytes((len(text),)) + text


def long(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


def table(*fields: tuple[bytes, bytes]) -> bytes:
    return long(b"".join(short(name) + value for name, value in fields))


def properties(found: dict[int, bytes]) -> bytes:
    return struct.pack(">H", sum(found)) + b"".join(found[flag] for flag in FLAGS if flag in found)


def with_headers(*fields: tuple[bytes, bytes], **_: Any) -> bytes:
    return properties({HEADERS: table(*fields), MODE: b"\x02"})


# The broker itself refuses numbers that are not finite and delivery modes beyond 2, and its quorum queues write a
# truth that is neither 0 nor 1 anew.
VALUES: dict[str, bytes] = {
    "true": b"t\x01", "byte": b"b\x80", "unsigned byte": b"B\xff", "short": b"s\x80\x00",
    "unsigned short": b"u\xff\xff", "int": b"I\x80\x00\x00\x00", "unsigned int": b"i\xff\xff\xff\xff",
    "long": b"l\x80" + bytes(7), "long that fits an int": b"l" + bytes(7) + b"\x05",
    "float": b"f\x3d\xcc\xcc\xcd", "double": b"d\x3f\xb9\x99\x99\x99\x99\x99\x9a",
    "minus zero": b"d\x80" + bytes(7),
    "decimal": b"D\x02\x00\x00\x30\x39", "wild decimal": b"D\xff\xff\xff\xff\xff",
    "text": b"S" + long("ação".encode()), "no text": b"S" + long(b""), "not UTF-8": b"S" + long(b"\xff\xfe\x00"),
    "surrogate": b"S" + long(b"\xed\xa0\x80"), "bytes": b"x" + long(bytes(range(256))),
    "no bytes": b"x" + long(b""),
    "moment": b"T" + bytes(4) + b"\x65\x00\x00\x00",
    "moment in milliseconds": b"T\x00\x00\x01\x8b\xcf\xe5\x68\x00",
    "last moment": b"T" + b"\xff" * 8, "void": b"V",
    "list": b"A" + long(b"I\x00\x00\x00\x01V" + b"A" + long(b"t\x00")), "no list": b"A" + long(b""),
    "table": b"F" + table((b"a", b"V"), (b"a", b"t\x01"), (b"", b"F" + table())), "no table": b"F" + table(),
}  # fmt: skip


def nested(depth: int) -> bytes:
    value = b"V"
    for level in range(depth):
        value = b"F" + table((b"in", value)) if level % 2 else b"A" + long(value)
    return value


def crafted() -> Iterator[tuple[str, bytes]]:
    for name, value in VALUES.items():
        yield f"header: {name}", with_headers((b"value", value))
    yield "all values at once", with_headers(*((name.encode(), value) for name, value in VALUES.items()))
    yield "nothing at all", b"\x00\x00"
    yield "headers that are empty", with_headers()
    yield "a name without letters", with_headers((b"", b"V"))
    yield "names that are no text", with_headers((b"\xff\x00", b"V"), (b"\xff\x01", b"t\x01"))
    yield "the longest name", with_headers((b"n" * 255, b"V"))
    yield "one name three times", with_headers((b"a", b"t\x01"), (b"b", b"V"), (b"a", b"t\x00"), (b"a", b"t\x01"))
    yield "names that differ in case", with_headers((b"Key", b"V"), (b"key", b"t\x01"))
    yield "deep", with_headers((b"deep", nested(60)))
    yield "too deep to be read", with_headers((b"deep", nested(200)))
    yield "a thousand headers", with_headers(*((b"h%d" % number, b"t\x01") for number in range(1000)))
    yield "64 KiB in one header", with_headers((b"large", b"S" + long(b"x" * 65536)))
    yield "100 KiB in many", with_headers(*((b"h%d" % number, b"S" + long(b"y" * 1000)) for number in range(100)))
    yield (
        "headers that would copy it",
        with_headers((b"before", b"V"), (b"CC", b"A" + long(b"S" + long(b"nowhere")))),
    )
    yield "what looks like ours", with_headers((b"x-redrivex", b"V"), (b"x-redriv", b"V"))
    yield "a malformed x-death", with_headers((b"x-death", b"S" + long(b"nobody")))
    yield "every property", properties({
        CONTENT_TYPE: short(b"application/\xff"), ENCODING: short(b""), HEADERS: table((b"k", b"V")),
        MODE: b"\x01", PRIORITY: b"\xff", CORRELATION: short(b"c" * 255),
        REPLY_TO: short(b"amq.rabbitmq.reply-to.x"), EXPIRATION: short(b"600000"),
        MESSAGE_ID: short(b"\xff\xfe"), TIMESTAMP: b"\xff" * 8, TYPE: short(b"\x00"),
        USER_ID: short(b"guest"), APP_ID: short(b"\xed\xa0\x80"), CLUSTER_ID: short(b"cluster"),
    })  # fmt: skip
    yield (
        "properties that are empty",
        properties(dict.fromkeys((CONTENT_TYPE, ENCODING, CORRELATION, TYPE), b"\x00")),
    )
    yield "not persistent", properties({MODE: b"\x01"})


class Random:
    """Properties that nobody has thought of."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311  not a secret

    def properties(self) -> bytes:
        chosen = [flag for flag in FLAGS if self._dice.random() < 0.4]
        return properties({flag: self._field(flag) for flag in chosen})

    def _field(self, flag: int) -> bytes:
        if flag == HEADERS:
            return table(*self._fields(3))
        if flag == EXPIRATION:
            return short(b"%d" % self._dice.randrange(600_000, 10**9))
        fixed = {MODE: bytes((self._dice.randint(1, 2),)), USER_ID: short(b"guest")}
        size = SIZES.get(flag)
        return fixed.get(flag) or (self._bytes(size) if size else short(self._bytes(self._dice.randrange(256))))

    def _fields(self, depth: int) -> list[tuple[bytes, bytes]]:
        return [
            (self._bytes(self._dice.randrange(12)), self._value(depth)) for _ in range(self._dice.randrange(6))
        ]

    def _value(self, depth: int) -> bytes:
        if depth and self._dice.random() < 0.3:
            inner = self._fields(depth - 1)
            return (
                b"F" + table(*inner) if self._dice.random() < 0.5 else b"A" + long(b"".join(v for _, v in inner))
            )
        if self._dice.random() < 0.3:
            return self._dice.choice([b"S", b"x"]) + long(self._bytes(self._dice.randrange(40)))
        return self._dice.choice(list(VALUES.values()))

    def _bytes(self, number: int) -> bytes:
        return self._dice.randbytes(number)


class Split(NamedTuple):
    """Properties cut apart: their fields without the headers, and each header's bytes; None: there are none."""

    fields: dict[int, bytes]
    headers: list[tuple[bytes, bytes]] | None


def split(raw: bytes) -> Split:
    [flags], at, fields = struct.unpack_from(">H", raw), 2, {}
    for flag in FLAGS:
        if flags & flag:
            size = SIZES.get(flag) or (
                4 + struct.unpack_from(">I", raw, at)[0] if flag == HEADERS else 1 + raw[at]
            )
            fields[flag], at = raw[at : at + size], at + size
    assert at == len(raw)
    headers = fields.pop(HEADERS, None)
    return Split(fields, None if headers is None else list(entries(headers[4:])))


def entries(inner: bytes) -> Iterator[tuple[bytes, bytes]]:
    fixed = {**dict.fromkeys(b"tbB", 1), **dict.fromkeys(b"su", 2), **dict.fromkeys(b"Iif", 4), ord("D"): 5}
    at = 0
    while at < len(inner):
        name, at = inner[at + 1 : at + 1 + inner[at]], at + 1 + inner[at]
        kind, start = inner[at], at
        sized = kind in b"SxAF"
        at += (
            5 + struct.unpack_from(">I", inner, at + 1)[0]
            if sized
            else 1 + fixed.get(kind, 0 if kind == ord("V") else 8)
        )
        yield name, inner[start:at]


def as_it_goes_back(raw: bytes) -> Split:
    """What has to arrive when it is sent again: everything, but what must not travel twice."""
    fields, headers = split(raw)
    fields = {flag: value for flag, value in fields.items() if flag not in NOT_SENT_AGAIN} | {MODE: b"\x02"}
    if fields.get(USER_ID) is None and split(raw).fields.get(USER_ID) == short(b"guest"):
        fields[USER_ID] = short(b"guest")  # it is the user that sends it again
    if headers is None:
        return Split(fields, None)
    kept = [each for each in headers if each[0] not in STAY_BEHIND and not each[0].startswith(DEATHS)]
    return Split(fields, kept)


def corpus() -> list[Raw]:
    """Each with a body by which it is known again, whatever its properties say."""
    dice = Random(SEED)
    cases = [*crafted(), *((f"generated {number}", dice.properties()) for number in range(GENERATED))]
    return [Raw(raw, name.encode()) for name, raw in cases]


@pytest.fixture(params=["quorum", "classic"])
def published(request: pytest.FixtureRequest, rabbitmq_url: str) -> dict[bytes, bytes]:
    """The properties of every message that lies in the queue, by its body."""
    print(f"seed {SEED}")  # noqa: T201  shown if the test fails
    with RawClient(rabbitmq_url) as client:
        client.declare("orders", **{"x-queue-type": request.param})
        client.publish("orders", corpus())
    return {raw.body: raw.properties for raw in corpus()}


def came_as(message: Message) -> bytes:
    """The properties that a stored message says it came with, behind exchange and routing key."""
    prefix = b"amqp\x00" + short(b"") + short(b"orders")
    assert message.properties is not None
    assert message.properties.startswith(prefix)
    return message.properties.removeprefix(prefix)


async def test_they_are_stored_and_redriven_as_the_bytes_they_were(
    published: dict[bytes, bytes], rabbitmq_url: str, tmp_path: Path
) -> None:
    app = App("shop")

    @app.handler("orders")
    def refuse(_message: Message) -> None:
        raise Permanent("whatever it is")

    async with workshop(app, tmp_path, broker_url=rabbitmq_url) as shop:
        await until(lambda: letters_are(shop, len(published)), within=60)
        await until(shop.empty)
        await shop.stop()
        letters = await all_letters(shop)
        assert {each.message.body: came_as(each.message) for each in letters} == published
        desk = Actions(store=shop.store, transport=shop.transport, clock=shop.clock, who=local("test"))
        outcomes = await desk.retry([letter.id for letter in letters])
        refused = {each.letter_id: each.note for each in outcomes if str(each.result) != "sent"}
        assert refused == {}

    with RawClient(rabbitmq_url) as client:
        found = client.take("orders", len(published))
    assert {raw.body for raw in found} == published.keys()
    for raw in found:
        fields, headers = split(raw.properties)
        assert headers is not None
        ours = [name for name, _ in headers if name.startswith(b"x-redrive-")]
        assert len(ours) == 4
        rest = [each for each in headers if each[0] not in ours]
        expected = as_it_goes_back(published[raw.body])
        assert (raw.body, fields, rest) == (raw.body, expected.fields, expected.headers or [])


async def letters_are(shop: Workshop, number: int) -> bool:
    return len(await all_letters(shop)) == number


async def all_letters(shop: Workshop) -> list[Any]:
    return await shop.letters(limit=MAX_PAGE)


async def test_they_come_again_and_go_home_from_the_dead_letter_queue_as_the_bytes_they_were(
    published: dict[bytes, bytes], rabbitmq_url: str, tmp_path: Path
) -> None:
    app, seen = App("shop"), defaultdict[bytes, list[bytes]](list)

    @app.handler("orders")
    def refuse(message: Message) -> None:
        seen[message.body or b""].append(came_as(message))
        raise Transient("not yet") if len(seen[message.body or b""]) == 1 else Permanent("never")

    options: dict[str, Any] = {"worker": {"breaker_failures": 0}, "dead_letters": {"sink": "queue"}}
    async with workshop(app, tmp_path, broker_url=rabbitmq_url, **options) as shop:
        await until(lambda: lying(shop, "orders_dlq", len(published)), within=60)
        await shop.stop()
        assert await all_letters(shop) == [], "the dead-letter queue takes all of them"
        assert seen == {body: [raw, raw] for body, raw in published.items()}
        desk = Actions(store=shop.store, transport=shop.transport, clock=shop.clock, who=local("test"))
        assert (await desk.reprocess("orders_dlq")).queue.sent == len(published)

    with RawClient(rabbitmq_url) as client:
        found = client.take("orders", len(published))
    arrived = {raw.body: split(raw.properties) for raw in found}
    assert arrived == {body: as_it_goes_back(raw) for body, raw in published.items()}


async def lying(shop: Workshop, queue: str, number: int) -> bool:
    depth = (await shop.transport.depths([queue])).get(queue)
    return depth is not None and depth.ready == number


async def test_whatever_we_send_ourselves_arrives_as_it_was_at_once_after_a_retry_and_from_the_dead_letter_queue(
    rabbitmq_url: str,
) -> None:
    transport = RabbitTransport(rabbitmq_url)
    try:
        for name, message in hostile.corpus():
            if name in BEYOND_A_FRAME:
                with pytest.raises(PublishRefused, match="the headers take"):
                    await transport.send(message, queue="orders")
                continue
            await transport.send(message, queue="orders")
            first = await taken(transport, "orders")
            await transport.retry(first, first.message, delay=0, trail=b"")
            second = await taken(transport, "orders")
            await transport.send(second.message, queue="orders_dlq")
            third = await taken(transport, "orders_dlq")
            for delivery in (second, third):
                await transport.ack(delivery)
            assert [carried(arrived.message) for arrived in (first, second, third)] == [carried(message)] * 3
    finally:
        await transport.close()


async def taken(transport: RabbitTransport, queue: str) -> Delivery:
    async with aclosing(transport.receive(queue, prefetch=1)) as deliveries:
        return await anext(deliveries)


def carried(message: Message) -> tuple[Any, ...]:
    facts = (message.id, message.queue, message.source, message.sent_at, message.key, message.body)
    return *facts, hostile.exactly(message.headers)
