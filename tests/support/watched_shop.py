"""An installation for Prometheus to watch: `redrive serve` and `redrive work` in processes of their own, on an
embedded broker and a PostgreSQL. Each of its queues fails as long as a test wants, in a way of its own.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from redrive.dead_letter import OPEN, Actor, Transition
from redrive.letter_query import LetterQuery
from support.collecting import rejected
from support.dead_letters import an_order
from support.desk import Desk
from support.forked import REDRIVE
from support.patience import until
from support.run_shop import Started
from support.scraped import get

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


_CODE = """
from pathlib import Path
from typing import Any

from redrive import App, Permanent, Retry

app = App("shop", retry=Retry(2, "10ms"))


class NoCustomer(Permanent):
    pass


class Fraud(Exception):
    pass


FAILURES = {"orders": NoCustomer, "mails": NoCustomer, "bills": TimeoutError, "checks": Fraud}


def add(queue: str) -> None:
    @app.handler(queue, name=f"handle_{queue}")
    async def handle(order: dict[str, Any]) -> None:
        if Path(f"{queue}-fail").exists():
            raise FAILURES[queue]("as the test wants it")


for name in FAILURES:
    add(name)
"""
_SETTINGS = """
[store]
url = "{store_url}"
[server]
port = {server_port}
[metrics]
listen = "127.0.0.1:{worker_port}"
token = "{token}"
[collector]
queues = ["{collected}"]
[kinds]
critical = ["shop.Fraud"]
[alerts.channels.nobody]
url = "https://127.0.0.1:1/"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
[worker]
breaker_failures = 3
breaker_pause = "1s"
"""
_COMMANDS = {"server": ("serve",), "worker": ("work", "shop:app")}
COLLECTED = "legacy_dlq"
SESAME = "sesame"
"""The token of its metrics."""


class WatchedShop:
    def __init__(self, folder: Path, *, store_url: str, server_port: int, worker_port: int) -> None:
        self.folder = folder
        self.store_url = store_url
        self._desk = Desk(folder, store_url=store_url)
        self._spool = folder / ".redrive" / "spool"
        self._ports = {"server": server_port, "worker": worker_port}
        (folder / "shop.py").write_text(_CODE)
        values = {"store_url": store_url, "server_port": server_port, "worker_port": worker_port}
        (folder / "redrive.toml").write_text(_SETTINGS.format(**values, token=SESAME, collected=COLLECTED))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Both processes answer. They have to end well."""
        started = {
            name: Started(REDRIVE, *command, cwd=self.folder, env=os.environ)
            for name, command in _COMMANDS.items()
        }
        try:
            async with self._desk.opened() as (self._store, self._transport):
                for name, process in started.items():
                    await until(partial(_answers, process, self._ports[name]), within=60.0)
                yield
            assert [await each.stop() for each in started.values()] == [0, 0]
        finally:
            for each in started.values():
                each.kill()
                await each.wait()

    def fail(self, *queues: str) -> None:
        for queue in queues:
            (self.folder / f"{queue}-fail").touch()

    def mend(self, *queues: str) -> None:
        for queue in queues:
            (self.folder / f"{queue}-fail").unlink()

    async def send(self, queue: str, number: int = 1) -> None:
        for each in range(number):
            await self._transport.send(an_order(each, queue=queue), queue=queue)

    async def send_dead(self, queue: str, number: int = 1) -> None:
        """As somebody else's framework dead-letters them, for the server's collector."""
        for _ in range(number):
            await self._transport.send(rejected(queue=queue), queue=COLLECTED)

    async def redrive(self, *arguments: str) -> str:
        """What the command writes, in a process of its own."""
        ended = await asyncio.to_thread(self._desk.process, *arguments)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    async def open_letters(self, queue: str, *, at_least: int = 1) -> list[str]:
        """Their ids, a page of them; none if there are less than `at_least`."""
        pages = [await self._store.find(LetterQuery(queue=queue, status=each, limit=500)) for each in OPEN]
        found = [letter.id for page in pages for letter in page]
        return found if len(found) >= at_least else []

    async def discard(self, *queues: str) -> None:
        """Every open letter of these queues."""
        for queue in queues:
            while ids := await self.open_letters(queue):
                await self._store.change(ids[:500], Transition.DISCARD, by=Actor("ann", "known"))

    def damage_spool(self) -> None:
        """Some bytes in the middle of each of its files, as a disk does."""
        for path in self._spool.glob("*.seg"):
            size = path.stat().st_size
            with path.open("r+b") as file:
                file.seek(size // 2)
                file.write(b"\xff" * 8)

    def tidy_up_spool(self) -> None:
        """As a person does who has looked at what was set aside."""
        for path in self._spool.glob("*.corrupt"):
            path.unlink()


async def _answers(process: Started, port: int) -> int:
    assert process.returncode is None, await process.communicate()
    try:
        return (await get(port, "/livez", "Connection: close")).status
    except OSError:
        return 0
