"""Letters in archives: found by ids or by a filter, without the store, one file after the other.

Archives are read from the newest to the oldest, and of a letter that was archived twice only the newer one is
looked at: it is the letter as it was last. What is kept in memory is one letter, and the ids of those before it.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

from redrive.dead_letter import DeadLetter
from redrive.errors import UsageError
from redrive.event import describe
from redrive.imports import ARCHIVE, Bad, read
from redrive.search import Field, FieldTerm, Filter
from redrive.search_match import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from redrive.privacy.encryption.file_keys import FileKeys


class InArchive(NamedTuple):
    path: Path
    letter: DeadLetter


class Wanted(NamedTuple):
    """Which letters: by the beginnings of their ids, if there are any, and by the filter."""

    ids: tuple[str, ...] = ()
    where: Filter = Filter()

    def includes(self, letter: DeadLetter) -> bool:
        if self.ids and not letter.id.startswith(self.ids):
            return False
        if not self.where.terms:
            return True
        event = describe(letter.message, letter.queue)
        return matches(self.where, letter, event_type=event.event_type, correlation=event.correlation_id)

    def check(self) -> None:
        """UsageError for what archives do not know."""
        if any(isinstance(term, FieldTerm) and term.field is Field.OWNER for term in self.where.terms):
            raise UsageError(
                "archives do not know who owns a group: that is kept in the store",
                remedy="leave out `owner:`, or give the group's id with `group:`",
            )


class ArchiveSearch:
    """`on_bad` is told what cannot be read, and the rest is searched all the same; `on_bytes` how far it is."""

    def __init__(
        self,
        wanted: Wanted,
        keys: FileKeys,
        *,
        on_bad: Callable[[Path, Bad], None],
        on_bytes: Callable[[int], None] = lambda _more: None,
    ) -> None:
        wanted.check()
        self._wanted = wanted
        self._keys = keys
        self._on_bad = on_bad
        self._on_bytes = on_bytes
        self._seen: set[bytes] = set()

    def letters(self, newest_first: Sequence[Path]) -> Iterator[InArchive]:
        for path in newest_first:
            yield from self._of_file(path)

    def _of_file(self, path: Path) -> Iterator[InArchive]:
        for letter in letters_in(path, self._keys, on_bad=self._on_bad, on_bytes=self._on_bytes):
            if self._is_wanted(letter):
                yield InArchive(path, letter)

    def _is_wanted(self, letter: DeadLetter) -> bool:
        known = uuid.UUID(letter.id).bytes
        if known in self._seen:
            return False
        self._seen.add(known)
        return self._wanted.includes(letter)


def letters_in(
    path: Path,
    keys: FileKeys,
    *,
    on_bad: Callable[[Path, Bad], None],
    on_bytes: Callable[[int], None] = lambda _more: None,
) -> Iterator[DeadLetter]:
    """Every letter of an archive that can be read, whatever else it holds."""
    at = 0
    try:
        with path.open("rb") as stream:
            for each in read(stream, format=ARCHIVE, keys=keys):
                on_bytes(stream.tell() - at)
                at = stream.tell()
                if isinstance(each, Bad):
                    on_bad(path, each)
                elif isinstance(each.letter, DeadLetter):
                    yield each.letter
    except OSError as error:
        on_bad(path, Bad(1, f"it cannot be read: {error.strerror or error}"))
