"""A shop whose orders died by its worker's own hand, on the files of a desk: what the worker does with them when
they come back is the test's to say.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from redrive import App, Message, Retry
from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery
from support.desk import Desk
from support.forked import REDRIVE, Recorded
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from support.workshop import Workshop


def no_such_customer(_number: int) -> Exception | None:
    return ValueError("no such customer")


def all_is_well(_number: int) -> Exception | None:
    return None


class Started:
    """A process beside the loop, with the methods of one of asyncio's that the tests use."""

    def __init__(self, program: str, *arguments: str, cwd: Path, env: Mapping[str, str]) -> None:
        self._process = Recorded(program, *arguments, cwd=cwd, env=env)

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def stop(self) -> int:
        """Asks it to, as soon as it listens, and gives its exit code."""
        await until(lambda: not self._process.would_die_of(signal.SIGTERM))
        self._process.send_signal(signal.SIGTERM)
        return await self.wait()

    def kill(self) -> None:
        self._process.kill()

    async def wait(self) -> int:
        return await asyncio.to_thread(self._process.wait)

    async def communicate(self) -> tuple[str, str]:
        """All that it wrote, when it has ended."""
        ended = await asyncio.to_thread(self._process.ended)
        return ended.stdout, ended.stderr


class RunShop:
    def __init__(self, folder: Path, *, store_url: str | None = None) -> None:
        self.desk = Desk(folder, store_url=store_url)
        self.app = App("shop", retry=Retry(1, "5s"))
        self.app.handler("orders", name="charge")(self.charge)
        self.app.handler("repair", name="repair")(self.repair)
        self.outcome: Callable[[int], Exception | None] = no_such_customer
        self.charged: list[Message] = []
        self.repaired: list[Message] = []
        self._opened: Workshop | None = None
        self._started: list[Started] = []

    async def charge(self, message: Message) -> None:
        self.charged.append(message)
        error = self.outcome(json.loads(message.payload or b"")["order_id"])
        if error is not None:
            raise error

    async def repair(self, message: Message) -> None:
        self.repaired.append(message)

    @asynccontextmanager
    async def with_dead_orders(self, number: int, **settings: Any) -> AsyncIterator[RunShop]:
        """Its worker goes on to work; `outcome` is from now on what is set."""
        broker = f"embedded:///{self.desk.folder}/redrive-broker.db"
        async with workshop(
            self.app, self.desk.folder, store_url=self.desk.store_url, broker_url=broker, **settings
        ) as opened:
            self._opened = opened
            await opened.send("orders", *({"order_id": each, "customer": "ann"} for each in range(number)))
            await until(lambda: self.count(Status.PENDING, at_least=number))
            self.charged.clear()
            try:
                yield self
            finally:
                await self._end_started()

    @property
    def opened(self) -> Workshop:
        assert self._opened is not None
        return self._opened

    async def count(self, status: Status, *, at_least: int = 0) -> int:
        """How many letters are in that status; 0 if there are less than `at_least`."""
        found = await self.opened.store.count(LetterQuery(status=status))
        return found.number if found.number >= at_least else 0

    async def redrive(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The command in a process of its own, while the worker goes on here."""
        return await asyncio.to_thread(self.desk.process, *arguments, **environment)

    async def started(self, *arguments: str) -> Started:
        """A command that goes on until it ends or gets a signal."""
        process = Started(REDRIVE, *arguments, cwd=self.desk.folder, env=os.environ)
        self._started.append(process)
        return process

    async def _end_started(self) -> None:
        """Those that a failed test has left."""
        for process in self._started:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def report(self, run_id: str | None = None) -> dict[str, Any]:
        """What `runs show` writes about a run; the newest if none is named."""
        if run_id is None:
            run_id = (await self.runs())[0]["id"]
        ended = await self.redrive("runs", "show", run_id, "--output", "json")
        assert ended.returncode == 0, ended.stderr
        told: dict[str, Any] = json.loads(ended.stdout)
        return told

    async def runs(self) -> list[dict[str, Any]]:
        ended = await self.redrive("runs", "list", "--output", "json")
        assert ended.returncode == 0, ended.stderr
        listed: list[dict[str, Any]] = json.loads(ended.stdout)
        return listed

    async def sent(self, *, at_least: int) -> bool:
        """Whether the newest run has sent that many: seen in the store, without a command."""
        store: Any = self.opened.store
        newest = await store.runs(limit=1)
        return bool(newest) and newest[0].progress.sent >= at_least

    def payloads(self, messages: list[Message]) -> list[Any]:
        return [msgspec.json.decode(message.payload or b"") for message in messages]
