"""Whether the ledger is what was written: pure, row after row, in constant memory.

What is found: rows that were edited, taken out, moved, replaced or added, an end that was cut off, a chain that
was built anew (against a checkpoint), rows by a key that nobody knows.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from redrive.ledger import (
    CHECKPOINT,
    GENESIS,
    KEY_CHANGED,
    LEDGER,
    SEAL_BROKEN,
    Head,
    LedgerKey,
    StoredRow,
    entry_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_COMPARED = 200
"""Rows out of place that are compared with each other, to tell which were swapped."""


class Fault(StrEnum):
    EDITED = "edited"
    MOVED = "moved"
    MISSING = "missing"
    REPLACED = "replaced"
    TRUNCATED = "truncated"
    REBUILT = "rebuilt"
    UNKNOWN_KEY = "unknown key"
    BROKEN_SEAL = "broken seal"
    CHECKPOINT_EDITED = "checkpoint edited"
    CHECKPOINT_MISSING = "checkpoint missing"


class LedgerFinding(msgspec.Struct, frozen=True):
    fault: Fault
    seq: int
    """The row it was found at."""
    text: str


class Verifier:
    """`anchors` are what checkpoints say: the macs that the row of a number must have. `begin` is the row behind
    which it begins, which was verified before.
    """

    def __init__(
        self,
        keys: Iterable[LedgerKey],
        anchors: Mapping[int, Iterable[str]] | None = None,
        *,
        begin: tuple[int, str] = (0, GENESIS),
    ) -> None:
        self._keys = {key.id: key for key in keys}
        self._anchors = {seq: frozenset(macs) for seq, macs in (anchors or {}).items()}
        self._seq, self._mac = begin
        self._sound = True
        self._unknown: set[str] = set()
        self._out_of_place: list[StoredRow] = []
        self.rows = 0
        self.told: dict[str, tuple[int, str]] = {}
        """Digests of checkpoints that rows tell of, each with the row and with where the checkpoint is."""

    def look(self, row: StoredRow) -> Iterator[LedgerFinding]:
        """At the next row."""
        gap = row.seq - self._seq - 1
        if gap:
            yield self._gone(row.seq)
        key = self._keys.get(row.key_id)
        sound = key is None or row.is_sealed(key)
        if key is None:
            yield from self._unknown_key(row.seq, row.key_id)
        elif not sound:
            yield from self._unsound(row, key)
        if sound and self._sound and not gap and row.previous != self._mac:
            text = f"row {row.seq} was written behind another row {self._seq} than is there"
            yield LedgerFinding(Fault.REPLACED, row.seq, text)
        if not {row.mac} >= self._anchors.get(row.seq, frozenset()):
            text = f"row {row.seq} is not the one that a checkpoint was made of: the chain was built anew"
            yield LedgerFinding(Fault.REBUILT, row.seq, text)
        if sound:
            yield from self._said_of_itself(row)
        self._seq, self._mac, self._sound, self.rows = row.seq, row.mac, sound, self.rows + 1

    def end(self, head: Head | None) -> Iterator[LedgerFinding]:
        """When there are no more rows."""
        yield from self._misplaced()
        last = max(self._anchors, default=0)
        if last > self._seq:
            text = (
                f"the rows from {self._seq + 1} to {last} at least are gone: a checkpoint was made of row {last}"
            )
            yield LedgerFinding(Fault.TRUNCATED, last, text)
        yield from self._head(head)

    def _head(self, head: Head | None) -> Iterator[LedgerFinding]:
        if head is None:
            yield LedgerFinding(Fault.BROKEN_SEAL, self._seq, "what says where the ledger ends is gone")
        elif head.seq > self._seq:
            text = f"the rows from {self._seq + 1} to {head.seq} are gone: the ledger ended at row {head.seq}"
            yield LedgerFinding(Fault.TRUNCATED, head.seq, text)
        elif (head.seq, head.mac) != (self._seq, self._mac):
            text = f"the ledger ends at row {self._seq}, and was sealed at another row {head.seq}"
            yield LedgerFinding(Fault.BROKEN_SEAL, self._seq, text)
        elif head.seq and head.key_id not in self._keys:
            yield from self._unknown_key(head.seq, head.key_id)
        elif head.seq and not head.is_sealed(self._keys[head.key_id]):
            text = f"the ledger was not sealed at row {head.seq}: rows behind it may be gone"
            yield LedgerFinding(Fault.BROKEN_SEAL, head.seq, text)

    def _gone(self, found: int) -> LedgerFinding:
        first, last = self._seq + 1, found - 1
        text = f"row {first} is missing" if first == last else f"the rows from {first} to {last} are missing"
        return LedgerFinding(Fault.MISSING, first, text)

    def _unknown_key(self, seq: int, key_id: object) -> Iterator[LedgerFinding]:
        """Once for each key."""
        name = str(key_id)
        if name not in self._unknown:
            self._unknown.add(name)
            text = f"row {seq} and maybe more were made by the key {name!r}, which was not given"
            yield LedgerFinding(Fault.UNKNOWN_KEY, seq, text)

    def _unsound(self, row: StoredRow, key: LedgerKey) -> Iterator[LedgerFinding]:
        for real in (row.seq + 1, row.seq - 1):
            if row.is_sealed(key, real):
                yield _moved(row, real)
                return
        if len(self._out_of_place) < _COMPARED:
            self._out_of_place.append(row)
        else:
            yield _edited(row)

    def _misplaced(self) -> Iterator[LedgerFinding]:
        """Two that were swapped are each in the place of the other."""
        places = [row.seq for row in self._out_of_place]
        for row in self._out_of_place:
            key = self._keys[row.key_id]
            real = next((place for place in places if place != row.seq and row.is_sealed(key, place)), None)
            yield _edited(row) if real is None else _moved(row, real)

    def _said_of_itself(self, row: StoredRow) -> Iterator[LedgerFinding]:
        if row.kind == CHECKPOINT:
            entry = entry_of(row)
            self.told |= dict.fromkeys(entry.subject.ids, (entry.seq, entry.after))
        if row.kind == LEDGER and row.what == SEAL_BROKEN:
            text = f"when row {row.seq} was written, the end of the ledger was not as it was left: {row.before}"
            yield LedgerFinding(Fault.BROKEN_SEAL, row.seq, text)
        if row.kind == LEDGER and row.what == KEY_CHANGED:
            yield from self._key_changed(row)

    def _key_changed(self, row: StoredRow) -> Iterator[LedgerFinding]:
        """The row tells the seal that was on the end then."""
        key = self._keys.get(row.before)
        seal = "".join(entry_of(row).subject.ids)
        if key is None:
            yield from self._unknown_key(row.seq - 1, row.before)
        elif not Head(row.seq - 1, row.previous, row.before, seal).is_sealed(key):
            text = f"row {row.seq - 1} was not sealed as the last one when the key was changed"
            yield LedgerFinding(Fault.BROKEN_SEAL, row.seq, text)


def _edited(row: StoredRow) -> LedgerFinding:
    return LedgerFinding(Fault.EDITED, row.seq, f"row {row.seq} was edited, or never written by us")


def _moved(row: StoredRow, real: int) -> LedgerFinding:
    return LedgerFinding(Fault.MOVED, row.seq, f"row {row.seq} holds what was written as row {real}")
