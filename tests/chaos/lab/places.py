"""Where a message may be found in the end, read from the files and databases themselves.

These readers share no code with the product on purpose: a mistake of the product in reading its own files must
not hide what it lost. What they ask a store is the same on SQLite and on PostgreSQL.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.lab.rows import rows, rows_of_each

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chaos.lab.rows import Database

_RECORD_MAGIC = b"\xd7RSP\x01"
_MARK_BYTES = 16
_HEAD = struct.Struct(">III")  # checksum, length of the identity, length of the body


@dataclass(frozen=True)
class Letter:
    body: str
    """SHA-256 of the message as it came."""
    id: str
    message_id: str
    identity: str
    status: str
    how: str | None
    generation: int
    """Its lives: 1, and one more each time it came back."""
    redrives: int
    """Redrive ids that were ever made for it."""


def letters(store: Database) -> list[Letter]:
    query = """
        SELECT (SELECT body FROM revisions WHERE letter_id = letters.id AND number = 0), id, message_id, identity,
            status, how, generation, (SELECT count(*) FROM redrives WHERE letter_id = letters.id
                AND coalesce(outcome, '') NOT IN ('not pending', 'came back meanwhile'))
        FROM letters
    """
    return [Letter(digest(body), *rest) for body, *rest in rows(store, query)]


def effects(path: Path) -> Counter[str]:
    """How often each message had its effect in the handlers' own database."""
    return Counter(message_id for (message_id,) in rows(path, "SELECT message_id FROM effects"))


def spooled(folder: Path, message_ids: Iterable[str]) -> set[str]:
    """Those whose id stands in a whole record of the spool."""
    if not folder.is_dir():
        return set()
    bodies = [body for file in folder.glob("*.seg") for body in _records(file.read_bytes())]
    return {each for each in message_ids if any(each.encode() in body for body in bodies)}


def segments_in_use(folder: Path) -> list[Path]:
    """Segments of a spool that hold something; one that is deleted while we look does not."""
    return [path for path in folder.glob("*.seg") if _size(path)]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def damage(database: Database) -> list[str]:
    """What SQLite itself finds wrong with its file; a server looks after its own."""
    if not isinstance(database, Path):
        return []
    try:
        found = [
            f"{database.name}: {line}" for (line,) in rows(database, "PRAGMA integrity_check") if line != "ok"
        ]
        return found + [f"{database.name}: dangling {row}" for row in rows(database, "PRAGMA foreign_key_check")]
    except sqlite3.DatabaseError as error:
        return [f"{database.name}: {error}"]


_FACET = "group_id, queue, handler, kind, type, status"
_COUNTED = f"""
    SELECT group_id FROM (
        SELECT {_FACET}, 1 AS letters FROM letters
        UNION ALL SELECT {_FACET}, -letters FROM totals JOIN facets ON facets.id = totals.facet_id
        UNION ALL SELECT {_FACET}, -letters FROM counter_deltas
    ) AS counted GROUP BY {_FACET} HAVING sum(letters) <> 0
"""  # noqa: S608  no text of others
_COUNTED_BY_HOUR = f"""
    SELECT group_id FROM (
        SELECT {_FACET}, created_at / 3600000000 AS hour, 1 AS letters FROM letters
        UNION ALL SELECT {_FACET}, hour, -letters FROM counters JOIN facets ON facets.id = counters.facet_id
        UNION ALL SELECT {_FACET}, hour, -letters FROM counter_deltas
    ) AS counted GROUP BY {_FACET}, hour HAVING sum(letters) <> 0
"""  # noqa: S608  as above
_CHECKS = {
    "a group's numbers are not those of its letters": _COUNTED,
    "a group's numbers by the hour are not those of its letters": _COUNTED_BY_HOUR,
    "a letter's group does not exist": "SELECT id FROM letters WHERE group_id NOT IN (SELECT id FROM groups)",
    "a letter is not in the group that its fingerprint was merged into": """
        SELECT letters.id FROM letters JOIN groups ON groups.id = coalesce(fingerprint, group_id)
        WHERE group_id <> coalesce(merged_into, groups.id)
    """,
    "a claim on a letter that is not REDRIVING": """
        SELECT letter_id FROM claims JOIN letters ON letters.id = letter_id WHERE status != 'REDRIVING'
    """,
    "a REDRIVING letter without a claim": """
        SELECT id FROM letters WHERE status = 'REDRIVING' AND id NOT IN (SELECT letter_id FROM claims)
    """,
    "a letter without a failure": "SELECT id FROM letters WHERE id NOT IN (SELECT letter_id FROM failures)",
    "a letter without a history": "SELECT id FROM letters WHERE id NOT IN (SELECT letter_id FROM audit)",
    "a failure of no letter": "SELECT letter_id FROM failures WHERE letter_id NOT IN (SELECT id FROM letters)",
    "a message of no letter": "SELECT letter_id FROM revisions WHERE letter_id NOT IN (SELECT id FROM letters)",
    "a letter that search will never find": """
        SELECT id FROM letters WHERE id NOT IN (SELECT letter_id FROM search_queue)
        AND id NOT IN (SELECT letter_id FROM search_parts)
    """,
}


def contradictions(store: Database) -> list[str]:
    """What the store says about itself that is not so: counters, claims, letters without a story."""
    found = zip(_CHECKS, rows_of_each(store, list(_CHECKS.values())), strict=True)
    return [f"{what}: {row[0]}" for what, wrong in found for row in wrong]


def digest(body: bytes | None) -> str:
    return "" if body is None else hashlib.sha256(body).hexdigest()


def _records(data: bytes) -> Iterable[bytes]:
    """The bodies of whole records, one after the other; a torn one is no record."""
    at = 0
    while (at := data.find(_RECORD_MAGIC, at)) >= 0:
        start = at + len(_RECORD_MAGIC) + _MARK_BYTES
        end = start + _HEAD.size
        if end <= len(data):
            checksum, identity_bytes, body_bytes = _HEAD.unpack_from(data, start)
            end += identity_bytes + body_bytes
            if end <= len(data) and crc32c(data[start + 4 : end]) == checksum:
                yield data[end - body_bytes : end]
                at = end
                continue
        at += 1


def _table() -> list[int]:
    values = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        values.append(value)
    return values


_CRC = _table()


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _CRC[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF
