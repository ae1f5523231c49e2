"""F13, K8: the disk under store, spool and broker is full. What is not durable is not acknowledged, the process
lives and says that it is not ready, and when there is space again everything goes on by itself.

On a real file system of a few megabytes where this machine lets us mount one, and with fault points everywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from chaos.lab import places
from chaos.lab.embedded import Embedded
from redrive import faults, wiring
from redrive.access import local
from redrive.app import App
from redrive.errors import Permanent, Unreachable
from redrive.message import Message
from redrive.secret_url import SecretUrl
from redrive.settings import (
    BrokerSettings,
    JournalSettings,
    Settings,
    SpoolSettings,
    StoreSettings,
    WorkerSettings,
)
from redrive.worker import Worker

CYCLES = 5
SIZE = 16 * 1024 * 1024
BODY = "x" * 60_000  # more than the pages that are left over in a file
ORDERS = 3


class Disk(Protocol):
    folder: Path

    def fill(self, *parts: str) -> None:
        """Nothing that `parts` want to write finds space; what else lies on the disk neither."""
        ...

    def free(self) -> None: ...


class SmallDisk:
    """A file system of its own, and somebody else's file that takes all its space."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "somebody else's"

    def fill(self, *parts: str) -> None:  # noqa: ARG002  a disk does not ask who writes
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        self._ballast.unlink()


class FaultPoints:
    """The same by fault points."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, *parts: str) -> None:
        points = {"broker": "broker.before_commit", "store": "store.before_commit", "spool": "spool.before_write"}
        faults.arm(",".join(f"{points[part]}=enospc" for part in parts))

    def free(self) -> None:
        faults.arm("")


@pytest.fixture(params=["a small disk", "fault points"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "fault points":
        yield FaultPoints(folder)
        faults.arm("")
        return
    with mounted(folder):
        yield SmallDisk(folder)


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[None]:
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let us mount a file system; the fault points test the same")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S607  wherever the system has it


class Shop:
    """One handler that holds every message until the gate opens, then fails, or succeeds."""

    def __init__(self) -> None:
        self.app = App("shop")
        self.gate = asyncio.Event()
        self.in_hand = 0
        self.failing = True
        self.handled: list[str] = []
        self.app.handler("orders")(self._order)

    async def _order(self, message: Message) -> None:
        self.in_hand += 1
        await self.gate.wait()
        if self.failing:
            raise Permanent("no such customer")
        self.handled.append(message.id)

    async def send(self) -> None:
        self.gate.clear()
        self.in_hand = 0
        for _ in range(ORDERS):
            await self.app.send("orders", {"order": BODY})
        await until(lambda: self.in_hand == ORDERS)


class Files:
    """Where things lie, as somebody from outside sees it."""

    def __init__(self, *, broker: Path, store: Path, spool: Path, dead: str = "{queue}_dlq") -> None:
        self._broker, self._store, self._spool = broker / "broker.db", store / "store.db", spool / "spool"
        self.settings = Settings(
            broker=BrokerSettings(url=SecretUrl(f"embedded:///{self._broker}"), lease=0.5, dead_letter_queue=dead),
            store=StoreSettings(url=SecretUrl(f"sqlite:///{self._store}")),
            spool=SpoolSettings(folder=self._spool),
            journal=JournalSettings(path=broker / "journal.db"),
            worker=WorkerSettings(concurrency=ORDERS),
        )

    def on_broker(self) -> int:
        return Embedded(str(self._broker)).messages().total()

    def queues(self) -> dict[str, int]:
        with contextlib.closing(sqlite3.connect(self._broker)) as broker:
            return dict(broker.execute("SELECT queue, count(*) FROM messages GROUP BY queue"))

    def set_apart(self) -> int:
        return self.queues().get("orders_dlq", 0)

    def letters(self) -> list[str]:
        return sorted(letter.message_id for letter in places.letters(self._store))

    def spooled(self) -> int:
        """Segments with something in them."""
        return len(places.segments_in_use(self._spool))

    def damage(self) -> list[str]:
        return places.damage(self._broker) + places.damage(self._store)


@contextlib.asynccontextmanager
async def working(shop: Shop, files: Files) -> AsyncIterator[Worker]:
    async with wiring.worker(shop.app, files.settings) as worker:
        running = asyncio.create_task(worker.run())
        try:
            yield worker
            assert not running.done()
        finally:
            worker.stop()
            await running


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_what_no_sink_takes_is_not_acknowledged_though_the_broker_could(disk: Disk, tmp_path: Path) -> None:
    refused = "{queue}\x07"  # no queue of the broker can have that name, so its dead-letter queue is no way out
    shop, files = Shop(), Files(broker=tmp_path, store=disk.folder, spool=disk.folder, dead=refused)
    async with working(shop, files) as worker:
        for cycle in range(CYCLES):
            await shop.send()
            disk.fill("store", "spool")
            shop.gate.set()
            await until(lambda: not worker.consumers[0].ready)
            assert not worker.ready

            assert files.queues() == {"orders": ORDERS}
            assert len(files.letters()) == cycle * ORDERS
            assert files.spooled() == 0

            disk.free()
            await until(lambda: worker.ready and files.on_broker() == 0)
            await until(lambda: files.spooled() == 0)  # the spool had space before the store was asked again
            assert len(set(files.letters())) == len(files.letters()) == (cycle + 1) * ORDERS
    assert files.damage() == []


async def test_with_everything_on_the_full_disk_nothing_is_lost_and_with_space_all_is_recorded(disk: Disk) -> None:
    shop, files = Shop(), Files(broker=disk.folder, store=disk.folder, spool=disk.folder)
    async with working(shop, files) as worker:
        for cycle in range(2):
            await shop.send()
            assert worker.ready
            disk.fill("broker", "store", "spool")
            shop.gate.set()
            await until(lambda: not worker.consumers[0].ready)

            assert len(files.letters()) + files.set_apart() == cycle * ORDERS
            assert files.queues()["orders"] == ORDERS
            assert files.spooled() == 0

            disk.free()
            await until(lambda: worker.ready and "orders" not in files.queues() and files.spooled() == 0)
            # Space may come between two sinks: then the last one, the dead-letter queue, takes the letter.
            assert len(files.letters()) + files.set_apart() == (cycle + 1) * ORDERS
            assert len(set(files.letters())) == len(files.letters())
    assert files.damage() == []


async def test_a_success_that_cannot_be_acknowledged_is_delivered_again(disk: Disk) -> None:
    shop, files = Shop(), Files(broker=disk.folder, store=disk.folder, spool=disk.folder)
    shop.failing = False
    async with working(shop, files) as worker:
        for _ in range(2):
            await shop.send()
            shop.handled.clear()
            disk.fill("broker", "store", "spool")
            shop.gate.set()
            await until(lambda: len(set(shop.handled)) == ORDERS)
            assert files.on_broker() == ORDERS

            disk.free()
            await until(lambda: worker.ready and files.on_broker() == 0)
            assert len(set(shop.handled)) == ORDERS
    assert files.letters() == files.damage() == []


async def test_a_message_that_finds_no_space_is_not_called_sent_and_not_half_there(disk: Disk) -> None:
    files = Files(broker=disk.folder, store=disk.folder, spool=disk.folder)
    app = App("shop", settings=files.settings)
    await app.send("orders", {"order": BODY})
    for cycle in range(CYCLES):
        disk.fill("broker", "store", "spool")
        with pytest.raises(Unreachable, match=r"full|No space"):
            await app.send("orders", {"order": BODY})
        assert files.on_broker() == cycle + 1
        disk.free()
        await app.send("orders", {"order": BODY})
    await app.close()
    assert files.on_broker() == CYCLES + 1
    assert files.damage() == []


async def test_letters_that_the_store_has_no_space_for_wait_in_the_spool_and_then_move(tmp_path: Path) -> None:
    (small := tmp_path / "disk").mkdir()
    with mounted(small):
        shop, files, disk = Shop(), Files(broker=tmp_path, store=small, spool=tmp_path), SmallDisk(small)
        async with working(shop, files) as worker:
            for cycle in range(2):
                await shop.send()
                disk.fill("broker", "store", "spool")
                shop.gate.set()
                await until(lambda: files.on_broker() == 0)
                assert worker.consumers[0].ready
                assert not worker.ready
                assert len(files.letters()) == cycle * ORDERS
                assert files.spooled() == 1

                disk.free()
                await until(lambda: files.spooled() == 0)
                assert len(set(files.letters())) == len(files.letters()) == (cycle + 1) * ORDERS
        assert files.damage() == []


async def test_letters_that_store_and_spool_have_no_space_for_go_to_the_brokers_dead_letter_queue(
    tmp_path: Path,
) -> None:
    (small := tmp_path / "disk").mkdir()
    with mounted(small):
        shop, files, disk = Shop(), Files(broker=tmp_path, store=small, spool=small), SmallDisk(small)
        async with working(shop, files) as worker:
            await shop.send()
            disk.fill("broker", "store", "spool")
            shop.gate.set()

            await until(lambda: files.queues() == {"orders_dlq": ORDERS})
            assert worker.consumers[0].ready
            assert files.letters() == []

            disk.free()
            async with wiring.desk(files.settings, local("test")) as actions:
                assert (await actions.reprocess("orders_dlq")).total == ORDERS
            await until(lambda: files.on_broker() == 0 and len(files.letters()) == ORDERS)
        assert files.damage() == []
