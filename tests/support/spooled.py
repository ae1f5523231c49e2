"""Entries for a spool, a store to replay them into, and programs that are killed while they use one."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from redrive import faults
from redrive.dead_letter import Entry, Fingerprint
from redrive.errors import Unreachable
from redrive.failure import Failure, FailureKind, Frame, Raised
from redrive.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MEGABYTE = 1024 * 1024
_RAISED = Raised(
    "ValueError", "no such order", (Frame(file="shop.py", line=3, function="charge", source="", own=True),)
)


def an_entry(identity: str, *, body: bytes | None = b"{}", **fields: Any) -> Entry:
    return Entry(
        identity=identity,
        message=Message(id=f"m-{identity}", queue="orders", body=body, sent_at=NOON, **fields),
        queue="orders",
        handler="charge",
        failures=(Failure(attempt=1, at=NOON, kind=FailureKind.PERMANENT, handler="charge", chain=(_RAISED,)),),
        fingerprint=Fingerprint("0" * 32, "ValueError: no such order"),
        at=NOON,
        first_attempt_at=NOON,
    )


class Sink:
    """A store that is there, or goes away."""

    def __init__(self, *, away_after: int | None = None) -> None:
        self.entries: list[Entry] = []
        self._away_after = away_after

    @property
    def identities(self) -> list[str]:
        return [entry.identity for entry in self.entries]

    async def take(self, entry: Entry) -> None:
        if self._away_after is not None and len(self.entries) >= self._away_after:
            raise Unreachable("the store is away")
        self.entries.append(entry)


@contextlib.contextmanager
def armed(text: str) -> Iterator[None]:
    faults.arm(text)
    try:
        yield
    finally:
        faults.arm("")


def segment_files(folder: Path) -> list[Path]:
    """Plain and sealed ones."""
    return sorted((*folder.glob("*.seg"), *folder.glob("*.seg.sealed")))


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process of our own, which finds what tests find."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
