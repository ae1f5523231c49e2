"""What `redrive doctor` found: one line for a person, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class FindingLevel(StrEnum):
    OK = "ok"
    UNKNOWN = "unknown"
    """It does not tell, or may not be asked: neither well nor wrong."""
    WARN = "warn"
    """Worth knowing; nothing is lost by it alone."""
    PROBLEM = "problem"
    """Messages may be lost, or cannot be worked on."""


WORST_FIRST = (FindingLevel.PROBLEM, FindingLevel.WARN, FindingLevel.UNKNOWN, FindingLevel.OK)


class FoundAt(StrEnum):
    """Where messages may be lost."""

    BROKER = "broker"
    STORE = "store"
    DISK = "disk"
    SETTINGS = "settings"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    check: str
    """What was looked at, a fixed word: `dead-letter-route`, `ttl`, `store`. docs/doctor.md has them all."""
    level: FindingLevel
    what: str
    remedy: str = ""
    """Empty where nothing needs to be done."""
    place: FoundAt = FoundAt.BROKER
    queue: str | None = None
    unreachable: bool = False
    """The broker or the store did not answer: what else is wrong with it is not known."""


def ok(check: str, what: str, *, queue: str | None = None) -> Finding:
    return Finding(check=check, level=FindingLevel.OK, what=what, queue=queue)


def unknown(check: str, what: str, remedy: str, *, queue: str | None = None) -> Finding:
    return Finding(check=check, level=FindingLevel.UNKNOWN, what=what, remedy=remedy, queue=queue)


def warn(check: str, what: str, remedy: str, *, queue: str | None = None) -> Finding:
    return Finding(check=check, level=FindingLevel.WARN, what=what, remedy=remedy, queue=queue)


def problem(check: str, what: str, remedy: str, *, queue: str | None = None) -> Finding:
    return Finding(check=check, level=FindingLevel.PROBLEM, what=what, remedy=remedy, queue=queue)
