"""One PostgreSQL database, used in transactions.

1. Nothing happens before the first use. Then the schema is made or brought up to date (postgres_schema).
2. A unit runs in a transaction at READ COMMITTED. If the server rolls it back because of somebody else, or the
   connection breaks before COMMIT was sent, nothing has happened, and it is run again, a few times at most.
3. If the connection breaks while COMMIT is under way nobody knows: Unreachable, and the caller repeats what is
   safe to repeat.
4. A server that was restarted is found again by the next unit: connections that have ended leave the pool unused.
"""

from __future__ import annotations

import asyncio
import random
import threading
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from redrive import faults
from redrive.errors import Undecided, Unreachable
from redrive.stores import dlq_view, postgres_examination, postgres_schema
from redrive.stores.postgres_engine import connections, pooled_engine
from redrive.stores.postgres_errors import explain, is_lost, is_out_of_date, is_transient
from redrive.stores.postgres_guest import run_inside
from redrive.stores.postgres_options import PostgresAddress, PostgresOptions
from redrive.stores.schema import HEAD
from redrive.stores.schema_version import migrating, schema_version

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from redrive.finding import Finding

T = TypeVar("T")

_TRIES = 6
_PAUSE = 0.02
"""Seconds; doubled with every try, and any part of it is waited."""


class _Broken(Exception):
    """The connection broke, by `error`, before COMMIT was sent: nothing has happened."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class PostgresDatabase:
    """`write`, `read` and `inside` belong to one event loop, `upgrade` and `look` to none."""

    def __init__(self, url: str, **options: Any) -> None:
        self.options = PostgresOptions(**options)
        self.address = PostgresAddress(url)
        self._connections = connections(self.address, self.options)
        self._engine = pooled_engine(self._connections, self.options)
        self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._ready = False
        self._preparation: asyncio.Future[None] | None = None
        self._closed = False
        self._users = 0
        self._unused = asyncio.Event()

    async def write(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in a transaction, durable when it returns. Many run at once, and each maybe twice."""
        async with self._used():
            return await _repeated(lambda: self._commit(unit))

    async def read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in a transaction that sees one moment and cannot write."""
        async with self._used():
            return await _repeated(lambda: self._look(unit))

    async def inside(self, given: object, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in the transaction of somebody else's connection, who commits it or does not."""
        async with self._used():
            return await run_inside(given, unit, schema=self.options.schema, engine=self._engine.sync_engine)

    async def close(self) -> None:
        """Waits for what is under way."""
        self._closed = True
        while self._users:
            self._unused.clear()
            await self._unused.wait()
        if self._preparation is not None:
            await asyncio.wait([self._preparation])
        await self._connections.close()
        await self._engine.dispose()

    def upgrade(self) -> str:
        """Makes our schema or brings it up to date; its version."""
        with migrating:
            return _alone(_repeated(lambda: postgres_schema.upgrade(self.address, self.options)))

    def look(self, unit: Callable[[Connection], T]) -> T:
        """At one moment of the schema as it is; Unreachable if there is none."""
        return _alone(postgres_schema.look(self.address, self.options, unit))

    def problems(self, connection: Connection) -> Iterator[str]:
        yield from dlq_view.problems(connection, self.options.view)

    def examine(self, within: float) -> list[Finding]:
        return _alone(postgres_examination.examine(self.address, self.options, within))

    def explain(self, error: BaseException) -> BaseException:
        return explain(error, self.address)

    def dispose(self) -> None:
        """Nothing is left open by `upgrade` and `look`."""

    @asynccontextmanager
    async def _used(self) -> AsyncIterator[None]:
        if self._closed:
            raise Unreachable("the store is closed", remedy="open a new one")
        self._users += 1
        try:
            if not self._ready:
                await self._prepare()
            yield
        except Exception as error:
            if is_out_of_date(error):
                self._ready = False  # the next one looks again, and says what happened
            explained = self.explain(error)
            if explained is error:
                raise
            raise explained from None  # what the server said may quote a message
        finally:
            self._users -= 1
            self._unused.set()

    async def _prepare(self) -> None:
        """Together with everybody else who waits for it; it goes on if they stop waiting."""
        if self._preparation is None or self._preparation.done():
            self._preparation = asyncio.ensure_future(self._make_ready())
            self._preparation.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(self._preparation)

    async def _make_ready(self) -> None:
        found = await _repeated(lambda: self._look(schema_version))
        if found.is_outdated:
            await asyncio.to_thread(self.upgrade)
        elif not found.is_usable:
            raise found.refusal(str(self.address))
        elif found.current == HEAD and await _repeated(lambda: self._look(self._is_view_due)):
            await asyncio.to_thread(self.upgrade)
        self._ready = True

    def _is_view_due(self, connection: Connection) -> bool:
        return dlq_view.is_due(connection, self.options.view)

    async def _commit(self, unit: Callable[[Connection], T]) -> T:
        async with _connected(self._engine) as connection:
            result = await _nothing_done(connection.run_sync(unit))
            faults.point("store.before_commit")
            try:
                await connection.commit()
            except Exception as error:
                if is_lost(error):
                    raise self._undecided() from None
                raise
        faults.point("store.after_commit")
        return result

    def _undecided(self) -> Undecided:
        return Undecided(
            f"the connection to {self.address} was lost during COMMIT",
            remedy="repeat it: whatever is safe to repeat changes nothing twice",
        )

    async def _look(self, unit: Callable[[Connection], T]) -> T:
        async with _connected(self._reader) as connection:
            return await _nothing_done(connection.run_sync(unit))


@asynccontextmanager
async def _connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    async with engine.connect() as connection:
        try:
            yield connection
        except (TimeoutError, _Broken):
            # Its answer may still come, to somebody else's question; or there is nothing left to roll back on it.
            await connection.invalidate()
            raise


async def _nothing_done(work: Awaitable[T]) -> T:
    try:
        return await work
    except Exception as error:
        if is_lost(error) and not isinstance(error, TimeoutError):
            raise _Broken(error) from error
        raise


async def _repeated(once: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Again where nothing has happened: once if the connection broke, a few times if others were in the way."""
    tries, broke = 0, False
    while True:
        try:
            return await once()
        except _Broken as broken:
            if broke:
                raise broken.error from None
            broke = True
        except Exception as error:
            tries += 1
            if tries == _TRIES or not is_transient(error):
                raise
            await asyncio.sleep(random.uniform(0, _PAUSE * 2**tries))  # noqa: S311  not a secret


def _alone(work: Coroutine[Any, Any, T]) -> T:
    """In a thread with a loop of its own, whether or not the caller's thread runs one. Python does not wait for it
    at its end, so that a server which has fallen silent keeps no process from ending.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001  whoever waits gets it, whatever it is
            done.set_exception(error)

    threading.Thread(target=run, name="redrive-postgres", daemon=True).start()
    return done.result()
