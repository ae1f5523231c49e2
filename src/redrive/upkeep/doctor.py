"""`redrive doctor`: one look at everything that messages depend on. Nothing is changed or made."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

from redrive.errors import RedriveError, Unfinished, Unreachable
from redrive.finding import Finding, FindingLevel, ok, problem, unknown, warn
from redrive.upkeep.examined_sqlite import opened_to_look
from redrive.upkeep.spool_segment import look

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from redrive.stores.upgrade import Checkup
    from redrive.transports.inspection import Expected, Inspector

_FULL = 0.9
_LET_WRITE = "let the user of the workers write there"


async def examine_broker(inspector: Inspector, expected: Expected, *, place: str) -> list[Finding]:
    try:
        return await inspector.findings(expected)
    except RedriveError as error:
        return [_failed("broker", place, error)]


def examine_store(check: Callable[[], Checkup], *, place: str) -> list[Finding]:
    """Its tables. What puts them at risk is told by `examine_server`."""
    try:
        found = check()
    except Unfinished as error:
        what = f"{place} is so large that it was not looked through: {error}"
        return [unknown("store", what, "`redrive db check` takes the time it needs")]
    except RedriveError as error:
        return [_failed("store", place, error)]
    told = [problem("store", f"{place} is damaged: {line}", "restore it from a backup") for line in found.damage]
    told += [problem("store", f"{place}: {line}", "see `redrive db check`") for line in found.problems]
    return told or [ok("store", f"{place} is at {found.current}, and whole")]


def examine_server(examine: Callable[[], list[Finding]], *, place: str) -> list[Finding]:
    """How the store's server keeps what is written. That it does not answer is told by `examine_store`."""
    try:
        return examine()
    except Unreachable as error:
        return [unknown("postgres", f"how {place} keeps what is written is not known: {error}", error.remedy)]
    except RedriveError as error:
        return [_failed("postgres", place, error)]


def examine_keys(
    usage: Mapping[str, int], known: Collection[str], *, enabled: bool, masked: bool
) -> list[Finding]:
    """Whether what is sealed in the store can be opened. `usage`: how many data keys each key wraps; `known`: the
    keys that are here.
    """
    found = [
        problem(
            "encryption",
            f"the key {kek_id}, which is not here, is needed for {number} of the store's data keys",
            "name the file of that key in encryption.key_path or encryption.old_keys",
        )
        for kek_id, number in usage.items()
        if kek_id not in known
    ]
    if enabled and not masked:
        found.append(
            warn(
                "encryption",
                "masking is off, so the search index holds the words of payloads as they are",
                "set masking.enabled: what is personal is then found by keyed hashes",
            )
        )
    if enabled and not found:
        found.append(ok("encryption", "everything that is sealed can be opened with the keys that are here"))
    return found


def examine_spool(folder: Path, *, max_bytes: int) -> list[Finding]:
    """Where letters go while the store is away: it must be ready before that happens."""
    try:
        return list(_spool(folder, max_bytes))
    except OSError as error:
        return [problem("spool", f"{folder} cannot be read: {error.strerror}", _LET_WRITE)]


def examine_journal(path: Path) -> list[Finding]:
    """Where probable deaths are counted."""
    if not _writable(path.parent) or (path.exists() and not os.access(path, os.W_OK)):
        return [problem("journal", f"{path} cannot be written", _LET_WRITE)]
    found = [
        warn("journal", f"was damaged; {aside.name} is what it was", "delete that file when nobody needs it")
        for aside in sorted(path.parent.glob(f"{path.name}.corrupt-*"))
        if not aside.name.endswith(("-wal", "-shm"))
    ]
    if path.exists() and not _is_whole(path):
        found.append(warn("journal", f"{path} is damaged", "nothing: a worker moves it aside and begins anew"))
    return found or [ok("journal", f"{path} can be written")]


def _failed(check: str, place: str, error: RedriveError) -> Finding:
    away = isinstance(error, Unreachable)
    return Finding(
        check=check,
        level=FindingLevel.PROBLEM,
        what=str(error) if place in str(error) else f"{place}: {error}",
        remedy=error.remedy,
        unreachable=away,
    )


def _spool(folder: Path, max_bytes: int) -> Iterator[Finding]:
    if not _writable(folder):
        yield problem("spool", f"{folder} cannot be written", _LET_WRITE)
        return
    found = look(folder)
    if found.bytes >= max_bytes * _FULL:
        what = f"{folder} holds {found.bytes:,} of at most {max_bytes:,} bytes; when full, nothing is acknowledged"
        yield problem("spool", what, "bring the store back, or raise spool.max_size")
    if found.corrupt:
        what = f"{folder} holds {found.corrupt} files with damaged letters"
        yield problem("spool", what, "see the files that end in .corrupt, then delete them")
    if found.segments:
        what = f"{found.segment_bytes:,} bytes of letters wait in {folder}"
        yield warn("spool", what, "a running worker takes them to the store when it answers")
    if not (found.corrupt or found.segments):
        yield ok("spool", f"{folder} can be written, and is empty")


def _writable(folder: Path) -> bool:
    """Or could be made: the nearest folder that exists can be written."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _is_whole(path: Path) -> bool:
    try:
        connection = opened_to_look(path)
        try:
            return ("ok",) in connection.execute("PRAGMA quick_check(1)").fetchall()
        finally:
            connection.close()
    except sqlite3.DatabaseError:
        return False
