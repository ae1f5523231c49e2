"""Keys for tests: one in use, an older one, and one that nobody here has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from redrive.privacy.encryption.data_keys import DataKeys
from redrive.privacy.encryption.envelope import DataKey, Place, key_id_of
from redrive.privacy.encryption.file_keys import NO_KEYS, FileKeys
from redrive.privacy.encryption.key_ring import KeyRing
from redrive.privacy.encryption.local_keys import KeyEncryptionKey, LocalKeys
from redrive.privacy.encryption.sealer import Sealer
from redrive.stores.sealing import Encryption

SECRET, OLD_SECRET, OTHER_SECRET = bytes(range(32)), bytes(range(32, 64)), bytes(range(64, 96))
KEY, OLD_KEY, OTHER_KEY = map(KeyEncryptionKey, (SECRET, OLD_SECRET, OTHER_SECRET))

SEALING = FileKeys(LocalKeys([KEY]), seals=True)
OF_OTHERS = FileKeys(LocalKeys([OTHER_KEY]), seals=True)
KINDS = {"plain": NO_KEYS, "sealed": SEALING}
ENCRYPTION = Encryption(LocalKeys([KEY]))


class Gone(Exception):
    """Its data key is not kept any more."""


class OpeningSealer(Sealer):
    """A process that seals values one by one, and opens them as a store does."""

    def __init__(self, keys: DataKeys, ring: KeyRing) -> None:
        super().__init__(keys, ring)
        self._kept = keys

    async def seal(self, value: bytes, place: Place, *, queue: str, day: date) -> bytes:
        return (await self.key_for(queue, day)).seal(value, place)

    async def open(self, sealed: bytes, place: Place) -> bytes:
        [value] = await self.open_all([(sealed, place)])
        if value is None:
            raise Gone
        return value

    async def open_all(self, values: Sequence[tuple[bytes, Place]]) -> list[bytes | None]:
        """None for what was shredded."""
        ids = {key_id_of(sealed) for sealed, _ in values}
        found: dict[bytes, DataKey] = self.ring.known(ids)
        kept = await self._kept.find(ids - found.keys())
        found |= {each.id: self.ring.learn(each) for each in kept.values()}
        opened = ((found.get(key_id_of(sealed)), sealed, place) for sealed, place in values)
        return [None if key is None else key.open(sealed, place) for key, sealed, place in opened]
