"""One thread writes one SQLite file; callers that wait together share one COMMIT.

A commit with `synchronous=FULL` costs an fsync, and one per row is ten times slower than one per group. While
the thread commits, the next units of work gather; it takes them all. Each caller is answered after COMMIT.

1. A caller hands in a unit: a function of the connection, which may be run again.
2. The thread takes what waits, `BEGIN IMMEDIATE`, runs the units, `COMMIT`.
3. If one of several raises, the group is rolled back and each unit runs in a transaction of its own, so that
   one caller's error is never another's.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from redrive import faults
from redrive.errors import CorruptFile, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

C = TypeVar("C")
T = TypeVar("T")

_MAX_GROUP = 256
_BUSY_TIMEOUT_MS = 10_000


class _Job(NamedTuple):
    unit: Callable[[Any], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class GroupCommit(Generic[C]):
    """`name` prefixes its failpoints; `connect` runs in the thread; `control` executes BEGIN, COMMIT, ROLLBACK.

    `explain` turns a driver's exception into one of ours, or gives it back unchanged.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], C],
        *,
        control: Callable[[C, str], object],
        disconnect: Callable[[C], object],
        explain: Callable[[BaseException], BaseException],
    ) -> None:
        self._name = name
        self._connect = connect
        self._control = control
        self._disconnect = disconnect
        self._explain = explain
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    async def run(self, unit: Callable[[C], T]) -> T:
        """What the unit gave, after COMMIT. The unit may run twice, so it must change nothing but the file."""
        if self._closed:
            raise Unreachable(f"the {self._name} is closed")
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"redrive-{self._name}", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put(_Job(unit, loop, future))
        return await future

    async def close(self) -> None:
        """Waits for what was handed in, then closes the connection."""
        if self._closed:
            return
        self._closed = True
        if self._thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        connection: C | None = None
        while (first := self._jobs.get()) is not None:
            group, last = self._gather(first)
            try:
                connection = self._connect() if connection is None else connection
            except BaseException as error:  # noqa: BLE001  the caller gets it; the thread lives on
                _answer([(job, None, self._explain(error)) for job in group])
            else:
                self._commit(connection, group)
            if last:
                break
        if connection is not None:
            self._disconnect(connection)

    def _gather(self, first: _Job) -> tuple[list[_Job], bool]:
        group = [first]
        while len(group) < _MAX_GROUP:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
            if job is None:
                return group, True
            group.append(job)
        return group, False

    def _commit(self, connection: C, group: list[_Job]) -> None:
        try:
            results = self._transaction(connection, group)
        except BaseException as error:  # noqa: BLE001  as above
            if len(group) == 1:
                _answer([(group[0], None, self._explain(error))])
                return
            for job in group:
                self._commit(connection, [job])
        else:
            _answer([(job, result, None) for job, result in zip(group, results, strict=True)])

    def _transaction(self, connection: C, group: list[_Job]) -> list[Any]:
        self._control(connection, "BEGIN IMMEDIATE")
        try:
            results = [job.unit(connection) for job in group]
            faults.point(f"{self._name}.before_commit")
            self._control(connection, "COMMIT")
        except BaseException:
            self._undo(connection)
            raise
        faults.point(f"{self._name}.after_commit")
        return results

    def _undo(self, connection: C) -> None:
        with contextlib.suppress(Exception):  # SQLite may have rolled back by itself (disk full, I/O error)
            self._control(connection, "ROLLBACK")


def _answer(answers: list[tuple[_Job, Any, BaseException | None]]) -> None:
    # One wake-up per group, not one per caller.
    loop = answers[0][0].loop
    try:
        loop.call_soon_threadsafe(_resolve, answers)
    except RuntimeError:  # the loop is gone, and with it everybody who waited
        return


def _resolve(answers: list[tuple[_Job, Any, BaseException | None]]) -> None:
    for job, result, error in answers:
        if job.future.done():
            continue
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)


def connect_sqlite(path: str) -> sqlite3.Connection:
    """A connection with our settings: WAL, every commit synced, no implicit transactions, waits for others."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=_BUSY_TIMEOUT_MS / 1000
    )
    configure_sqlite(connection)
    return connection


def configure_sqlite(connection: sqlite3.Connection) -> None:
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        f"busy_timeout={_BUSY_TIMEOUT_MS}",
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def explain_sqlite(error: BaseException, path: str) -> BaseException:
    """Our error for what SQLite says about the file; anything else is given back as it is."""
    cause = getattr(error, "orig", None) or error
    if not isinstance(cause, sqlite3.Error):
        return error
    text = str(cause)
    if "not a database" in text or "malformed" in text:
        return CorruptFile(
            f"{path} is damaged or not a database of ours: {text}",
            remedy="restore it from a backup, or move it away to start with an empty one",
        )
    if isinstance(cause, sqlite3.OperationalError):
        return Unreachable(f"cannot use {path}: {text}", remedy=_remedy(text))
    return error


def _remedy(text: str) -> str:
    if "full" in text:
        return "free some disk space; nothing was lost, work goes on by itself"
    if "locked" in text or "busy" in text:
        return "another process holds the file; try again"
    return "check that the folder exists and that this user may write to it"
