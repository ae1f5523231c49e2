"""One thread writes one SQLite file; callers that wait together share one COMMIT.

A commit with `synchronous=FULL` costs an fsync, and one per row is ten times slower than one per group. While
the thread commits, the next units of work gather; it takes them all. Each caller is answered after COMMIT.

1. A caller hands in a unit: a function of the connection, which may be run again. Small units of one kind are
   handed in as items of a batch instead, and the group runs one statement for all of them.
2. The thread takes what waits, `BEGIN IMMEDIATE`, runs the batches, then the units, `COMMIT`.
3. If one of several raises, the group is rolled back and each runs in a transaction of its own, so that one
   caller's error is never another's. If the file itself fails (BEGIN, COMMIT), all are told so at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from redrive import faults
from redrive.errors import CorruptFile, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

C = TypeVar("C")
T = TypeVar("T")
Item = TypeVar("Item")

_MAX_GROUP = 512  # more are taken only if one turn of the loop brought more
_BUSY_TIMEOUT_MS = 10_000
_WAL_PAUSE = 0.01
_ALONE = object()
_LOOK = object()
_making = threading.Lock()


class _Job(NamedTuple):
    work: Callable[..., Any]
    item: Any
    """What a batch is given; `_ALONE` for a unit, `_LOOK` for one that only reads."""
    future: asyncio.Future[Any]


class _UnitFailed(Exception):
    """A unit or a batch raised `error`; whatever else goes wrong is the file's doing and everybody's matter."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


_Answer = tuple["asyncio.Future[Any]", Any, BaseException | None]


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
        self._waiting: list[_Job] = []
        self._turn: asyncio.AbstractEventLoop | None = None
        self._jobs: SimpleQueue[list[_Job] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, unit: Callable[[C], T]) -> asyncio.Future[T]:
        """What the unit gave, after COMMIT. The unit may run twice, so it must change nothing but the file.
        It runs even if nobody waits for it any more.
        """
        return self._submit(unit, _ALONE)

    def run_batched(self, batch: Callable[[C, list[Item]], Sequence[T]], item: Item) -> asyncio.Future[T]:
        """What the batch gave for this item, after COMMIT. Items handed in together for the same batch are
        given to it together, in their order; it gives one result for each. As `run` otherwise.
        """
        return self._submit(batch, item)

    def look(self, unit: Callable[[C], T]) -> asyncio.Future[T]:
        """What a unit that only reads gave, outside any transaction: nobody is locked out by it."""
        return self._submit(unit, _LOOK)

    async def close(self) -> None:
        """Waits for what was handed in, then closes the connection."""
        if self._closed:
            return
        self._closed = True
        if self._thread is not None:
            self._hand_over()
            self._jobs.put(None)
            await asyncio.to_thread(self._thread.join)

    def _submit(self, work: Callable[..., Any], item: Any) -> asyncio.Future[Any]:
        if self._closed:
            raise Unreachable(f"the {self._name} is closed", remedy="open a new one")
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"redrive-{self._name}", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(_Job(work, item, future))
        if self._turn is not loop:  # the loop itself, so that one that ended in between holds nobody up
            self._turn = loop
            loop.call_soon(self._hand_over)
        return future

    def _hand_over(self) -> None:
        # Once per turn of the event loop: whoever goes on in the same turn shares the commit.
        self._turn = None
        jobs, self._waiting = self._waiting, []
        if jobs:
            self._jobs.put(jobs)

    def _work(self) -> None:
        connection: C | None = None
        while (first := self._jobs.get()) is not None:
            group, last = self._gather(first)
            try:
                connection = self._connect() if connection is None else connection
            except BaseException as error:  # noqa: BLE001  the caller gets it; the thread lives on
                _answer([(job.future, None, self._explain(error)) for job in group])
            else:
                self._serve(connection, group)
            if last:
                break
        if connection is not None:
            self._disconnect(connection)

    def _gather(self, group: list[_Job]) -> tuple[list[_Job], bool]:
        while len(group) < _MAX_GROUP:
            try:
                more = self._jobs.get_nowait()
            except Empty:
                break
            if more is None:
                return group, True
            group.extend(more)
        return group, False

    def _serve(self, connection: C, group: list[_Job]) -> None:
        writing = [job for job in group if job.item is not _LOOK]
        if writing:
            self._commit(connection, writing)
        for job in group:
            if job.item is _LOOK:
                _answer([self._looked(connection, job)])

    def _looked(self, connection: C, job: _Job) -> _Answer:
        try:
            return job.future, job.work(connection), None
        except BaseException as error:  # noqa: BLE001  as above
            return job.future, None, self._explain(error)

    def _commit(self, connection: C, group: list[_Job]) -> None:
        try:
            results = self._transaction(connection, group)
        except _UnitFailed as failed:
            if len(group) == 1:
                _answer([(group[0].future, None, self._explain(failed.error))])
                return
            for job in group:
                self._commit(connection, [job])
        except BaseException as error:  # noqa: BLE001  as above
            _answer([(job.future, None, self._explain(error)) for job in group])
        else:
            _answer([(job.future, result, None) for job, result in zip(group, results, strict=True)])

    def _transaction(self, connection: C, group: list[_Job]) -> list[Any]:
        self._control(connection, "BEGIN IMMEDIATE")
        try:
            results = _results(connection, group)
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


def _results(connection: Any, group: list[_Job]) -> list[Any]:
    results: list[Any] = [None] * len(group)
    batches: dict[Callable[..., Any], list[int]] = {}
    units: list[int] = []
    for place, job in enumerate(group):
        (units if job.item is _ALONE else batches.setdefault(job.work, [])).append(place)
    try:
        for batch, places in batches.items():
            given = batch(connection, [group[place].item for place in places])
            for place, result in zip(places, given, strict=True):
                results[place] = result
        for place in units:
            results[place] = group[place].work(connection)
    except BaseException as error:
        raise _UnitFailed(error) from error
    return results


def _answer(answers: list[_Answer]) -> None:
    # One wake-up per loop (there is nearly always one), not one per caller.
    by_loop: dict[asyncio.AbstractEventLoop, list[_Answer]] = {}
    for answer in answers:
        by_loop.setdefault(answer[0].get_loop(), []).append(answer)
    for loop, theirs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it everybody who waited
            loop.call_soon_threadsafe(_resolve, theirs)


def _resolve(answers: list[_Answer]) -> None:
    for future, result, error in answers:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def make_private(path: str) -> None:
    """A file that is missing is made, readable by its owner only; SQLite gives its side files the same mode.

    One that exists is not opened: closing any descriptor of a file gives up the locks that this process holds on
    it through SQLite, and another process would then take itself for the last and delete the write-ahead log.
    For the same reason nobody comes back from here while another thread is still making the file.
    """
    with _making, contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))


def open_sqlite(path: str) -> sqlite3.Connection:
    """A connection without implicit transactions that waits for others; nothing is read or written yet."""
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=_BUSY_TIMEOUT_MS / 1000)


def connect_sqlite(path: str) -> sqlite3.Connection:
    """A connection with our settings: WAL, every commit synced, no implicit transactions, waits for others."""
    connection = open_sqlite(path)
    try:
        configure_sqlite(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def configure_sqlite(connection: sqlite3.Connection) -> None:
    _use_wal(connection)
    for pragma in ("synchronous=FULL", f"busy_timeout={_BUSY_TIMEOUT_MS}", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _use_wal(connection: sqlite3.Connection) -> None:
    # Of several processes that open a new file at once, SQLite refuses all but one without waiting.
    deadline = time.monotonic() + _BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(_WAL_PAUSE)
        else:
            return


def explain_sqlite(error: BaseException, path: str) -> BaseException:
    """Our error for what SQLite says about the file; anything else is given back as it is."""
    cause = getattr(error, "orig", None) or error
    text = str(cause)
    if isinstance(cause, OSError):
        return Unreachable(f"cannot use {path}: {text}", remedy=_remedy(text))
    if not isinstance(cause, sqlite3.Error):
        return error
    if "not a database" in text or "malformed" in text:
        return CorruptFile(
            f"{path} is damaged or not a database of ours: {text}",
            remedy="restore it from a backup, or move it away to start with an empty one",
        )
    if isinstance(cause, sqlite3.OperationalError):
        return Unreachable(f"cannot use {path}: {text}", remedy=_remedy(text))
    return error


def _remedy(text: str) -> str:
    if "full" in text or "No space" in text:
        return "free some disk space; nothing was lost, work goes on by itself"
    if "locked" in text or "busy" in text:
        return "another process holds the file; try again"
    if "no such" in text or "has no column" in text:
        return "run `redrive db check`; a newer Redrive may have changed the tables"
    return "check that the folder exists and that this user may write to it"
