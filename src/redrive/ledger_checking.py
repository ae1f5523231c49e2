"""Verifying the ledger of a store, and signing checkpoints of it, page by page."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import msgspec
import structlog

from redrive.dead_letter import Actor
from redrive.errors import RedriveError, Refused
from redrive.ledger import CHECKPOINT, ITSELF, SIGNED, Deed, Subject
from redrive.ledger_checkpoints import BEFORE_ALL, Checkpoint, read_checkpoints
from redrive.ledger_verifying import Fault, LedgerFinding, Verifier
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
    from pathlib import Path

    from redrive.clock import Clock
    from redrive.ledger import LedgerKey, LedgerPage
    from redrive.ledger_checkpoints import CheckpointFile
    from redrive.stores.ledger_store import LedgerStore

log = structlog.get_logger("redrive.ledger")

PAGE = 1000
TOLD = 1000
"""Findings that are told one by one; more are counted."""

EVERY_ROWS = 1000
EVERY = 300.0
"""Seconds. A checkpoint is due after so many rows, or after that time if there is a row at all."""
_LOOK = 10.0


class Verified(msgspec.Struct, frozen=True):
    rows: int
    checkpoints: int
    findings: tuple[LedgerFinding, ...]
    """The first TOLD."""
    faults: int
    """All of them."""

    @property
    def sound(self) -> bool:
        return not self.faults


class _Found:
    def __init__(self) -> None:
        self.first: list[LedgerFinding] = []
        self.number = 0

    def add(self, findings: Iterable[LedgerFinding]) -> None:
        for each in findings:
            self.number += 1
            if len(self.first) < TOLD:
                self.first.append(each)


async def verify(
    store: LedgerStore,
    keys: Sequence[LedgerKey],
    checkpoints: Sequence[Path],
    *,
    on_progress: Callable[[int], None] | None = None,
) -> Verified:
    """All of the ledger, against checkpoints of these files. Changes nothing, and others may write meanwhile."""
    read = await asyncio.to_thread(read_checkpoints, checkpoints, keys)
    found = _Found()
    found.add(read.findings)
    verifier = Verifier(keys, read.anchors)
    async for page in _pages(store, 0):
        for row in page.rows:
            found.add(verifier.look(row))
        if len(page.rows) < PAGE:
            found.add(verifier.end(page.head))
        if on_progress is not None:
            on_progress(len(page.rows))
    if not verifier.told.keys() <= read.digests:  # or they were signed while we were looking
        read = await asyncio.to_thread(read_checkpoints, checkpoints, keys)
    found.add(
        LedgerFinding(
            Fault.CHECKPOINT_MISSING, seq, f"row {seq} tells of a checkpoint in {place} that is not there"
        )
        for digest, (seq, place) in verifier.told.items()
        if digest not in read.digests
    )
    return Verified(verifier.rows, len(read.digests), tuple(found.first), found.number)


async def _pages(store: LedgerStore, after: int) -> AsyncGenerator[LedgerPage]:
    """To the end: the last one is not full."""
    while True:
        page = await store.ledger_page(after, PAGE)
        yield page
        if len(page.rows) < PAGE:
            return
        after = page.rows[-1].seq


async def sign(
    store: LedgerStore, file: CheckpointFile, clock: Clock, *, anyway: bool = False
) -> Checkpoint | None:
    """A checkpoint of all rows there are. None if nothing happened since the last one, or somebody else has just
    made it. Refused if rows since then are not as they were written, unless somebody who knows wants it `anyway`.
    """
    last = await asyncio.to_thread(file.last)
    verifier = Verifier([file.key], begin=(last.seq, last.mac))
    happened, seq, mac = False, last.seq, last.mac
    async for page in _pages(store, last.seq):
        for row in page.rows:
            _refuse(verifier.look(row), anyway or _TOLD_BY_ROWS)
            happened = happened or row.kind != CHECKPOINT
            seq, mac = row.seq, row.mac
        if len(page.rows) < PAGE:
            _refuse(verifier.end(page.head), anyway or _NOT_OURS)
    if not happened:
        return None
    count = last.count + verifier.rows
    new = msgspec.structs.replace(BEFORE_ALL, seq=seq, mac=mac, count=count)
    signed = await asyncio.to_thread(file.append, new, clock.now(), behind=last)
    if signed is not None:  # told only now: what a row tells of is there
        deed = Deed(what=SIGNED, subject=Subject(CHECKPOINT, (signed.digest,)), after=file.place)
        await store.note(deed, by=Actor(ITSELF))
    return signed


_NOT_OURS = frozenset({Fault.UNKNOWN_KEY})
"""Rows of another process may be by a key that is not ours: what they are made of cannot be told here."""

_TOLD_BY_ROWS = _NOT_OURS | {Fault.BROKEN_SEAL}
"""A row that tells of a broken seal is sound itself, and worth to be held fast."""


def _refuse(findings: Iterable[LedgerFinding], let_pass: Literal[True] | frozenset[Fault]) -> None:
    for each in findings:
        if let_pass is not True and each.fault not in let_pass:
            raise Refused(f"no checkpoint was signed: {each.text}", remedy="run `redrive audit verify`")


async def keep_checkpoints(store: LedgerStore, file: CheckpointFile, clock: Clock) -> None:
    """Signs a checkpoint whenever one is due, until it is cancelled."""
    while True:
        try:
            if await _is_due(store, file, clock):
                await sign(store, file, clock)
        except RedriveError as error:
            log.error("no checkpoint of the ledger was signed", **error_facts(error))  # noqa: TRY400  no payloads
        await clock.sleep(_LOOK)


async def _is_due(store: LedgerStore, file: CheckpointFile, clock: Clock) -> bool:
    last = await asyncio.to_thread(file.last)
    head = (await store.ledger_page(last.seq, 1)).head
    waiting = 1 if head is None else head.seq - last.seq
    if waiting >= EVERY_ROWS or (waiting and not last.at):
        return True
    return bool(waiting) and abs((clock.now() - datetime.fromisoformat(last.at)).total_seconds()) >= EVERY
