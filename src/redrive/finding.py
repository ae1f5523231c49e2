"""What `redrive doctor` found: one line for a person, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    """Worth knowing; nothing is lost by it alone."""
    PROBLEM = "problem"
    """Messages may be lost, or cannot be worked on."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    check: str
    """What was looked at, a fixed word: `dead-letter-route`, `ttl`, `store`."""
    level: Level
    what: str
    remedy: str = ""
    """Empty where nothing needs to be done."""
    queue: str | None = None
    unreachable: bool = False
    """The broker or the store did not answer: what else is wrong with it is not known."""


def ok(check: str, what: str, *, queue: str | None = None) -> Finding:
    return Finding(check=check, level=Level.OK, what=what, queue=queue)


def warn(check: str, what: str, remedy: str, *, queue: str | None = None) -> Finding:
    return Finding(check=check, level=Level.WARN, what=what, remedy=remedy, queue=queue)


def problem(check: str, what: str, remedy: str, *, queue: str | None = None) -> Finding:
    return Finding(check=check, level=Level.PROBLEM, what=what, remedy=remedy, queue=queue)
