"""A folder with a real store and a real broker, and the command line on top of both."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from redrive.cli import invocation
from redrive.cli.main import run
from redrive.clock import SystemClock
from redrive.key_sources import key_in
from redrive.privacy.encryption.local_keys import LocalKeys
from redrive.stores import open_store
from redrive.stores.sealing import Encryption
from redrive.transports import Names, open_transport
from support.forked import REDRIVE, Recorded

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from pathlib import Path

    from redrive.clock import Clock
    from redrive.dead_letter import DeadLetter, Entry
    from redrive.message import Message
    from redrive.stores import DeadLetterStore
    from redrive.transports import Delivery, Transport


class Ended(NamedTuple):
    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()


class LaterClock(SystemClock):
    """Ten minutes ahead: who opens a store or a broker with it sees every lease of others as run out."""

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(minutes=10)


class Desk:
    """What is done through it in code and what is done by commands meets in the same two files, or in the same
    database if `store_url` names one.
    """

    def __init__(self, folder: Path, *, store_url: str | None = None) -> None:
        self.folder = folder
        self.store_url = store_url or f"sqlite:///{folder}/redrive.db"
        if store_url is not None:
            (folder / "redrive.toml").write_text(f'[store]\nurl = "{store_url}"\n')

    def redrive(self, *arguments: str, stdin: str = "", account: str | None = None) -> Ended:
        """The command in this process, as from a script: nobody is there to answer questions. `account`: of the
        operating system, another one than that of the tests.
        """
        raw, err = io.BytesIO(), io.StringIO()
        out = io.TextIOWrapper(raw, encoding="utf-8")
        fed = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        before = os.getcwd()  # noqa: PTH109  to go back to
        os.chdir(self.folder)
        try:
            who = nullcontext() if account is None else patch.object(invocation, "actor", lambda: account)
            with patch.multiple(sys, stdout=out, stderr=err, stdin=fed), who:
                code = run(list(arguments))
        finally:
            os.chdir(before)
        out.flush()
        return Ended(code, raw.getvalue(), err.getvalue())

    def process(self, *arguments: str, faults: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """The command in a process of its own, which may be killed by an armed failpoint."""
        variables = {**os.environ, "REDRIVE_FAULTS": faults, **environment}
        return Recorded(REDRIVE, *arguments, cwd=self.folder, env=variables).ended()

    def store(self, **options: Any) -> DeadLetterStore:
        """It writes plain, and reads what commands have sealed with the folder's key."""
        key = self.folder / ".redrive/encryption.key"
        if key.exists():
            options.setdefault("encryption", Encryption(LocalKeys([key_in(key)]), seals=False))
        return open_store(self.store_url, **options)

    def transport(self, clock: Clock | None = None) -> Transport:
        url = f"embedded:///{self.folder}/redrive-broker.db"
        return open_transport(url, names=Names(), clock=clock or SystemClock())

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[DeadLetterStore, Transport]]:
        store, transport = self.store(), self.transport()
        try:
            yield store, transport
        finally:
            await transport.close()
            await store.close()

    def do(self, work: Callable[[DeadLetterStore, Transport], Awaitable[Any]]) -> Any:
        async def run_it() -> Any:
            async with self.opened() as (store, transport):
                return await work(store, transport)

        return asyncio.run(run_it())

    def record(self, *entries: Entry) -> list[str]:
        """The ids of the new letters."""

        async def work(store: DeadLetterStore, _transport: Transport) -> list[str]:
            return [(await store.record(entry))[0] for entry in entries]

        ids: list[str] = self.do(work)
        return ids

    def send(self, queue: str, messages: Iterable[Message]) -> None:
        async def work(_store: DeadLetterStore, transport: Transport) -> None:
            for message in messages:
                await transport.send(message, queue=queue)

        self.do(work)

    def letter(self, letter_id: str) -> DeadLetter:
        async def work(store: DeadLetterStore, _transport: Transport) -> DeadLetter | None:
            return await store.get(letter_id)

        letter: DeadLetter | None = self.do(work)
        assert letter is not None
        return letter

    def take(self, queue: str) -> list[Delivery]:
        """Everything that is ready in a queue, acknowledged."""

        async def work(_store: DeadLetterStore, transport: Transport) -> list[Delivery]:
            return await take_all(transport, queue)

        deliveries: list[Delivery] = self.do(work)
        return deliveries


async def take_all(transport: Transport, queue: str) -> list[Delivery]:
    depth = (await transport.depths()).get(queue)
    taken: list[Delivery] = []
    receiving = transport.receive(queue, prefetch=10)
    while depth is not None and len(taken) < depth.ready:
        taken.append(await anext(receiving))
        await transport.ack(taken[-1])
    await receiving.aclose()
    return taken
