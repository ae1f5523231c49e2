"""What `redrive import` reads: each format a small module, and whatever a file holds, an answer for every row.

A format tells whether a row looks like one of its own (`recognises`) and makes a letter of it (`letter_of_row`:
ValueError says what is wrong). Rows are lines of JSON, objects of one JSON array, or CSV with a header (rows.py).
Our archives are read as a whole: their digests belong to the file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from redrive.errors import KeyMissing
from redrive.imports.archived import MARK, read_archived
from redrive.imports.found import Bad, Found, refusal
from redrive.imports.opening import opened
from redrive.imports.rows import Row, rows_of
from redrive.privacy.encryption.file_keys import NO_KEYS
from redrive.upkeep.archive_sealing import DamagedSeal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.dead_letter import DeadLetter, Entry
    from redrive.privacy.encryption.file_keys import FileKeys

__all__ = ["ARCHIVE", "FORMATS", "Bad", "Found", "read"]

ARCHIVE = "archive"


class Format(Protocol):
    def recognises(self, row: Row) -> bool: ...

    def letter_of_row(self, row: Row) -> Entry | DeadLetter: ...


class Listed(NamedTuple):
    module: str
    help: str


FORMATS: dict[str, Listed] = {
    "export": Listed("redrive.imports.exported", "what `redrive export` writes, with or without --whole"),
    "laravel": Listed("redrive.imports.laravel", "rows of Laravel's failed_jobs"),
    "envelope": Listed("redrive.imports.envelope", "messages in our envelope, as a dead-letter queue holds them"),
    "jsonl": Listed("redrive.imports.json_lines", "one object per line, as the how-to describes"),
}
"""In the order in which they are asked whether a row is theirs."""


def read(
    stream: BinaryIO,
    *,
    format: str | None = None,  # noqa: A002  the option's name
    keys: FileKeys = NO_KEYS,
) -> Iterator[Found | Bad]:
    """Every letter of the stream, and what is wrong with each row that holds none. Never raises for what the
    stream holds. Without a format, the first row tells. `keys` open archives that are sealed.
    """
    try:
        source = opened(stream, keys)
    except (KeyMissing, DamagedSeal) as error:
        remedy = f"; {error.remedy}" if isinstance(error, KeyMissing) else ""
        return iter([Bad(1, f"{error}{remedy}")])
    if format == ARCHIVE or (format is None and source.head.startswith(MARK)):
        return read_archived(source.stream)
    return _read_rows(rows_of(source), format)


def _read_rows(found: Iterator[Row | Bad], name: str | None) -> Iterator[Found | Bad]:
    reader = None if name is None else _load(name)
    for each in found:
        if isinstance(each, Bad):
            yield each
            continue
        reader = reader or _recognise(each)
        if reader is None:
            yield Bad(each.line, "it is none of the formats that can be read; name one with --format")
            return
        yield _letter(reader, each)


def _letter(reader: Format, row: Row) -> Found | Bad:
    try:
        return Found(row.line, reader.letter_of_row(row))
    except (ValueError, RecursionError) as error:
        return refusal(row.line, error)


def _recognise(row: Row) -> Format | None:
    return next((reader for name in FORMATS if (reader := _load(name)).recognises(row)), None)


def _load(name: str) -> Format:
    reader: Format = import_module(FORMATS[name].module)
    return reader
