"""Where a message may be found in the end, read from the files themselves with nothing but the standard library.

These readers share no code with the product on purpose: a mistake of the product in reading its own files must
not hide what it lost.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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


def on_broker(path: Path) -> Counter[str]:
    """How many copies of each message lie on the embedded broker, whatever the queue."""
    return Counter(message_id for (message_id,) in _rows(path, "SELECT message_id FROM messages"))


def letters(path: Path) -> list[Letter]:
    query = """
        SELECT (SELECT body FROM revisions WHERE letter_id = letters.id AND number = 0), id, message_id, identity,
            status, how, generation, (SELECT count(*) FROM redrives WHERE letter_id = letters.id)
        FROM letters
    """
    return [Letter(digest(body), *rest) for body, *rest in _rows(path, query)]


def effects(path: Path) -> Counter[str]:
    """How often each message had its effect in the handlers' own database."""
    return Counter(message_id for (message_id,) in _rows(path, "SELECT message_id FROM effects"))


def spooled(folder: Path, message_ids: Iterable[str]) -> set[str]:
    """Those whose id stands in a whole record of the spool."""
    if not folder.is_dir():
        return set()
    bodies = [body for file in folder.glob("*.seg") for body in _records(file.read_bytes())]
    return {each for each in message_ids if any(each.encode() in body for body in bodies)}


def damage(path: Path) -> list[str]:
    """What SQLite itself finds wrong with the file."""
    try:
        found = [f"{path.name}: {line}" for (line,) in _rows(path, "PRAGMA integrity_check") if line != "ok"]
        return found + [f"{path.name}: dangling {row}" for row in _rows(path, "PRAGMA foreign_key_check")]
    except sqlite3.DatabaseError as error:
        return [f"{path.name}: {error}"]


def miscounted(path: Path) -> list[str]:
    """What the store says about itself that is not so: group counters, claims, letters without a story."""
    checks = {
        "a group's total is not the number of its letters": """
            SELECT id FROM groups WHERE total != (SELECT count(*) FROM letters WHERE group_id = groups.id)
        """,
        "a letter's group does not exist": "SELECT id FROM letters WHERE group_id NOT IN (SELECT id FROM groups)",
        "a claim on a letter that is not REDRIVING": """
            SELECT letter_id FROM claims JOIN letters ON letters.id = letter_id WHERE status != 'REDRIVING'
        """,
        "a REDRIVING letter without a claim": """
            SELECT id FROM letters WHERE status = 'REDRIVING' AND id NOT IN (SELECT letter_id FROM claims)
        """,
        "a letter without a failure": "SELECT id FROM letters WHERE id NOT IN (SELECT letter_id FROM failures)",
        "a letter without a history": "SELECT id FROM letters WHERE id NOT IN (SELECT letter_id FROM audit)",
    }
    return [f"{what}: {row[0]}" for what, query in checks.items() for row in _rows(path, query)]


def digest(body: bytes | None) -> str:
    return "" if body is None else hashlib.sha256(body).hexdigest()


def _rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Nothing, if the file was never made or never got as far as this table."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise


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
