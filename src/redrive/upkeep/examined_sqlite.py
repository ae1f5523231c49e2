"""A SQLite file of ours, looked at for `redrive doctor`: whether it is whole, and how it is written.

Looking changes no journal mode and leaves nothing beside the file. That every COMMIT is synced is no property of
the file: each connection of ours says so itself.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from redrive.finding import ok, problem, unknown, warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.finding import Finding

_STEPS = 10_000
"""Of SQLite's machine, between two looks at the clock: less than a millisecond."""
_WAIT = 1.0


def examine_sqlite(path: Path, *, within: float, whole: bool = True) -> list[Finding]:
    """`whole`: every page of it is looked at too, unless that takes longer than `within` seconds."""
    if not path.exists():
        return []  # told by whoever needs it
    deadline = time.monotonic() + within
    try:
        with contextlib.closing(opened_to_look(path)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            found = list(_journal_mode(connection, path))
            return [*found, *_damage(connection, path)] if whole else found
    except sqlite3.OperationalError as error:
        if time.monotonic() > deadline:
            what = f"{path} is so large that it was not looked through in {within:g} s"
            return [unknown("sqlite-file", what, "PRAGMA quick_check by the sqlite3 program takes its time")]
        what = f"{path} cannot be looked at: {error}"
        return [unknown("sqlite-file", what, "look as the user of the workers")]
    except sqlite3.DatabaseError as error:
        return [problem("sqlite-file", f"{path} is damaged: {error}", "restore it from a backup")]


def opened_to_look(path: Path) -> sqlite3.Connection:
    """Nothing is written through it. Who reads a file with a write-ahead log makes that log if there is none, and
    only who could write takes it away again.
    """
    how = "ro" if _is_in_use(path) else "rw" if _is_ours_to_write(path) else "ro&immutable=1"
    return sqlite3.connect(f"file:{quote(str(path))}?mode={how}", uri=True, timeout=_WAIT)


def _is_in_use(path: Path) -> bool:
    """Or was, by somebody who was killed."""
    return Path(f"{path}-wal").exists()


def _is_ours_to_write(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK | os.X_OK)


def _journal_mode(connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    if not _is_in_use(path) and not _is_ours_to_write(path):
        what = f"{path} is not this user's to write, who is not told how it is written"
        yield unknown("journal-mode", what, "look as the user of the workers")
        return
    mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0]).lower()
    if mode == "wal":
        yield ok("journal-mode", f"{path} has a write-ahead log")
    else:
        what = f"{path} is written with journal_mode={mode}, not WAL: somebody has changed it, or its disk cannot"
        yield warn("journal-mode", what, "see that it is on a local disk; the next worker sets WAL again")


def _damage(connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    for (line,) in connection.execute("PRAGMA quick_check(5)"):
        if line != "ok":
            yield problem("sqlite-file", f"{path} is damaged: {line}", "restore it from a backup")
