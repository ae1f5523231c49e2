"""What is to be told: a SQLite file, so that a restart forgets nothing and a flood fills no memory.

The life of an alert on one channel:

1. `put` makes it durable. What waits under the same dedup key is replaced: the later one says all that is true.
   If too many wait already, it is counted in one message instead, `merged`, that goes out like any other. Never
   merged is the end of what the channel was told the beginning of: incidents of others must be closed.
2. `claim` gives it to one courier, of this process or another, for one attempt. A courier that dies loses the
   claim after `LEASE`, and it is sent again: twice rather than never.
3. `delivered` deletes it. `failed` lets it wait for the next attempt, or sets it apart as undelivered, where it
   stays until a person sends or drops it, or something newer of the same key was delivered.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from redrive.alerts import outbox_sql
from redrive.alerts.alert import Alert
from redrive.group_commit import GroupCommit, connect_sqlite, explain_sqlite, make_private

if TYPE_CHECKING:
    from redrive.alerts.outbox_sql import Figures, Row

LEASE = 60.0
"""Seconds that one attempt may take."""


class Claimed(msgspec.Struct, frozen=True):
    number: int
    alert: Alert
    attempts: int
    """This one included."""


class Undelivered(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    channel: str
    alert: Alert
    attempts: int
    reason: str
    """Of the last attempt."""
    at: datetime
    """When it was given up."""


class Outbox:
    """`path` may be `:memory:`. `waiting` and `undelivered` limit what is kept for each channel. Unreachable when
    the file cannot be used.
    """

    def __init__(self, path: Path | str, *, waiting: int = 100, undelivered: int = 1000) -> None:
        self._path = str(path)
        self._waiting = waiting
        self._undelivered = undelivered
        self._writer: GroupCommit[sqlite3.Connection] = GroupCommit(
            "alerts",
            self._connect,
            control=sqlite3.Connection.execute,
            disconnect=sqlite3.Connection.close,
            explain=lambda error: explain_sqlite(error, self._path),
        )

    async def put(self, alert: Alert, channels: list[str], now: datetime) -> None:
        """For all these channels, durable when it returns. The same alert again changes nothing."""

        def unit(connection: sqlite3.Connection) -> None:
            for channel in channels:
                outbox_sql.put(connection, channel, alert, limit=self._waiting, now=now)

        await self._writer.run(unit)

    async def claim(self, channel: str, now: datetime) -> Claimed | None:
        """The one that is due for longest, for one attempt. None: nothing is due."""

        def unit(connection: sqlite3.Connection) -> Row | None:
            return outbox_sql.claim(connection, channel, now=now, until=now.timestamp() + LEASE)

        row = await self._writer.run(unit)
        return None if row is None else Claimed(row.number, row.alert, row.attempts)

    async def next_due(self, channel: str) -> float | None:
        """As a timestamp. None: nothing waits."""
        return await self._writer.look(lambda connection: outbox_sql.next_due(connection, channel))

    async def delivered(self, channel: str, claimed: Claimed) -> None:
        number, alert = claimed.number, claimed.alert
        await self._writer.run(lambda connection: outbox_sql.delivered(connection, channel, number, alert))

    async def failed(
        self, channel: str, claimed: Claimed, reason: str, *, now: datetime, again_at: float | None
    ) -> None:
        """None: it is given up, and undelivered from now on."""

        def unit(connection: sqlite3.Connection) -> None:
            if again_at is not None:
                outbox_sql.put_back(
                    connection, channel, claimed.number, claimed.alert, reason=reason, again_at=again_at
                )
                return
            outbox_sql.give_up(connection, channel, claimed.number, reason, now)
            outbox_sql.forget_oldest(connection, channel, self._undelivered)

        await self._writer.run(unit)

    async def outdated(self, claimed: Claimed) -> None:
        """Nobody is to be told of it any more: something newer about it was told elsewhere."""
        await self._writer.run(lambda connection: outbox_sql.outdated(connection, claimed.number))

    async def undelivered(self, channel: str | None = None) -> list[Undelivered]:
        """The oldest first; of one channel, or of all."""
        rows = await self._writer.look(lambda connection: outbox_sql.undelivered(connection, channel))
        return [
            Undelivered(
                number=row.number,
                channel=row.channel,
                alert=row.alert,
                attempts=row.attempts,
                reason=row.reason,
                at=datetime.fromtimestamp(row.due, UTC),
            )
            for row in rows
        ]

    async def tried_again(self, each: Undelivered, reason: str) -> None:
        """A person had it sent again, and it failed for that reason."""
        number = each.number
        await self._writer.run(lambda connection: outbox_sql.tried_again(connection, number, reason))

    async def sent_by_hand(self, each: Undelivered) -> None:
        await self.delivered(each.channel, Claimed(each.number, each.alert, each.attempts + 1))

    async def drop(self, numbers: list[int]) -> int:
        """How many of them were there, undelivered."""
        return await self._writer.run(lambda connection: outbox_sql.drop(connection, numbers))

    async def figures(self) -> dict[str, Figures]:
        """Of every channel that anything was ever put into."""
        return await self._writer.look(outbox_sql.figures)

    async def note(self, name: str, text: bytes | None) -> None:
        """For what this machine must not forget and has no other place for; None: it is forgotten. Durable."""
        await self._writer.run(lambda connection: outbox_sql.note(connection, name, text))

    async def noted(self, name: str) -> bytes | None:
        return await self._writer.look(lambda connection: outbox_sql.noted(connection, name))

    async def close(self) -> None:
        await self._writer.close()

    def _connect(self) -> sqlite3.Connection:
        if self._path != ":memory:":
            Path(self._path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_private(self._path)
        connection = connect_sqlite(self._path)
        try:
            outbox_sql.make_tables(connection)
        except BaseException:
            connection.close()
            raise
        return connection
