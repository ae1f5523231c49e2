"""What only the embedded broker promises: its address, its file, what it refuses."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from redrive.errors import ConfigurationError, CorruptFile, PublishRefused, Unreachable, UsageError
from redrive.testing import ManualClock
from redrive.transports import Names, open_transport
from redrive.transports.embedded import EmbeddedTransport, path_of
from redrive.transports.embedded_table import NOBODY, MessageTable
from support.embedded_broker import MEMORY, Closing, a_message, ask, opened, take


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "broker.db"


@pytest.fixture
async def first(path: Path, clock: ManualClock) -> AsyncIterator[Closing]:
    async with aclosing(opened(path, clock)) as transport:
        yield transport


@pytest.fixture
def locked_folder(tmp_path: Path) -> Iterator[Path]:
    tmp_path.chmod(0o500)
    privileged = os.geteuid() == 0
    if privileged:
        os.seteuid(65534)  # root may write anywhere, nobody may not
    yield tmp_path
    if privileged:
        os.seteuid(0)
    tmp_path.chmod(0o700)


def size(path: Path) -> int:
    return path.stat().st_size


def read(path: Path) -> bytes:
    return path.read_bytes()


# The address


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("embedded:///broker.db", "broker.db"),
        ("embedded:///folder/broker.db", "folder/broker.db"),
        ("embedded:////var/lib/broker.db", "/var/lib/broker.db"),
        ("embedded:///:memory:", ":memory:"),
        ("embedded://:memory:", ":memory:"),
    ],
)
def test_an_address_names_a_file(url: str, expected: str) -> None:
    assert path_of(url) == expected


@pytest.mark.parametrize(
    "url",
    ["embedded:", "embedded://", "embedded:///", "embedded://broker.db", "embedded:///a/", "embedded:///a?b=c",
     "embedded:///a\0b", "sqlite:///a.db", ""],
)  # fmt: skip
def test_a_wrong_address_is_refused_with_the_right_ones(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        EmbeddedTransport(url, names=Names())
    assert "embedded:///file.db" in refused.value.remedy


def test_a_lease_of_no_time_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        EmbeddedTransport(MEMORY, names=Names(), lease=0)


async def test_the_scheme_finds_the_driver_and_memory_promises_less() -> None:
    transport = open_transport(MEMORY, names=Names(dead="dlq.{queue}"))
    assert isinstance(transport, EmbeddedTransport)
    assert transport.names.dead_of("orders") == "dlq.orders"
    assert (transport.capabilities.durable, transport.capabilities.several_processes) == (False, False)
    await transport.close()


# The file


async def test_a_missing_folder_is_unreachable_with_its_remedy(tmp_path: Path, clock: ManualClock) -> None:
    transport = opened(tmp_path / "missing" / "broker.db", clock)
    with pytest.raises(Unreachable) as refused:
        await transport.send(a_message())
    assert "folder exists" in refused.value.remedy
    with pytest.raises(Unreachable):
        await take(transport)
    await transport.close()


async def test_a_folder_that_may_not_be_written_is_unreachable(locked_folder: Path, clock: ManualClock) -> None:
    transport = opened(locked_folder / "broker.db", clock)
    with pytest.raises(Unreachable) as refused:
        await transport.send(a_message())
    assert "may write" in refused.value.remedy
    await transport.close()


async def test_a_folder_is_no_file(tmp_path: Path, clock: ManualClock) -> None:
    transport = opened(tmp_path, clock)
    with pytest.raises(Unreachable):
        await transport.depths()
    await transport.close()


@pytest.fixture
def letter(path: Path) -> bytes:
    text = b"Dear reader, " * 1000
    path.write_bytes(text)
    return text


async def test_a_file_that_is_no_database_is_corrupt_and_stays_as_it_is(
    path: Path, first: Closing, letter: bytes
) -> None:
    with pytest.raises(CorruptFile) as refused:
        await first.send(a_message())
    assert "backup" in refused.value.remedy
    assert read(path) == letter


async def test_a_damaged_file_is_corrupt(path: Path, clock: ManualClock, first: Closing) -> None:
    before = opened(path, clock)
    await asyncio.gather(*(before.send(a_message(body=b"x" * 500)) for _ in range(200)))
    await before.close()
    with path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\xff" * 20 * 4096)
    with pytest.raises(CorruptFile):
        await take(first, 100)


async def test_a_file_of_a_newer_version_is_refused_with_the_remedy(path: Path, clock: ManualClock) -> None:
    before = opened(path, clock)
    await before.depths()
    await before.close()
    ask(path, "PRAGMA user_version = 99")
    transport = opened(path, clock)
    with pytest.raises(ConfigurationError, match="format 99") as refused:
        await transport.depths()
    assert "upgrade" in refused.value.remedy
    await transport.close()


FORMER = """
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, state INTEGER NOT NULL, due_at INTEGER NOT NULL,
        receipt INTEGER NOT NULL, attempt INTEGER NOT NULL DEFAULT 1, first_attempt_at INTEGER, home NOT NULL,
        message_id NOT NULL, source, sent_at INTEGER NOT NULL, key BLOB, headers BLOB NOT NULL, overlay BLOB,
        trail BLOB, body BLOB
    );
    CREATE INDEX messages_by_due ON messages (queue, state, due_at);
    CREATE TABLE broker (id TEXT NOT NULL);
    INSERT INTO broker VALUES ('0123456789abcdef');
    PRAGMA application_id = 0x52445256;
    PRAGMA user_version = 1;
"""
"""The file as releases made it before a message had properties."""
FORMER_SEND = f"""
    INSERT INTO messages
        (queue, state, due_at, receipt, home, message_id, source, sent_at, key, headers, overlay, body)
    VALUES ('orders', 2, 1, {NOBODY}, 'orders', ?, NULL, 1767268800000000, NULL, X'', NULL, ?)
"""  # noqa: S608  constants


@pytest.fixture
def former(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as file:
        file.executescript(FORMER)
        file.execute(FORMER_SEND, ("of before", b"\x00" * 9000))
        file.commit()
    return path


async def test_a_file_of_before_there_were_properties_is_brought_up_to_date(
    former: Path, clock: ManualClock
) -> None:
    foreign = a_message(properties=b"\x00p")
    async with aclosing(opened(former, clock)) as transport:
        await transport.send(foreign)
        before, after = await take(transport, 2)
        assert (before.identity, before.attempt) == ("embedded:0123456789abcdef:1", 1)
        assert (before.message.id, before.message.body) == ("of before", b"\x00" * 9000)
        assert (before.message.properties, before.trail) == (None, None)
        assert after.message == foreign
        await transport.retry(before, before.message, delay=0, trail=b"trail")
        [again] = await take(transport)
        assert (again.message, again.trail) == (before.message, b"trail")


async def test_an_earlier_release_works_on_beside_one_that_has_brought_its_file_up_to_date(
    former: Path, clock: ManualClock
) -> None:
    async with aclosing(opened(former, clock)) as transport:
        await transport.depths()
        with closing(sqlite3.connect(former)) as earlier:
            earlier.execute(FORMER_SEND, ("from beside", b"{}"))
            earlier.commit()
        assert {each.message.id for each in await take(transport, 2)} == {"of before", "from beside"}
    assert ask(former, "PRAGMA user_version") == [(1,)]


async def test_of_many_that_bring_a_file_up_to_date_at_once_none_fails(former: Path, clock: ManualClock) -> None:
    transports = [opened(former, clock) for _ in range(8)]
    await asyncio.gather(*(transport.send(a_message(properties=b"")) for transport in transports))
    await asyncio.gather(*(transport.close() for transport in transports))
    assert ask(former, "SELECT properties, count(*) FROM messages GROUP BY 1 ORDER BY 1") == [(None, 1), (b"", 8)]


async def test_somebody_elses_database_is_refused_and_not_touched(path: Path, first: Closing) -> None:
    ask(path, "CREATE TABLE customers (name)")
    before = read(path)
    with pytest.raises(ConfigurationError, match="something else"):
        await first.send(a_message())
    assert read(path) == before


async def test_only_the_owner_may_read_the_messages(path: Path, first: Closing) -> None:
    await first.send(a_message())
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert f"{path.name}-wal" in modes


async def test_every_commit_is_synced_and_written_ahead(first: Closing) -> None:
    def settings(table: MessageTable) -> list[object]:
        pragmas = ("journal_mode", "synchronous")
        return [table.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]

    assert await first._file.look(settings) == ["wal", 2]


async def test_two_files_never_give_the_same_identity(tmp_path: Path, clock: ManualClock) -> None:
    identities = set()
    for name in ("a.db", "b.db"):
        transport = opened(tmp_path / name, clock)
        await transport.send(a_message())
        identities.add((await take(transport))[0].identity)
        await transport.close()
    assert len(identities) == 2


async def test_an_identity_is_never_given_twice(path: Path, clock: ManualClock) -> None:
    identities = set()
    for _ in range(3):
        transport = opened(path, clock)
        await transport.send(a_message())
        (delivery,) = await take(transport)
        identities.add(delivery.identity)
        await transport.ack(delivery)
        await transport.close()
    assert len(identities) == 3


async def test_a_lease_on_a_big_message_does_not_write_the_message_again(path: Path, first: Closing) -> None:
    await first.send(a_message(body=os.urandom(4 << 20)))
    log = Path(f"{path}-wal")
    before = size(log)
    (delivery,) = await take(first)
    await first._leases.renew()
    await first.release(delivery)
    assert size(log) - before < 100_000


# Sending


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00", "\ud800", "x" * 256], ids=ascii)
async def test_a_queue_name_that_cannot_be_shown_is_refused_for_good(first: Closing, name: str) -> None:
    with pytest.raises(PublishRefused) as refused:
        await first.send(a_message(queue=name))
    assert refused.value.permanent
    assert "printable" in refused.value.remedy


async def test_the_longest_name_has_a_dead_letter_queue(first: Closing) -> None:
    name = "x" * 255
    await first.send(a_message(queue=name))
    await first.send(a_message(queue=name), queue=first.names.dead_of(name))
    assert set(await first.depths()) == {name, f"{name}_dlq"}


async def test_a_message_too_big_for_a_row_is_refused_for_good(first: Closing) -> None:
    await first._file.look(lambda table: table.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000))
    with pytest.raises(PublishRefused) as refused:
        await first.send(a_message(body=b"x" * 20_000))
    assert refused.value.permanent
    await first.send(a_message())


@pytest.mark.parametrize(
    "properties", [None, b"", bytes(range(256)), b"x" * 100_000], ids=["no", "0", "256", "many"]
)
async def test_properties_keep_their_bytes_through_everything(
    path: Path, clock: ManualClock, first: Closing, properties: bytes | None
) -> None:
    message = a_message(properties=properties)
    await first.send(message)
    [taken] = await take(first)
    await first.retry(taken, message.with_error("no customer", "NoCustomer", ""), delay=0, trail=b"")
    [retried] = await take(first)
    await first.release(retried)
    await first.close()
    async with aclosing(opened(path, clock)) as second:
        [again] = await take(second)
        assert [each.message.properties for each in (taken, retried, again)] == [properties] * 3


@pytest.mark.parametrize("trail", [None, b"", b"\x00trail"])
async def test_no_trail_is_not_an_empty_trail(first: Closing, trail: bytes | None) -> None:
    await first.send(a_message(), trail=trail)
    assert (await take(first))[0].trail == trail


async def test_many_sent_at_once_have_each_their_own_properties_and_trail(first: Closing) -> None:
    messages = [a_message(properties=b"%d" % number) for number in range(200)]
    await asyncio.gather(*(first.send(each, trail=each.id.encode()) for each in messages))
    taken = await take(first, 200)
    assert sorted((each.message.properties, each.trail) for each in taken) == sorted(
        (each.properties, each.id.encode()) for each in messages
    )


@pytest.mark.parametrize("delay", [float("nan"), float("inf"), 1e12])
async def test_a_delay_that_never_ends_is_refused(first: Closing, delay: float) -> None:
    with pytest.raises(UsageError):
        await first.send(a_message(), delay=delay)
    assert await first.depths() == {}


async def test_nobody_receives_nothing_at_a_time(first: Closing) -> None:
    with pytest.raises(UsageError):
        first.receive("orders", prefetch=0)
