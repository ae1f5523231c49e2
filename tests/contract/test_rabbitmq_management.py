"""The client of the management API against a real RabbitMQ, and against servers that are none."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import quote

import pytest

from redrive.errors import ConfigurationError, NotFound, Unreachable
from redrive.finding import FindingLevel
from redrive.transports.inspection import Expected
from redrive.transports.rabbitmq import management as module
from redrive.transports.rabbitmq.binding_routes import Routes, matches
from redrive.transports.rabbitmq.broker_facts import BrokerFacts
from redrive.transports.rabbitmq.examination import examine
from redrive.transports.rabbitmq.management import Management, NotAllowed, NotEnabled
from redrive.transports.rabbitmq.management_address import ManagementAddress
from support.patience import until
from support.rabbitmq_server import RabbitServer, vhost_of

PASSWORD = "hunter2-not-told"  # noqa: S105  a canary
SAFE = {
    "x-queue-type": "quorum",
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": "dlq",
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}


class Vhost:
    """What a test puts into its own virtual host, and a client that looks at it."""

    def __init__(self, server: RabbitServer, url: str) -> None:
        self._server = server
        self._path = quote(vhost_of(url), safe="")
        self.ask = Management(ManagementAddress(url, server.management_url))

    def make(self, what: str, name: str, **body: object) -> None:
        self._server.api("PUT", f"/{what}/{self._path}/{quote(name, safe='')}", body)

    def queue(self, name: str, arguments: dict[str, object] | None = None) -> None:
        self.make("queues", name, durable=True, arguments=arguments or {})

    def bind(self, exchange: str, queue: str, key: str) -> None:
        path = f"/bindings/{self._path}/e/{quote(exchange, safe='')}/q/{quote(queue, safe='')}"
        self._server.api("POST", path, {"routing_key": key})

    def publish(self, exchange: str, key: str) -> bool:
        """Whether the broker had a queue for it."""
        body = {"routing_key": key, "properties": {}, "payload": "x", "payload_encoding": "string"}
        answer = self._server.api("POST", f"/exchanges/{self._path}/{exchange or 'amq.default'}/publish", body)
        routed: bool = answer["routed"]
        return routed

    async def facts(self) -> BrokerFacts:
        return BrokerFacts(
            overview=await self.ask.overview(),
            queues=tuple(await self.ask.queues()),
            exchanges=tuple(await self.ask.exchanges()),
            bindings=tuple(await self.ask.bindings()),
        )


@pytest.fixture
async def vhost(rabbitmq: RabbitServer, rabbitmq_url: str) -> AsyncIterator[Vhost]:
    made = Vhost(rabbitmq, rabbitmq_url)
    yield made
    await made.ask.close()


async def test_it_tells_what_the_broker_is(vhost: Vhost) -> None:
    overview = await vhost.ask.overview()
    assert overview.release is not None
    assert overview.release >= (3, 10)

    async def nodes() -> bool:  # a node that has just started does not tell everything yet
        told = [(each.running, each.memory_alarm, each.disk_alarm) for each in await vhost.ask.nodes()]
        return told == [(True, False, False)]

    await until(nodes)


async def test_a_queue_comes_with_arguments_policy_and_what_is_in_it(vhost: Vhost) -> None:
    vhost.make(
        "policies", "short", pattern="^orders", definition={"message-ttl": 60_000}, **{"apply-to": "queues"}
    )
    vhost.queue("orders/ä #1", {"x-queue-type": "quorum"})
    vhost.queue("plain")
    assert vhost.publish("", "plain")
    assert vhost.publish("", "orders/ä #1")

    async def told() -> bool:  # the broker gathers its figures every few seconds
        found = await vhost.ask.queue("orders/ä #1")
        if found is None or not found.bytes:
            return False
        return found.messages == 1 and found.policy == {"message-ttl": 60_000}

    await until(told)
    found = {each.name: each for each in await vhost.ask.queues()}
    assert set(found) == {"orders/ä #1", "plain"}
    orders = found["orders/ä #1"]
    assert (orders.type, orders.durable, orders.auto_delete, orders.exclusive) == ("quorum", True, False, False)
    assert orders.arguments == {"x-queue-type": "quorum"}
    assert (orders.ready, orders.unacked, orders.held, orders.consumers) == (1, 0, 0, 0)
    assert (orders.state, (orders.bytes or 0) > 0) == ("running", True)
    assert orders.incoming is not None
    assert await vhost.ask.queue("nobody") is None


async def test_all_pages_are_read(vhost: Vhost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", 2)
    names = {f"q{number}" for number in range(5)}
    for name in names:
        vhost.queue(name)
    assert sorted(each.name for each in await vhost.ask.queues()) == sorted(names)


async def test_an_empty_vhost_has_no_queues_and_one_that_is_missing_is_not_found(
    vhost: Vhost, rabbitmq: RabbitServer
) -> None:
    assert await vhost.ask.queues() == []
    missing = Management(ManagementAddress(rabbitmq.url_of("missing"), rabbitmq.management_url))
    with pytest.raises(NotFound, match="missing"):
        await missing.queues()
    await missing.close()


async def test_exchanges_bindings_consumers_connections_and_permissions(vhost: Vhost) -> None:
    vhost.make("exchanges", "dead", type="topic", durable=True, arguments={"alternate-exchange": "amq.fanout"})
    vhost.queue("dlq")
    vhost.bind("dead", "dlq", "a.#")
    exchanges = {each.name: each for each in await vhost.ask.exchanges()}
    assert (exchanges["dead"].type, exchanges["dead"].alternate) == ("topic", "amq.fanout")
    bindings = await vhost.ask.bindings("dead")
    assert [(each.source, each.destination, each.to_queue, each.key) for each in bindings] == [
        ("dead", "dlq", True, "a.#")
    ]
    assert await vhost.ask.bindings("nobody") == []
    assert [(each.source, each.destination) for each in await vhost.ask.bindings("")] == [("", "dlq")]
    assert await vhost.ask.consumers() == []
    assert await vhost.ask.connections() == []
    assert any(each.configure == ".*" for each in await vhost.ask.permissions())


async def test_routes_are_those_of_the_broker(vhost: Vhost) -> None:
    """Topic patterns and exchanges bound to exchanges, against what the broker itself does with a message."""
    patterns = ["#", "*", "a", "a.*", "a.#", "#.b", "*.b", "a.*.b", "a.#.b", "#.a.#", "*.*", "a..b", "#.*", ""]
    keys = ["", "a", "b", "a.b", "a.b.b", "a.c.d.b", "a..b", ".", "b.a", "a."]
    vhost.queue("taken")
    wrong = []
    for number, pattern in enumerate(patterns):
        exchange = f"t{number}"
        vhost.make("exchanges", exchange, type="topic", durable=True)
        vhost.bind(exchange, "taken", pattern)
        wrong += [(pattern, key) for key in keys if vhost.publish(exchange, key) != matches(pattern, key)]
    assert wrong == []
    routes = Routes(await vhost.facts())
    assert routes.reach("t3", "a.x").queues == {"taken"}
    assert routes.reach("t3", "a").queues == frozenset()


async def test_dead_letters_that_cannot_go_are_held_and_found(vhost: Vhost) -> None:
    vhost.queue("orders", {**SAFE, "x-message-ttl": 1})
    assert vhost.publish("", "orders")

    async def held() -> bool:
        found = await vhost.ask.queue("orders")
        return found is not None and found.held == 1

    await until(held)
    found = {each.check: each.level for each in examine(await vhost.facts(), Expected()) if each.queue == "orders"}
    assert found == {"dead-letter-route": FindingLevel.PROBLEM, "held-dead-letters": FindingLevel.PROBLEM}

    vhost.queue("dlq", {"x-queue-type": "quorum"})
    found = {each.check: each.level for each in examine(await vhost.facts(), Expected()) if each.queue == "orders"}
    assert "dead-letter-route" not in found


async def test_a_wrong_password_is_refused_and_told_nowhere(
    rabbitmq: RabbitServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ask = Management(ManagementAddress(f"amqp://guest:{PASSWORD}@127.0.0.1", rabbitmq.management_url))
    with pytest.raises(NotAllowed, match="Login failed") as caught:
        await ask.overview()
    await ask.close()
    assert PASSWORD not in f"{caught.value} {caught.value.remedy} {caught.value.__cause__!r} {caplog.text}"


async def test_a_user_who_may_only_log_in_is_told_less(
    rabbitmq: RabbitServer, vhost: Vhost, rabbitmq_url: str
) -> None:
    rabbitmq.api("PUT", "/users/plain", {"password": PASSWORD, "tags": "management"})
    path = f"/permissions/{quote(vhost_of(rabbitmq_url), safe='')}/plain"
    rabbitmq.api("PUT", path, {"configure": "", "write": ".*", "read": ".*"})
    vhost.queue("orders")
    host = rabbitmq.management_url.removeprefix("http://").rpartition("@")[2]
    ask = Management(ManagementAddress(rabbitmq_url, f"http://plain:{PASSWORD}@{host}"))
    assert [each.name for each in await ask.queues()] == ["orders"]
    for question in (ask.nodes, ask.permissions):
        with pytest.raises(NotAllowed, match="plain"):
            await question()
    await ask.close()
    rabbitmq.api("DELETE", "/users/plain")


Answer = Callable[[asyncio.StreamWriter], None]


@asynccontextmanager
async def somebody(answer: Answer, deadline: float = 60.0) -> AsyncIterator[tuple[Management, list[bytes]]]:
    """A server that is no RabbitMQ; what it was asked is in the list."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        answer(writer)
        try:
            await writer.drain()
            if writer.is_closing():
                return
            await reader.read()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    address = ManagementAddress(f"amqp://guest:{PASSWORD}@127.0.0.1/%2F", f"http://127.0.0.1:{port}")
    ask = Management(address, deadline=deadline)
    try:
        yield ask, asked
    finally:
        await ask.close()
        server.close()
        server.close_clients() if hasattr(server, "close_clients") else None


def saying(status: str, body: bytes = b"", *headers: str) -> Answer:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return lambda writer: writer.write("\r\n".join(lines).encode() + body)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (saying("200 OK", b"<html>"), NotEnabled),
        (saying("302 Found", b"", "location: /api/elsewhere"), NotEnabled),
        (saying("500 Oops", b"{}"), Unreachable),
        (saying("403 No", b"\xff"), NotAllowed),
        (lambda writer: writer.write(b"SSH-2.0-OpenSSH\r\n\r\n"), Unreachable),
        (lambda writer: writer.close(), Unreachable),
    ],
)
async def test_a_server_that_is_no_management_api(answer: Answer, error: type[Exception]) -> None:
    async with somebody(answer) as (ask, asked):
        with pytest.raises(error) as caught:
            await ask.overview()
        assert caught.type is error
        assert len(asked) == 1  # and nothing else was asked
        assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"])
async def test_a_server_that_never_ends_its_answer_is_left_after_the_deadline(begun: bytes) -> None:
    async with somebody(lambda writer: writer.write(begun), deadline=0.2) as (ask, _):
        with pytest.raises(Unreachable, match="in time"):
            await ask.overview()


async def test_one_that_says_a_little_now_and_then_is_left_too() -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 900000\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0)

    dripping: list[asyncio.Task[None]] = []
    start = lambda writer: dripping.append(asyncio.create_task(drip(writer)))  # noqa: E731  one line as an argument
    async with somebody(start, deadline=0.2) as (ask, _):
        with pytest.raises(Unreachable, match="in time"):
            await ask.overview()
    await asyncio.gather(*dripping)


async def test_an_answer_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_ANSWER", 1000)
    async with somebody(saying("200 OK", b" " * 1001)) as (ask, _):
        with pytest.raises(Unreachable, match="larger than"):
            await ask.overview()


@pytest.mark.parametrize("body", [[], 1, None, "x", {"items": 1}, [1, {"name": 2, "type": 3, "arguments": 5}, {}]])
async def test_answers_of_another_shape_are_facts_without_values(body: object) -> None:
    async with somebody(saying("200 OK", json.dumps(body).encode(), "connection: close")) as (ask, _):
        assert (await ask.overview()).version is None
    async with somebody(saying("200 OK", json.dumps(body).encode(), "connection: close")) as (ask, _):
        assert all(each.type is None for each in await ask.exchanges())
    async with somebody(saying("200 OK", json.dumps(body).encode(), "connection: close")) as (ask, _):
        assert await ask.queues() == []


async def test_the_vhost_is_one_part_of_the_path() -> None:
    async with somebody(saying("200 OK", b"{}")) as (ask, asked):
        await ask.queue("a/b c")
        assert asked[0].startswith(b"GET /api/queues/%2F/a%2Fb%20c HTTP/1.1\r\n")


async def test_where_nobody_listens_it_is_not_enabled(unused_tcp_port: int) -> None:
    ask = Management(ManagementAddress("amqp://127.0.0.1", f"http://127.0.0.1:{unused_tcp_port}"))
    with pytest.raises(NotEnabled, match=f"127.0.0.1:{unused_tcp_port}") as caught:
        await ask.overview()
    assert "rabbitmq-plugins enable rabbitmq_management" in caught.value.remedy
    await ask.close()


@pytest.mark.parametrize(
    ("broker", "own", "bases", "user"),
    [
        ("amqp://u:p%40@h/v", None, ("http://h:15672",), ("u", "p@", "v")),
        ("amqps://h:5671", None, ("https://h:15671",), ("guest", "guest", "/")),
        ("amqp://u:p@a:1,b:2,[::1]:3,a/%2F", None, tuple(f"http://{h}:15672" for h in ("a", "b", "[::1]")), None),
        ("amqp://u:p@h", "https://x/rabbit/", ("https://x/rabbit",), ("u", "p", "/")),
        ("amqp://u:p@h", "http://w:q@x:80/api", ("http://x:80",), ("w", "q", "/")),
    ],
)
def test_addresses(broker: str, own: str | None, bases: tuple[str, ...], user: tuple[str, ...] | None) -> None:
    address = ManagementAddress(broker, own)
    assert address.bases == bases
    assert user is None or (address.user, address.password, address.vhost) == user
    assert "p%40" not in str(address)


@pytest.mark.parametrize("own", ["ftp://x", "x:1", "http://", f"http://u:{PASSWORD}@x:y", "http://[x"])
def test_addresses_that_are_none_are_refused_without_the_password(own: str) -> None:
    with pytest.raises(ConfigurationError, match="management_url") as caught:
        ManagementAddress("amqp://h", own)
    assert PASSWORD not in str(caught.value)
