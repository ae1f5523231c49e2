"""Encryption of a store: bodies, headers, keys, properties and stories of failures are sealed in their columns.

A unit of work is a plain function of a connection; to find a data key may take a transaction of its own, or a
service that unwraps it. So a unit that misses a key says so by an exception, is undone, and is run again when the
key is there: once per queue and day, and once more when this process has forgotten it.

1. What is written is sealed by a data key of the letter's queue and day that is durable already.
2. Before the unit is committed, its data keys are looked for once more. Somebody may have shredded one that this
   process still remembers: then the unit is run again with another one.
3. What is read is opened, or the letter says why it cannot be: shredded, damaged, or its key is not here. One
   letter that cannot be read hides no other.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, date
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from redrive.dead_letter import Unreadable
from redrive.errors import KeyMissing, SealBroken
from redrive.privacy.encryption.envelope import Place, UsedUp
from redrive.privacy.encryption.key_ring import KeyRing
from redrive.privacy.encryption.sealer import Sealer
from redrive.stores.sql_data_keys import gone_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.privacy.encryption.data_keys import DataKeys, WrappedKey
    from redrive.privacy.encryption.envelope import DataKey
    from redrive.privacy.encryption.key_source import KeySource
    from redrive.stores.expressions import Values

T = TypeVar("T")

EXACT = ("body", "headers", "key", "properties")
"""Columns of a revision that are sealed."""
TOLD = "told"
NO_KEY = bytes(16)
"""In the place of a data key's id: what the row held was gone before it came here."""

_LENT = "redrive.sealing"
_TRIES = 10


class Encryption(NamedTuple):
    """What a store needs to seal and open. Without `seals`, new rows are plain, and sealed ones are still read."""

    source: KeySource
    seals: bool = True


class _SealingKeyWanted(Exception):
    def __init__(self, queue: str, day: date, uses: int) -> None:
        self.queue, self.day, self.uses = queue, day, uses


class _KeysWanted(Exception):
    def __init__(self, ids: Collection[bytes]) -> None:
        self.ids = set(ids)


class _KeysGone(_KeysWanted):
    """They have sealed something, and were shredded."""


class Sealing:
    """What one run of a unit knows about data keys, and may do with them."""

    def __init__(self, ring: KeyRing | None = None, *, seals: bool = False, known_to_be: bool = False) -> None:
        self._ring = ring
        self._seals = seals
        self._found: dict[bytes, DataKey] = {}
        self._lost: dict[bytes, Unreadable] = {}
        self._used: set[bytes] = set()
        self._sure: set[bytes] | None = set() if known_to_be else None

    def begin(self) -> None:
        """Once more from the beginning: nothing is sealed yet."""
        self._used = set()

    def revision(self, values: Values, *, queue: str, created_at: datetime) -> Values:
        """The row of a revision as it is written. `created_at`: the letter's."""
        if not self._seals:
            return values
        held = {name: values[name] for name in EXACT if values.get(name) is not None}
        key = self._key(queue, created_at, len(held))
        letter_id, number = values["letter_id"], values["number"]
        sealed = {
            name: _sealed(key, held[name], Place(letter_id, name, number), queue, created_at) for name in held
        }
        return {**values, **sealed, "data_key": key.id}

    def failure(self, values: Values, *, queue: str, created_at: datetime) -> Values:
        """The row of a failure as it is written."""
        if not self._seals:
            return values
        key = self._key(queue, created_at, 1)
        return {
            **values,
            TOLD: _sealed(key, values[TOLD], _told_at(values), queue, created_at),
            "data_key": key.id,
        }

    def gather(self, key_ids: Iterable[bytes | None], *, sure_of: Connection | None = None) -> None:
        """All data keys that are going to be needed: to miss them together costs as much as to miss one.
        `sure_of`: those that were shredded are not used, even if this process remembers them.
        """
        all_of_them = {each for each in key_ids if each is not None}
        if all_of_them and sure_of is not None:
            self._lost |= dict.fromkeys(gone_of(sure_of, all_of_them), Unreadable.SHREDDED)
        wanted = all_of_them - self._found.keys() - self._lost.keys()
        if not wanted:
            return
        if self._ring is None:
            self._lost |= dict.fromkeys(wanted, Unreadable.LOCKED)
            return
        self._found |= self._ring.known(wanted)
        if missing := wanted - self._found.keys():
            raise _KeysWanted(missing)

    def opened(self, key_id: bytes | None, values: Values, at: Callable[[str], Place]) -> Values | Unreadable:
        """What these columns held. `key_id` None: they are plain."""
        if key_id is None:
            return values
        self.gather([key_id])
        if key_id in self._lost:
            return self._lost[key_id]
        key = self._found[key_id]
        try:
            return {name: None if each is None else key.open(each, at(name)) for name, each in values.items()}
        except SealBroken:
            return Unreadable.DAMAGED

    def make_sure(self, connection: Connection) -> None:
        """Last in the transaction: what was sealed can be opened again."""
        if self._used and self._sure is None and (gone := gone_of(connection, self._used)):
            raise _KeysGone(gone)

    def learn(self, found: dict[bytes, DataKey], lost: dict[bytes, Unreadable]) -> None:
        self._found |= found
        self._lost |= lost

    def trust(self, key_ids: Collection[bytes]) -> None:
        """They were there a moment ago: for units in a transaction of somebody else, which may see less."""
        if self._sure is not None:
            self._sure |= set(key_ids)

    def _key(self, queue: str, created_at: datetime, uses: int) -> DataKey:
        day = created_at.astimezone(UTC).date()
        key = None if self._ring is None else self._ring.sealing_key(queue, day, uses=uses)
        if key is None:
            raise _SealingKeyWanted(queue, day, uses)
        if self._sure is not None and key.id not in self._sure:
            raise _KeysGone([key.id])
        self._used.add(key.id)
        return key


def _sealed(key: DataKey, value: bytes, place: Place, queue: str, created_at: datetime) -> bytes:
    try:
        return key.seal(value, place)
    except UsedUp:  # by others, between the look at what is left of it and now
        raise _SealingKeyWanted(queue, created_at.astimezone(UTC).date(), 1) from None


def _told_at(values: Values) -> Place:
    return told_at(values["letter_id"], values["generation"], values["attempt"])


def told_at(letter_id: str, generation: int, attempt: int) -> Place:
    return Place(letter_id, f"{TOLD} {generation}", attempt)


class Seals:
    """The encryption of one open store."""

    def __init__(self, encryption: Encryption, keys: DataKeys) -> None:
        self.keys = keys
        self.ring = KeyRing(encryption.source)
        self._sealer = Sealer(keys, self.ring)
        self._seals = encryption.seals

    async def run(
        self,
        run: Callable[[Callable[[Connection], T]], Awaitable[T]],
        unit: Callable[[Connection], T],
        *,
        as_guest: bool = False,
    ) -> T:
        """`run` runs the unit in a transaction, as often as keys are missing; `as_guest`: in somebody else's."""
        sealing = Sealing(self.ring, seals=self._seals, known_to_be=as_guest)
        for _ in range(_TRIES):
            try:
                return await run(_lent(sealing, unit))
            except _SealingKeyWanted as wanted:
                await self._sealer.key_for(wanted.queue, wanted.day, uses=wanted.uses)
            except _KeysGone as gone:
                there = await self.keys.find(gone.ids) if as_guest else {}
                sealing.trust(there.keys())
                self.ring.forget(gone.ids - there.keys())
            except _KeysWanted as wanted:
                sealing.learn(*await self._fetch(wanted.ids))
        raise RuntimeError(f"data keys went missing {_TRIES} times in a row")

    async def _fetch(self, ids: set[bytes]) -> tuple[dict[bytes, DataKey], dict[bytes, Unreadable]]:
        kept = await self.keys.find(ids)
        found, lost = await asyncio.to_thread(self._learn, kept.values())
        return found, lost | dict.fromkeys(ids - kept.keys(), Unreadable.SHREDDED)

    def _learn(self, kept: Iterable[WrappedKey]) -> tuple[dict[bytes, DataKey], dict[bytes, Unreadable]]:
        found: dict[bytes, DataKey] = {}
        lost: dict[bytes, Unreadable] = {}
        for each in kept:
            try:
                found[each.id] = self.ring.learn(each)
            except KeyMissing:
                lost[each.id] = Unreadable.LOCKED
            except SealBroken:
                lost[each.id] = Unreadable.DAMAGED
        return found, lost


def _lent(sealing: Sealing, unit: Callable[[Connection], T]) -> Callable[[Connection], T]:
    def knowing(connection: Connection) -> T:
        sealing.begin()
        lent = connection.info  # not asked for again: a connection that has broken would answer with an error
        lent[_LENT] = sealing
        try:
            done = unit(connection)
        finally:
            lent.pop(_LENT, None)  # it may be somebody else's connection
        sealing.make_sure(connection)
        return done

    return knowing


def sealing_of(connection: Connection) -> Sealing:
    """How exact columns are written and read by this connection. Without encryption: as they are."""
    found: Sealing | None = connection.info.get(_LENT)
    return found or Sealing()
