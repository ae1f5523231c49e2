"""Runs and their letters, for tests that need some and not their details."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from redrive.dead_letter import Actor, Transition
from redrive.letter_query import LetterQuery
from redrive.run import Approval, RunPlan, Settled
from redrive.testing.letters import NOON, an_entry
from redrive.testing.store_case import ENGINE, LEASE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from redrive.dead_letter import Claim
    from redrive.message import Message
    from redrive.run import Taken
    from redrive.stores import RunStore

BOB = Actor("bob", "fixed it")


def a_plan(**selection: Any) -> RunPlan:
    """Any field of a LetterQuery may be given."""
    return RunPlan(selection=LetterQuery(**selection))


def of_ids(*ids: str, **selection: Any) -> RunPlan:
    return a_plan(ids=ids, **selection)


def an_approval(plan: RunPlan, count: int) -> Approval:
    """Of what was shown at noon, good for an hour."""
    return Approval(digest=plan.digest(count), expires_at=NOON + timedelta(hours=1), why="many letters")


async def recorded(
    store: RunStore,
    number: int,
    *,
    at: datetime = NOON - timedelta(hours=1),
    messages: Sequence[Message] | None = None,
    **given: Any,
) -> list[str]:
    """The ids of new letters, the oldest first, a second apart."""
    entries = [
        an_entry(at=at + timedelta(seconds=place), message=None if messages is None else messages[place], **given)
        for place in range(number)
    ]
    return [letter_id for letter_id, _ in await store.record_together(entries)]


async def running(store: RunStore, plan: RunPlan | None = None) -> str:
    """The id of a run that Bob has asked for."""
    return (await store.create_run(plan or a_plan(), by=BOB)).id


async def take(store: RunStore, run_id: str, at_most: int = 100, *, owner: str = "engine") -> Taken:
    return await store.take(run_id, owner=owner, at_most=at_most, lease=LEASE)


async def every_claim(store: RunStore, run_id: str, at_most: int = 100) -> list[Claim]:
    """All that this one gets, until there is nothing more to take."""
    claims: list[Claim] = []
    while taken := (await take(store, run_id, at_most)).claims:
        claims += taken
    return claims


async def send(store: RunStore, claims: Iterable[Claim]) -> int:
    """How many of them are marked as sent."""
    return await store.settle_together([Settled(claim, Transition.SENT) for claim in claims], by=ENGINE)
