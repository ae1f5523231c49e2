"""The files of one experiment, the settings that name them, and the handlers that work in them."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from chaos.lab import places
from chaos.lab.history import FAILED, OK, History, read_history
from redrive.app import App
from redrive.control import REDRIVE_ID
from redrive.errors import Permanent, Transient
from redrive.headers import header
from redrive.inbox import SqliteInbox
from redrive.keeping_settings import DeadLetterSettings
from redrive.message import Message
from redrive.secret_url import SecretUrl
from redrive.settings import (
    AppSettings,
    JournalSettings,
    LoopSettings,
    QueueSettings,
    RetrySettings,
    Settings,
    SpoolSettings,
    StoreSettings,
    WorkerSettings,
)

if TYPE_CHECKING:
    from chaos.lab.broker import Broker

ORDERS, EFFECTS = "orders", "effects"
CONCURRENCY = 4
IN_FLIGHT = 2 * CONCURRENCY
"""Of both queues: so many handlers of one process may have succeeded without their messages being acknowledged."""
_SLOW = 0.5

Sink = Literal["store", "queue", "both"]


@dataclass(frozen=True)
class Premises:
    folder: Path
    broker: Broker
    sink: Sink = "store"
    store_url: str | None = None
    """Of a PostgreSQL; none: a file of SQLite beside the others."""

    @property
    def orders(self) -> str:
        return self.broker.queue(ORDERS)

    @property
    def effects_queue(self) -> str:
        return self.broker.queue(EFFECTS)

    @property
    def named_queues(self) -> tuple[str, ...]:
        """To ask a broker that tells of no queue that is not named; none: it tells of all."""
        return () if self.broker.names_all else (self.orders, self.effects_queue)

    @property
    def store(self) -> Path:
        return self.folder / "store.db"

    @property
    def letters(self) -> Path | str:
        """Where the store is, whichever it is."""
        return self.store_url or self.store

    @property
    def effects(self) -> Path:
        return self.folder / "effects.db"

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    @property
    def history(self) -> Path:
        return self.folder / "history.jsonl"

    @property
    def log(self) -> Path:
        """What the children wrote to their standard output and error."""
        return self.folder / "children.log"

    def settings(self) -> Settings:
        return Settings(
            app=AppSettings(name="chaos"),
            queues={self.orders: QueueSettings(loop=LoopSettings(ttl=0.1))},
            broker=self.broker.settings(),
            store=StoreSettings(url=SecretUrl(self.store_url or f"sqlite:///{self.store}")),
            retry=RetrySettings(attempts=3, delays=(0.01,), jitter="none"),
            worker=WorkerSettings(concurrency=CONCURRENCY, breaker_failures=0, grace=20.0),
            dead_letters=DeadLetterSettings(sink=self.sink),
            spool=SpoolSettings(folder=self.spool),
            journal=JournalSettings(path=self.folder / "journal.db"),
        )

    def unplayed(self) -> list[Path]:
        """Segments of the spool that still hold letters."""
        return places.segments_in_use(self.spool)


class Shop:
    """Handlers that do what the message says, and write down what they did; those with an inbox write a row.

    `succeed`; `heal` at the second attempt; `fail` until it is redriven; `never` end well; `bug` until the shop is
    `mended`; `once`: redriven, it succeeds one time and never again; `poison`: its process dies of it; `slow`: it
    takes half a second and then succeeds; `rigid`: the same, and nothing else of its process moves meanwhile.
    """

    def __init__(self, premises: Premises, *, mended: bool = False) -> None:
        self._premises = premises
        self._mended = mended
        self._history = History(premises.history)
        self._inbox = SqliteInbox(premises.effects, prepare=_prepare)
        self.app = App("chaos")
        self.app.handler(premises.orders, name="order")(self._order)
        self.app.handler(premises.effects_queue, name="effect", inbox=self._inbox)(_effect)

    async def close(self) -> None:
        await self._inbox.close()
        self._history.close()

    async def _order(self, data: dict[str, Any], message: Message) -> None:
        plan, redrive_id = data["plan"], header(message.headers, REDRIVE_ID)
        await _suffer(plan)
        if plan == "heal" and message.retry_count == 0 and header(message.headers, "x-death") is None:
            self._history.write(FAILED, message.id)
            raise Transient("not yet")
        failing = {
            "fail": redrive_id is None,
            "never": True,
            "bug": not self._mended,
            "once": redrive_id is None or self._succeeded(message.id),
        }
        if failing.get(plan):
            self._history.write(FAILED, message.id)
            raise Permanent("never like this")
        self._history.write(OK, message.id, redrive=redrive_id)

    def _succeeded(self, message_id: str) -> bool:
        return any((line["op"], line["id"]) == (OK, message_id) for line in read_history(self._premises.history))


async def _suffer(plan: str) -> None:
    if plan == "poison":
        os.kill(os.getpid(), signal.SIGKILL)
    if plan == "slow":
        await asyncio.sleep(_SLOW)
    if plan == "rigid":
        time.sleep(_SLOW)


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS effects (message_id TEXT NOT NULL)")


def _effect(message: Message, connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO effects VALUES (?)", (message.id,))
