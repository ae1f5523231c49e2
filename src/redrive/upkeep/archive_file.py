"""One archive file: gzip, and in it one line of JSON after the other.

| line | what |
|---|---|
| first | `{"redrive_archive":{"version":1,"written_at":"2026-03-01T03:00:00+00:00","by":"redrive 0.2.0"}}` |
| each letter | `{"sha256":"...","letter":{...}}`: the digest of the letter's JSON as it stands there |
| last | `{"redrive_archive_end":{"letters":500,"sha256":"..."}}`: the digest of all lines before it |

A letter is as letter_json.py has it, with every attempt, revision and line of history. Any program that reads gzip
and JSON can read it. A file without its last line was cut off. `"erased":2` in the last line: so many letters were
taken out of the file later (archive_erasing.py). With encryption on, the gzip is sealed as
archive_sealing.py has it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from redrive.errors import CorruptFile, KeyMissing
from redrive.letter_json import letter_of, letter_values
from redrive.privacy.encryption.file_keys import NO_KEYS
from redrive.upkeep.archive_sealing import MAGIC, unsealed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from redrive.dead_letter import DeadLetter
    from redrive.privacy.encryption.file_keys import FileKeys

VERSION = 1
MAX_LINE = 512 * 1024 * 1024
"""Bytes of one letter's line. A longer one is neither written nor read."""

_HEAD, _END = "redrive_archive", "redrive_archive_end"
_OPENING, _MIDDLE, _CLOSING = b'{"sha256":"', b'","letter":', b"}\n"
_DIGEST = 64
_LETTER_AT = len(_OPENING) + _DIGEST + len(_MIDDLE)


class ArchiveHead(msgspec.Struct):
    version: int
    written_at: str
    by: str


class _Head(msgspec.Struct):
    redrive_archive: ArchiveHead


class ArchiveEnd(msgspec.Struct):
    letters: int
    sha256: str
    erased: int = 0


class _End(msgspec.Struct):
    redrive_archive_end: ArchiveEnd


class ArchiveLines:
    """Makes the lines of one file, in their order, and knows what the last one has to say."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._letters = 0

    def head(self, *, written_at: datetime, by: str) -> bytes:
        head = {"version": VERSION, "written_at": written_at.isoformat(), "by": by}
        return self._passed(_json({_HEAD: head}) + b"\n")

    def letter(self, letter: DeadLetter) -> bytes | None:
        """None if its line would be longer than any reader takes."""
        line = _line(letter)
        if len(line) > MAX_LINE:
            return None
        self._letters += 1
        return self._passed(line)

    def again(self, line: bytes, *, is_letter: bool = True) -> bytes:
        """A line of another archive, as it stands there."""
        self._letters += is_letter
        return self._passed(line)

    def end(self, *, erased: int = 0) -> bytes:
        told: dict[str, Any] = {"letters": self._letters, "sha256": self._digest.hexdigest()}
        return _json({_END: told | ({"erased": erased} if erased else {})}) + b"\n"

    def _passed(self, line: bytes) -> bytes:
        self._digest.update(line)
        return line


class DamagedLine(ValueError):
    """One letter's line is not what was written. `number` is its place in the file, from 1."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number = number


class ArchiveReader:
    """Reads the lines of one file, whatever they are."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self._number = 0
        self.head = b""
        """The first line, when it was read."""
        self.erased = 0
        """Letters that were taken out of the file; known at its end."""

    def letters(self) -> Iterator[tuple[int, DeadLetter | DamagedLine]]:
        """Each letter with the number of its line, in the order of the file. A damaged line is given in its
        letter's place and the rest goes on; DamagedLine is raised where nothing more can be read, and at the end
        if the file as a whole is not what was written.
        """
        return ((number, found) for number, _, found in self.lines())

    def lines(self) -> Iterator[tuple[int, bytes, DeadLetter | DamagedLine]]:
        """As `letters`, with the line of each."""
        self.head = self._line()
        self._check_head(self.head)
        count = 0
        while not (line := self._line()).startswith(b'{"' + _END.encode()):
            if not line:
                raise DamagedLine(self._number, f"it is cut off behind {count} letters")
            self._digest.update(line)
            count += 1
            yield self._number, line, _read_letter(line, self._number)
        self._check_end(line, count)

    def _line(self) -> bytes:
        self._number += 1
        try:
            line = self._stream.readline(MAX_LINE + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise DamagedLine(self._number, f"it is damaged or cut off: {error}") from None
        if len(line) > MAX_LINE:
            raise DamagedLine(self._number, f"the line is longer than {MAX_LINE} bytes")
        return line

    def _check_head(self, line: bytes) -> None:
        try:
            head = msgspec.json.decode(line, type=_Head).redrive_archive
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise DamagedLine(1, "it does not begin like an archive of Redrive") from None
        if head.version != VERSION:
            raise DamagedLine(1, f"it is of version {head.version}, and only version {VERSION} can be read here")
        self._digest.update(line)

    def _check_end(self, line: bytes, count: int) -> None:
        try:
            end = msgspec.json.decode(line, type=_End).redrive_archive_end
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise DamagedLine(self._number, "its last line cannot be read: it is cut off") from None
        if end.letters != count:
            raise DamagedLine(self._number, f"it should hold {end.letters} letters and holds {count}")
        if end.sha256 != self._digest.hexdigest():
            raise DamagedLine(self._number, "its digest is not that of what was written")
        self.erased = end.erased
        if self._line():
            raise DamagedLine(self._number, "something stands behind its end")


def read_archive(path: Path, keys: FileKeys = NO_KEYS) -> Iterator[DeadLetter]:
    """Every letter of a sound file. CorruptFile names the file and what is wrong, at the letter where it is.
    KeyMissing if it is sealed and the key is not among those.
    """
    with reading(path, keys) as reader:
        for _, letter in sound_lines(reader):
            yield letter


def sound_lines(reader: ArchiveReader) -> Iterator[tuple[bytes, DeadLetter]]:
    """Each letter with its line; DamagedLine at the first that is not what was written."""
    for number, line, found in reader.lines():
        if isinstance(found, DamagedLine):
            raise DamagedLine(number, str(found))
        yield line, found


@contextmanager
def reading(path: Path, keys: FileKeys) -> Iterator[ArchiveReader]:
    """Says which file it is that is damaged or cannot be opened."""
    try:
        with path.open("rb") as file:
            yield ArchiveReader(gzip.GzipFile(fileobj=_opened(file, keys), mode="rb"))  # type: ignore[arg-type]  # reads like a BinaryIO
    except DamagedLine as damage:
        raise CorruptFile(
            f"the archive {path} is damaged, line {damage.number}: {damage}",
            remedy="nothing was purged; look at the disk, and move the file away to go on",
        ) from None
    except KeyMissing as missing:
        raise missing.about(f"the archive {path}") from None
    except OSError as error:
        raise CorruptFile(f"the archive {path} cannot be read: {error.strerror or error}") from error


def _opened(file: BinaryIO, keys: FileKeys) -> BinaryIO:
    sealed = file.read(len(MAGIC)) == MAGIC
    file.seek(0)
    return unsealed(file, keys) if sealed else file


def digest_of(letter: DeadLetter) -> bytes:
    """The same for two letters that are the same in every detail that an archive holds."""
    return hashlib.sha256(_letter_json(letter)).digest()


def is_head(value: Any) -> bool:
    return isinstance(value, dict) and _HEAD in value


def _line(letter: DeadLetter) -> bytes:
    told = _letter_json(letter)
    return b"".join((_OPENING, hashlib.sha256(told).hexdigest().encode(), _MIDDLE, told, _CLOSING))


def _read_letter(line: bytes, number: int) -> DeadLetter | DamagedLine:
    told = line[_LETTER_AT : -len(_CLOSING)]
    digest = line[len(_OPENING) : len(_OPENING) + _DIGEST]
    whole = line.startswith(_OPENING) and line[:_LETTER_AT].endswith(_MIDDLE) and line.endswith(_CLOSING)
    if not whole or hashlib.sha256(told).hexdigest().encode() != digest:
        return DamagedLine(number, "the letter's digest is not that of what was written")
    try:
        return letter_of(json.loads(told))
    except (ValueError, RecursionError) as error:
        return DamagedLine(number, str(error))


def _letter_json(letter: DeadLetter) -> bytes:
    return _json(letter_values(letter))


def _json(value: Any) -> bytes:
    # Only ASCII: halves of surrogate pairs are escapes, which come back as they were.
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode("ascii")
