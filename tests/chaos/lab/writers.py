"""Child processes that use nothing but the store: they record letters, regroup, count and index them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from chaos.lab.history import SEND, SENT, History, read_history
from chaos.lab.places import digest
from redrive.clock import SystemClock, new_id
from redrive.dead_letter import Actor
from redrive.errors import NotFound, Refused, Unreachable
from redrive.message import Message
from redrive.stores import open_store
from redrive.testing.letters import a_group, an_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chaos.lab.premises import Premises
    from redrive.dead_letter import Entry
    from redrive.stores.sql import SqlStore

CAUSES = 5
_AT_ONCE = 20
_AGAIN = 0.05
_WHO = Actor("chaos", "because")


async def record(premises: Premises, *, letters: int, at_once: int = _AT_ONCE) -> None:
    """Writes so many letters, and before that those whose writer died unanswered, as a broker would bring them
    again. A store that is away is asked again until it answers.
    """
    store, history = _store(premises), History(premises.history)
    work = _work(premises, history, letters)

    async def write() -> None:
        for entry in work:
            while True:
                with suppress(Unreachable):
                    await store.record(entry)
                    break
                await asyncio.sleep(_AGAIN)
            history.write(SENT, entry.message.id)

    try:
        await asyncio.gather(*(write() for _ in range(at_once)))
    finally:
        await store.close()
        history.close()


def _work(premises: Premises, history: History, letters: int) -> Iterator[Entry]:
    lines = read_history(premises.history)
    answered = {line["id"] for line in lines if line["op"] == SENT}
    for line in lines:
        if line["op"] == SEND and line["id"] not in answered:
            yield _entry(line["id"])
    for _ in range(letters):
        entry = _entry(new_id())
        history.write(SEND, entry.message.id, expect="letter", body=digest(entry.message.body))
        yield entry


def _entry(message_id: str) -> Entry:
    now = SystemClock().now()
    message = Message(id=message_id, queue="orders", body=f'{{"id": "{message_id}"}}'.encode(), sent_at=now)
    return an_entry(
        f"lab/{message_id}", message=message, group=f"cause {int(message_id[-1], 16) % CAUSES}", at=now
    )


async def merge(premises: Premises) -> None:
    """All causes but one become part of another."""
    whole, *others = (a_group(f"cause {number}").id for number in range(CAUSES))
    store = _store(premises)
    try:
        await store.merge(whole, others[:-1], by=_WHO)
    finally:
        await store.close()


async def split(premises: Premises) -> None:
    whole, *others = (a_group(f"cause {number}").id for number in range(CAUSES))
    store = _store(premises)
    try:
        for other in others[:-1]:
            with suppress(Refused, NotFound):  # it is on its own
                await store.split(whole, other, by=_WHO)
    finally:
        await store.close()


async def fold(premises: Premises) -> None:
    """Adds up what there is, in one transaction."""
    store = _store(premises)
    store._folding.note(1)
    await store.close()


async def index(premises: Premises) -> None:
    store = _store(premises)
    try:
        while await store.index(at_most=10):
            pass
    finally:
        await store.close()


def _store(premises: Premises) -> SqlStore:
    store: SqlStore = open_store(premises.settings().store.url.reveal())  # type: ignore[assignment]  # every one is
    return store
