"""The data keys that a process has unwrapped: not too many, and not for too long. No I/O but the KEK's own.

Whoever has sealed values in hand inside a transaction uses this: `known` gives the keys that are here, `learn`
unwraps those that had to be fetched. A key that is not on the ring may be anywhere: only whoever has looked where
it is kept can say that it was shredded.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from redrive.privacy.encryption.data_keys import WrappedKey
from redrive.privacy.encryption.envelope import KEY_ID_BYTES, SECRET_BYTES, DataKey
from redrive.privacy.encryption.key_source import Wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import date

    from redrive.privacy.encryption.key_source import KeySource

MOST_KEYS = 4096
LONGEST_AGE = 300.0
"""Seconds. So long at most a process can open what somebody else has shredded."""


class _Remembered(NamedTuple):
    key: DataKey
    queue: str
    day: date
    until: float


class KeyRing:
    """For many threads."""

    def __init__(
        self,
        source: KeySource,
        *,
        most: int = MOST_KEYS,
        age: float = LONGEST_AGE,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._most = most
        self._age = age
        self._now = now
        self._keys: OrderedDict[bytes, _Remembered] = OrderedDict()
        self._sealing: dict[tuple[str, date], bytes] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"KeyRing({len(self._keys)} keys)"

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def source(self) -> KeySource:
        return self._source

    def new_key(self, queue: str, day: date, *, turn: int = 0) -> WrappedKey:
        """A random one, wrapped. It seals nothing before it is kept durably and learned."""
        bare = WrappedKey(os.urandom(KEY_ID_BYTES), queue, day, Wrapped("", b""), turn)
        return bare.rewrapped(self._source.wrap(os.urandom(SECRET_BYTES), bare.context))

    def learn(self, wrapped: WrappedKey, *, uses: int = 0) -> DataKey:
        """Unwraps it, unless it is known, and remembers it. `uses`: so many values may be sealed with it."""
        with self._lock:
            known = self._fresh(wrapped.id)
        # Unwrapping may ask a service: others need not wait for it.
        key = known or DataKey(wrapped.id, self._source.unwrap(wrapped.wrapped, wrapped.context))
        key.allow(uses)
        with self._lock:
            if known is None:
                self._keys[wrapped.id] = _Remembered(key, wrapped.queue, wrapped.day, self._now() + self._age)
            if uses:
                self._sealing[wrapped.queue, wrapped.day] = wrapped.id
            while len(self._keys) > self._most:
                self._drop(next(iter(self._keys)))
        return key

    def known(self, ids: Iterable[bytes]) -> dict[bytes, DataKey]:
        """Those of them that need not be learned again."""
        with self._lock:
            found = ((each, self._fresh(each)) for each in set(ids))
            return {each: key for each, key in found if key is not None}

    def sealing_key(self, queue: str, day: date, *, uses: int = 1) -> DataKey | None:
        """One that may seal so many values; None: one has to be learned first."""
        with self._lock:
            key_id = self._sealing.get((queue, day))
            key = None if key_id is None else self._fresh(key_id)
        return key if key is not None and key.left >= uses else None

    def forget(self, ids: Iterable[bytes]) -> None:
        """At once, such as after shredding them."""
        with self._lock:
            for each in ids:
                if each in self._keys:
                    self._drop(each)

    def _fresh(self, key_id: bytes) -> DataKey | None:
        found = self._keys.get(key_id)
        if found is None:
            return None
        if found.until <= self._now():
            self._drop(key_id)
            return None
        self._keys.move_to_end(key_id)
        return found.key

    def _drop(self, key_id: bytes) -> None:
        gone = self._keys.pop(key_id)
        if self._sealing.get((gone.queue, gone.day)) == key_id:
            del self._sealing[gone.queue, gone.day]
