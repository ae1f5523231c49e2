"""A new KEK takes over while others read and write.

Rotation wraps every data key again and leaves what they seal as it is. Each is changed only if it is still what
was read, so any number of rotations, writers and shreddings can go on at once. Killed anywhere: the next run wraps
the rest.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from redrive.errors import KeyMissing, SealBroken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redrive.privacy.encryption.data_keys import DataKeys, WrappedKey
    from redrive.privacy.encryption.key_source import KeySource

_AT_ONCE = 100


class Rotated(msgspec.Struct, frozen=True):
    rewrapped: int
    left: tuple[str, ...]
    """KEKs that still wrap a data key, for they are not known here or what they wrapped is damaged. Until there
    are none, no older KEK may be thrown away.
    """


async def rewrap_all(
    keys: DataKeys, source: KeySource, *, on_progress: Callable[[int], None] | None = None
) -> Rotated:
    """Until a whole pass finds nothing to wrap again: what others add meanwhile with an older KEK is found too."""
    done = 0
    while True:
        count, left = await _one_pass(keys, source, on_progress or (lambda _seen: None))
        done += count
        if not count:
            return Rotated(done, tuple(sorted(left)))


async def _one_pass(keys: DataKeys, source: KeySource, advance: Callable[[int], None]) -> tuple[int, set[str]]:
    current, after, done = source.current, b"", 0
    left: set[str] = set()
    while page := await keys.wrapped_by_others(current, after=after, limit=_AT_ONCE):
        for old, new in await asyncio.to_thread(_rewrapped, source, page):
            if new is None:
                left.add(old.wrapped.kek_id)
            elif await keys.rewrap(old, new):
                done += 1
        after = page[-1].id
        advance(len(page))
    return done, left


def _rewrapped(source: KeySource, page: Sequence[WrappedKey]) -> list[tuple[WrappedKey, WrappedKey | None]]:
    return [(old, _again(source, old)) for old in page]


def _again(source: KeySource, old: WrappedKey) -> WrappedKey | None:
    try:
        secret = source.unwrap(old.wrapped, old.context)
    except (KeyMissing, SealBroken):
        return None
    return old.rewrapped(source.wrap(secret, old.context))
