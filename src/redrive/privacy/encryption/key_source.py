"""Seam: who has the key-encryption keys (KEKs). Data keys are wrapped there, and nowhere lie unwrapped.

A file or a setting is such a source (`redrive.key_sources`). A key management service fits as well: it is asked
seldom, for unwrapped data keys are remembered for a while.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Wrapped(NamedTuple):
    """A secret that only its KEK gives out."""

    kek_id: str
    """At most 255 bytes of UTF-8. It tells nothing about the key."""
    data: bytes
    """At most 65,535 bytes."""


class KeySource(Protocol):
    """For many threads. Its methods may take their time: they are called in threads, or where waiting is fine."""

    @property
    def current(self) -> str:
        """The id of the KEK that wraps. KeyMissing if there is none."""

    @property
    def known(self) -> tuple[str, ...]:
        """The ids of all KEKs that unwrap here, the current one first."""

    def wrap(self, secret: bytes, context: bytes) -> Wrapped:
        """By the current KEK, bound to the context: it unwraps with the same context alone."""

    def unwrap(self, wrapped: Wrapped, context: bytes) -> bytes:
        """KeyMissing if that KEK is not known, SealBroken if it is not what was wrapped in that context.
        Unreachable if a service that has the key does not answer.
        """
