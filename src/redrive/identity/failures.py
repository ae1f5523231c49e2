"""Slows down whoever guesses: after some failures from one address, or under one name, there is a wait.

In memory and bounded. Addresses and names lie apart, because names can be made up without end: nobody gets their
address forgotten by that. A success takes nothing back, or one good token would pay for many guesses.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from redrive.clock import Clock

_SITE = 64
_LONGEST_KEY = 64


class Limit(NamedTuple):
    failures: int
    within: float
    """Seconds, from the first of them on."""


PER_ADDRESS = Limit(20, 60.0)
PER_NAME = Limit(60, 60.0)
"""Higher: whoever knows a token's id or a user's name could keep its holder out with it."""

MOST = 10_000


class Failures:
    """`address` is the client's; `name` is a token's id or a user's name, if one was given."""

    def __init__(
        self,
        clock: Clock,
        *,
        per_address: Limit = PER_ADDRESS,
        per_name: Limit = PER_NAME,
        most: int = MOST,
    ) -> None:
        self._addresses = _Counted(clock, per_address, most)
        self._names = _Counted(clock, per_name, most)

    def wait(self, address: str, name: str = "") -> float:
        """Seconds until the next try, for Retry-After; 0: now."""
        waits = [self._addresses.wait(site_of(address))]
        if name:
            waits.append(self._names.wait(name[:_LONGEST_KEY]))
        return max(waits)

    def note(self, address: str, name: str = "") -> None:
        """One more failure."""
        self._addresses.note(site_of(address))
        if name:
            self._names.note(name[:_LONGEST_KEY])

    def __len__(self) -> int:
        return len(self._addresses) + len(self._names)


def site_of(address: str) -> str:
    """What one client has for sure: an IPv4 address, or all the addresses of an IPv6 network of 64 bits."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:_LONGEST_KEY]
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _SITE), strict=False))


class _Counted:
    def __init__(self, clock: Clock, limit: Limit, most: int) -> None:
        self._clock = clock
        self._limit = limit
        self._most = most
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()  # since when, how many; the oldest first

    def wait(self, key: str) -> float:
        since, number = self._seen.get(key, (0.0, 0))
        left = since + self._limit.within - self._clock.monotonic()
        return max(left, 0.0) if number >= self._limit.failures else 0.0

    def note(self, key: str) -> None:
        now = self._clock.monotonic()
        since, number = self._seen.get(key, (now, 0))
        if now - since >= self._limit.within:
            self._seen.pop(key)
            since, number = now, 0
        self._seen[key] = (since, number + 1)
        self._forget(now)

    def _forget(self, now: float) -> None:
        """What is over, and the oldest of what is too much."""
        while self._seen:
            oldest, (since, _) = next(iter(self._seen.items()))
            if now - since < self._limit.within and len(self._seen) <= self._most:
                return
            self._seen.pop(oldest)

    def __len__(self) -> int:
        return len(self._seen)
