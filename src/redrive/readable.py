"""Letters whose content cannot be read, where somebody needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.dead_letter import Unreadable
from redrive.errors import ConfigurationError, SealBroken, Shredded

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter


def readable(letter: DeadLetter) -> DeadLetter:
    """The letter; Shredded, SealBroken or ConfigurationError if it cannot be read."""
    what, why = f"letter {letter.id}", letter.unreadable
    if why is Unreadable.SHREDDED:
        raise Shredded(what)
    if why is Unreadable.DAMAGED:
        raise SealBroken(f"{what} cannot be read", remedy=why.explained)
    if why is Unreadable.LOCKED:
        raise ConfigurationError(f"{what} cannot be read", remedy=why.explained)
    return letter
