"""Several processes on one embedded broker, some of which are killed."""

import asyncio
import json
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from redrive.testing import ManualClock
from redrive.transports import Names, QueueDepth
from redrive.transports.embedded import EmbeddedTransport
from support import broker_process
from support.broker_process import STOP, a_message, take

LEASE = timedelta(seconds=60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "broker.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"embedded:///{path}"


@asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        sys.executable, broker_process.__file__, *arguments, stdin=pipe, stdout=pipe
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


async def line_of(child: asyncio.subprocess.Process) -> str:
    assert child.stdout is not None
    async with asyncio.timeout(60):
        return (await child.stdout.readline()).decode().strip()


@asynccontextmanager
async def opened(url: str, ahead: timedelta = timedelta()) -> AsyncIterator[EmbeddedTransport]:
    """A transport in this process whose clock is ahead of the others' and stands still."""
    transport = EmbeddedTransport(url, names=Names(), clock=ManualClock(datetime.now(UTC) + ahead), poll=0.005)
    try:
        yield transport
    finally:
        await transport.close()


def integrity(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])


async def test_two_processes_share_five_hundred_messages_each_once(url: str) -> None:
    messages = [a_message() for _ in range(500)]
    async with opened(url) as transport, process("consume", url) as one, process("consume", url) as two:
        await asyncio.gather(*(transport.send(message) for message in messages))
        for child in (one, two):
            assert await line_of(child) == "first"  # both have one, neither goes on before
        for child in (one, two):
            assert child.stdin is not None
            child.stdin.write(b"go on\n")
            await transport.send(a_message(body=STOP))
        shares = [json.loads(await line_of(child)) for child in (one, two)]
        assert await transport.depths() == {}
    assert all(shares)
    assert sorted(shares[0] + shares[1]) == sorted(message.id for message in messages)


async def test_several_processes_may_make_the_file_at_once(url: str) -> None:
    async with AsyncExitStack() as stack:
        children = [await stack.enter_async_context(process("send", url)) for _ in range(4)]
        assert [await child.wait() for child in children] == [0, 0, 0, 0]
    async with opened(url) as transport:
        assert len({delivery.identity for delivery in await take(transport, 4)}) == 4


async def test_what_a_killed_process_held_comes_back_after_its_lease(url: str, path: Path) -> None:
    async with opened(url) as transport:
        for _ in range(5):
            await transport.send(a_message())
    async with process("hold", url, "3") as child:
        assert await line_of(child) == "taken"
        child.kill()
        assert await child.wait() == -signal.SIGKILL
    async with opened(url) as transport:
        rest = await take(transport, 2)
        assert not any(delivery.redelivered for delivery in rest)
        assert (await transport.depths())["orders"] == QueueDepth(ready=0, delayed=0, leased=5)
        for delivery in rest:
            await transport.ack(delivery)
    async with opened(url, ahead=LEASE * 2) as transport:
        orphans = await take(transport, 3)
        assert all(delivery.redelivered for delivery in orphans)
        assert {delivery.attempt for delivery in orphans} == {1}
    assert integrity(path) == "ok"


async def test_a_process_with_the_file_open_twice_loses_nothing_when_another_leaves_and_it_is_killed(
    url: str, path: Path
) -> None:
    async with process("twin", url, "4") as twin:
        assert await line_of(twin) == "open"
        async with process("send", url) as guest:
            assert await guest.wait() == 0
        assert twin.stdin is not None
        twin.stdin.write(b"go on\n")
        sent = json.loads(await line_of(twin))
        twin.kill()
        assert await twin.wait() == -signal.SIGKILL
    async with process("consume", url) as fresh, opened(url) as transport:
        assert await line_of(fresh) == "first"
        assert fresh.stdin is not None
        fresh.stdin.write(b"go on\n")
        await transport.send(a_message(body=STOP))
        found = json.loads(await line_of(fresh))
    assert len(found) == len(sent) + 1
    assert set(sent) < set(found)
    assert integrity(path) == "ok"


@pytest.mark.parametrize(
    ("step", "expected"),
    [("ack", [(1, True)]), ("retry", [(1, True)]), ("release", [(1, True)]), ("send", [])],
)
async def test_killed_before_commit_nothing_has_happened(
    url: str, path: Path, step: str, expected: list[tuple[int, bool]]
) -> None:
    await strike(url, step, "broker.before_commit=kill9", dies=True)
    assert await found(url) == expected
    assert integrity(path) == "ok"


@pytest.mark.parametrize(
    ("step", "expected"),
    [("ack", []), ("retry", [(2, False)]), ("release", [(1, False)]), ("send", [(1, False)])],
)
async def test_killed_after_commit_it_has_happened(
    url: str, path: Path, step: str, expected: list[tuple[int, bool]]
) -> None:
    await strike(url, step, "broker.after_commit=kill9", dies=True)
    assert await found(url) == expected
    assert integrity(path) == "ok"


@pytest.mark.parametrize(
    ("step", "expected"),
    [("ack", [(1, False)]), ("retry", [(1, False)]), ("release", [(1, True)]), ("send", [])],
)
async def test_an_error_before_commit_is_told_and_nothing_has_happened(
    url: str, step: str, expected: list[tuple[int, bool]]
) -> None:
    # The process lives and closes its transport, which gives back what it still holds.
    assert await strike(url, step, "broker.before_commit=raise", dies=False) == "FaultInjected"
    assert await found(url) == expected


async def strike(url: str, step: str, armed: str, *, dies: bool) -> str:
    """One step in a process of its own with a failpoint armed; what it printed."""
    if step != "send":
        async with opened(url) as transport:
            await transport.send(a_message())
    async with process("do", url, step, armed) as child:
        printed = await line_of(child)
        assert await child.wait() == (-signal.SIGKILL if dies else 0)
    return printed


async def found(url: str) -> list[tuple[int, bool]]:
    """Attempt and redelivery of each message that can be had when every lease has run out."""
    async with opened(url, ahead=LEASE * 2) as transport:
        total = sum(depth.ready for depth in (await transport.depths()).values())
        if total == 0:
            return []
        async with asyncio.timeout(60), aclosing(transport.receive("orders", prefetch=total)) as deliveries:
            taken = [await anext(deliveries) for _ in range(total)]
        return [(delivery.attempt, delivery.redelivered) for delivery in taken]
