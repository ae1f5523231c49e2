"""The small HTTP door of a process without a server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from prometheus_client import Metric
from structlog.testing import capture_logs

from redrive.errors import ConfigurationError
from redrive.telemetry.address import Address
from redrive.telemetry.exposition import Exposition, gauge
from redrive.telemetry.listener import Listener
from support.scraped import ask, get, value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ANY = Address("127.0.0.1", 0, 0)
SESAME = "sesame"


def answers() -> Iterator[Metric]:
    told = gauge("redrive_answer", "What is asked for.")
    told.add_metric((), 42)
    yield told


@asynccontextmanager
async def listening(*, ready: bool = True, token: str | None = None, at: Address = ANY) -> AsyncIterator[int]:
    listener = Listener(Exposition(answers), lambda: ready, token=token)
    port = await listener.open(at)
    assert port is not None
    try:
        yield port
    finally:
        await listener.close()


async def test_metrics_are_told_with_what_the_process_is_and_uses() -> None:
    async with listening() as port:
        told = await get(port)

    assert (told.status, value(told.body, "redrive_answer")) == (200, 42)
    assert "text/plain; version=" in told.head
    assert 'redrive_build_info{python="' in told.body
    assert value(told.body, "process_resident_memory_bytes") > 0


async def test_it_says_whether_it_lives_and_whether_it_is_ready() -> None:
    async with listening(ready=False) as port:
        assert (await get(port, "/livez")).status == 200
        assert (await get(port, "/readyz")).status == 503
    async with listening(ready=True) as port:
        assert (await get(port, "/readyz?verbose")).status == 200


async def test_with_a_token_only_those_who_have_it_are_told() -> None:
    async with listening(token=SESAME) as port:
        for wrong in ((), ("Authorization: Bearer sesam",), ("Authorization: Basic sesame",), ("Authorization:",)):
            refused = await get(port, "/metrics", *wrong)
            assert (refused.status, "redrive_answer" in refused.body) == (401, False)
        assert (await get(port, "/metrics", "authorization: bearer sesame")).status == 200
        assert (await get(port, "/livez")).status == 200


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /other HTTP/1.1\r\n\r\n", 404),
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405),
        (b"\xff\xfe\x00\r\n\r\n", 404),
        (b"\r\n\r\n", 404),
        (b"GET /" + b"x" * 20_000, 0),
    ],
)
async def test_what_is_no_question_has_no_effect(request_: bytes, status: int) -> None:
    async with listening() as port:
        assert (await ask(port, request_)).status == status
        assert (await get(port)).status == 200


async def test_head_is_answered_without_a_body() -> None:
    async with listening() as port:
        told = await ask(port, b"HEAD /metrics HTTP/1.1\r\n\r\n")
    assert (told.status, told.body) == (200, "")


async def test_each_process_takes_the_first_port_that_is_free_and_one_that_finds_none_works_without() -> None:
    async with listening() as first:
        many = Address("127.0.0.1", first, first + 50)
        async with listening(at=many) as second:
            assert first < second <= first + 50
        third = Listener(Exposition(answers), lambda: True)
        with capture_logs() as told:
            assert await third.open(Address("127.0.0.1", first, first)) is None
        await third.close()
        [warning] = told
        assert (warning["log_level"], warning["at"]) == ("warning", f"127.0.0.1:{first}")
        assert "more ports" in warning["remedy"]


async def test_an_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"metrics cannot be told at 192\.0\.2\.1:9464-9479: ") as refused:
        async with listening(at=Address("192.0.2.1", 9464, 9479)):
            pass
    assert "another address" in refused.value.remedy


@pytest.mark.parametrize(
    ("written", "parsed"),
    [
        ("127.0.0.1:9464", Address("127.0.0.1", 9464, 9464)),
        (" 0.0.0.0:9464-9479 ", Address("0.0.0.0", 9464, 9479)),  # noqa: S104  somebody's choice
        ("[::1]:80", Address("::1", 80, 80)),
        ("localhost:0", Address("localhost", 0, 0)),
    ],
)
def test_an_address_is_read(written: str, parsed: Address) -> None:
    assert Address.parse(written) == parsed
    assert Address.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    "written", ["", "9464", ":9464", "host:", "host:70000", "host:9479-9464", "host:0-5", "h:1-9999", "a b:1"]
)
def test_what_is_no_address_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:9464-9479"):
        Address.parse(written)
