"""The ledger: one gap-free chain of rows, a row for each change by a person or a rule, each denial, each reveal.

A row's mac is an HMAC over everything in it, its number and the mac of the row before included: who changes the
database without the key cannot edit, take out, move or add a row unnoticed (`ledger_verifying`). The head, which
says where the chain ends, has a seal of its own, which no row tells: the end cannot be cut off unnoticed either,
unless somebody has kept an older head. What a keeper of the key could do is held down by checkpoints that leave
the machine (`ledger_checkpoints`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from redrive.epoch import EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

GENESIS = "0" * 64
"""The mac before the first row."""

NAMED = 100
"""Ids that a row names; of more it holds the number and a digest."""

LETTERS, RUN, GROUP, TOKEN, USER, STORE = "letters", "run", "group", "token", "user", "store"
LEDGER, CHECKPOINT, DENIED, KEYS, ERASURE, INCIDENT = "ledger", "checkpoint", "denied", "keys", "erasure", "alert"
QUEUE = "queue"
"""Kinds of subjects."""

SEAL_BROKEN, KEY_CHANGED, SIGNED = "seal broken", "key changed", "signed"
"""What the ledger says about itself."""

ITSELF = "redrive"


class LedgerKey:
    """What rows and checkpoints are made with: one secret, from which everything else is derived. It may be given
    as something that is called when it is needed first. It never shows itself.
    """

    def __init__(self, secret: bytes | Callable[[], bytes]) -> None:
        self._given = secret

    @cached_property
    def _secret(self) -> bytes:
        return self._given if isinstance(self._given, bytes) else self._given()

    @cached_property
    def id(self) -> str:
        """Tells keys apart and nothing about them."""
        return self.derived("key id").hex()[:16]

    @cached_property
    def _for_rows(self) -> bytes:
        return self.derived("rows")

    def derived(self, purpose: str) -> bytes:
        """32 bytes for that purpose, from which neither the secret nor those of another purpose are found."""
        return hmac.digest(self._secret, f"redrive ledger {purpose}".encode(), "sha256")

    def mac(self, text: bytes) -> str:
        return hmac.digest(self._for_rows, text, "sha256").hex()

    def __repr__(self) -> str:
        return "LedgerKey(***)"


class Subject(msgspec.Struct, frozen=True):
    """What something was done to."""

    kind: str
    ids: tuple[str, ...] = ()
    """All of them, or the first NAMED in their order."""
    count: int = 1
    digest: str = ""
    """If there are more than are named: over all of them."""

    @classmethod
    def of(cls, kind: str, ids: Iterable[str]) -> Subject:
        every = sorted(set(ids))
        if len(every) <= NAMED:
            return cls(kind, tuple(every), len(every))
        return cls(kind, tuple(every[:NAMED]), len(every), digest_of(every))


def digest_of(ids: Iterable[str]) -> str:
    """SHA-256 over the ids in their order, as JSON, so that no two lists have the same text."""
    return hashlib.sha256(json.dumps(sorted(set(ids))).encode()).hexdigest()


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, or (not `allowed`) what somebody tried to do."""

    what: str
    subject: Subject
    before: str = ""
    after: str = ""
    allowed: bool = True


class StoredRow(NamedTuple):
    """A row as the database holds it, down to the last character. Somebody may have put anything there."""

    seq: Any
    at: Any
    """Microseconds since 1970."""
    who: Any
    token: Any
    what: Any
    kind: Any
    subject: Any
    before: Any
    after: Any
    reason: Any
    request_id: Any
    allowed: Any
    """1 or 0."""
    key_id: Any
    previous: Any
    mac: Any = ""

    @property
    def is_plain(self) -> bool:
        """Of the types that rows are written with: nothing else can be what we have written."""
        return all(type(value) is (int if name in _NUMBERS else str) for name, value in self._asdict().items())

    def canonical(self) -> bytes:
        """JSON of everything but the mac, with sorted keys and no spaces."""
        values = self._asdict()
        del values["mac"]
        return msgspec.json.encode(values, order="deterministic")

    def sealed(self, key: LedgerKey) -> StoredRow:
        return self._replace(mac=key.mac(self.canonical()))

    def is_sealed(self, key: LedgerKey, seq: int | None = None) -> bool:
        """By that key, in its place or in another one."""
        if not self.is_plain:
            return False
        there = self if seq is None else self._replace(seq=seq)
        return hmac.compare_digest(key.mac(there.canonical()).encode(), self.mac.encode())


_NUMBERS = frozenset({"seq", "at", "allowed"})


class Head(NamedTuple):
    """Where the chain ends."""

    seq: int = 0
    mac: str = GENESIS
    key_id: str = ""
    seal: str = ""

    @classmethod
    def of(cls, row: StoredRow, key: LedgerKey) -> Head:
        return cls(row.seq, row.mac, key.id, cls._seal(row.seq, row.mac, key))

    def is_sealed(self, key: LedgerKey) -> bool:
        return hmac.compare_digest(self._seal(self.seq, self.mac, key).encode(), self.seal.encode())

    @staticmethod
    def _seal(seq: int, mac: str, key: LedgerKey) -> str:
        return key.mac(b"head " + msgspec.json.encode([seq, mac]))


class LedgerPage(NamedTuple):
    """Rows in their order, and the head of the same moment; None: somebody has taken it away."""

    rows: list[StoredRow]
    head: Head | None


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A row as a person reads it."""

    seq: int
    at: datetime
    who: str
    token: str
    what: str
    subject: Subject
    before: str
    after: str
    reason: str
    request_id: str
    allowed: bool
    key_id: str
    previous: str
    mac: str


class LedgerQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that are all of this. Newest first; with `after`, in their order from behind that row on."""

    who: str | None = None
    what: str | None = None
    kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Not that moment itself."""
    allowed: bool | None = None
    """False: denials alone."""
    before: int | None = None
    """Rows with a lower number: the next page, newest first, begins before the last row of this one."""
    after: int | None = None
    limit: int = 50


def entry_of(row: StoredRow) -> LedgerEntry:
    """As far as it can be read: what somebody has put there is shown, and `verify` tells about it."""
    texts = {name: str(getattr(row, name)) for name in LedgerEntry.__struct_fields__ if name not in _READ}
    return LedgerEntry(
        **texts,
        seq=row.seq,
        at=_moment(row.at),
        allowed=bool(row.allowed),
        subject=_subject(row.kind, row.subject),
    )


_READ = frozenset({"seq", "at", "allowed", "subject"})


def written(subject: Subject) -> str:
    """All of it but its kind, which has a column of its own. ASCII alone: every database stores that as it is."""
    return json.dumps([subject.ids, subject.count, subject.digest])


def _subject(kind: Any, text: Any) -> Subject:
    try:
        ids, count, digest = msgspec.convert(json.loads(text), tuple[tuple[str, ...], int, str])
    except (ValueError, TypeError, RecursionError):
        return Subject(str(kind), (str(text),))
    return Subject(str(kind), ids, count, digest)


def _moment(value: Any) -> datetime:
    try:
        return EPOCH + timedelta(microseconds=value)
    except (TypeError, OverflowError):
        return EPOCH
