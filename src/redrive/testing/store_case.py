"""What every part of the store's contract stands on: the driver's two answers, and letters in every status."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pytest

from redrive.dead_letter import Actor, Claim, DeadLetter, Status, Transition
from redrive.testing.clock import ManualClock
from redrive.testing.letters import NOON, an_entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from redrive.clock import Clock
    from redrive.dead_letter import Entry, FailureGroup
    from redrive.statistics import Statistics
    from redrive.stores import DeadLetterStore

ANN = Actor("ann", "because")
ENGINE = Actor("engine", "")
LEASE = 60.0


class StoreCase:
    """A driver answers `location` and `open`, declares what it cannot do, and overrides nothing else."""

    shared: ClassVar[bool] = True
    """Whether two stores opened at one location are one store."""

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        """Where a new, empty store is."""
        raise NotImplementedError

    def open(self, location: str, clock: Clock) -> DeadLetterStore:
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock(NOON)

    @pytest.fixture
    async def store(self, location: str, clock: ManualClock) -> AsyncIterator[DeadLetterStore]:
        opened = self.open(location, clock)
        yield opened
        await opened.close()

    @pytest.fixture
    async def other(
        self, store: DeadLetterStore, location: str, clock: ManualClock
    ) -> AsyncIterator[DeadLetterStore]:
        """A second store at the same location, where there is such a thing; else the same one."""
        if not self.shared:
            yield store
            return
        opened = self.open(location, clock)
        yield opened
        await opened.close()


class Placed(NamedTuple):
    """A letter, and a claim of it that was made on the way to its status."""

    id: str
    claim: Claim


async def place(store: DeadLetterStore, status: Status, entry: Entry | None = None) -> Placed:
    """A letter brought into that status by the store's own methods."""
    letter_id, _ = await store.record(entry or an_entry())
    claim = await claimed(store, letter_id)
    if status is Status.REDRIVING:
        return Placed(letter_id, claim)
    sent = status in {Status.REDRIVEN, Status.RESOLVED}
    assert await store.settle(claim, Transition.SENT if sent else Transition.UNCLAIM, by=ENGINE)
    by_hand = {
        Status.RESOLVED: Transition.RESOLVE,
        Status.DISCARDED: Transition.DISCARD,
        Status.QUARANTINED: Transition.QUARANTINE,
    }
    if status in by_hand:
        assert await store.change([letter_id], by_hand[status], by=ANN) == {}
    assert (await letter(store, letter_id)).status is status
    return Placed(letter_id, claim)


async def claimed(store: DeadLetterStore, letter_id: str, owner: str = "engine") -> Claim:
    [claim] = await store.claim([letter_id], owner=owner, lease=LEASE)
    return claim


async def sent(store: DeadLetterStore, letter_id: str) -> Claim:
    """The letter is REDRIVEN."""
    claim = await claimed(store, letter_id)
    assert await store.settle(claim, Transition.SENT, by=ENGINE)
    return claim


def returned(claim: Claim, **given: object) -> Entry:
    """The entry of a redriven message that failed again, as a consumer makes it."""
    return an_entry(message=claim.message, ticket=claim.ticket, **given)  # type: ignore[arg-type]  # an_entry's own


async def letter(store: DeadLetterStore, letter_id: str) -> DeadLetter:
    found = await store.get(letter_id)
    assert found is not None
    return found


class State(NamedTuple):
    """Everything a store shows about its one letter and the rest."""

    letter: DeadLetter | None
    groups: list[FailureGroup]
    statistics: Statistics


async def state(store: DeadLetterStore, letter_id: str) -> State:
    return State(await store.get(letter_id), await store.groups(), await store.statistics())
