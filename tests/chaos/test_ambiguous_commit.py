"""F11: the server has committed, and whoever asked never hears of it. Whatever is repeated then changes nothing:
letters, failures, deliveries, counters, history.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from chaos.lab import places
from chaos.lab.killing import kill
from chaos.lab.proxy import Proxy
from chaos.lab.rows import rows
from chaos.lab.scenarios import StoreBack
from chaos.lab.snapshot import snapshot
from chaos.lab.supervisor import Experiment
from redrive.dead_letter import Recorded, Status, Transition, Verdict
from redrive.errors import Refused, Undecided, Unreachable
from redrive.stores import DeadLetterStore
from redrive.stores.postgres import PostgresStore
from redrive.tally import Tally
from redrive.testing.letters import a_group, a_message, an_entry
from redrive.testing.store_case import ANN, ENGINE, LEASE, Placed, letter, place, returned, sent

KILLS = 5


@pytest.fixture
def proxy(postgres_store_url: str) -> Iterator[Proxy]:
    with Proxy(postgres_store_url) as between:
        yield between


@pytest.fixture
async def store(proxy: Proxy) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(proxy.url)
    await opened.signing_key()
    yield opened
    await opened.close()


async def cut_off(proxy: Proxy, work: Awaitable[Any]) -> None:
    """Committed, and its caller is told that nobody knows."""
    proxy.cut_commits()
    before = proxy.cuts
    with pytest.raises(Unreachable):
        await work
    assert proxy.cuts == before + 1


# Recording


async def test_a_letter_whose_commit_was_not_answered_is_there_once_when_it_is_recorded_again(
    store: PostgresStore, proxy: Proxy, postgres_store_url: str
) -> None:
    entry = an_entry("it", attempts=3)
    await cut_off(proxy, store.record(entry))
    committed = snapshot(postgres_store_url)
    assert [len(committed[table]) for table in ("letters", "failures")] == [1, 3]

    assert (await store.record(entry))[1] is Recorded.AGAIN

    assert snapshot(postgres_store_url) == committed


async def test_a_batch_whose_commit_was_not_answered_is_there_once_when_each_is_recorded_again(
    store: PostgresStore, proxy: Proxy, postgres_store_url: str
) -> None:
    entries = [an_entry(str(number), group=f"cause {number % 3}", attempts=2) for number in range(60)]
    proxy.cut_commits()
    told = await asyncio.gather(*map(store.record, entries), return_exceptions=True)
    assert {type(each) for each in told} == {Undecided}
    committed = snapshot(postgres_store_url)
    assert len(committed["letters"]) == 60

    answers = await asyncio.gather(*map(store.record, [*entries, *reversed(entries)]))

    assert {how for _, how in answers} == {Recorded.AGAIN}
    assert snapshot(postgres_store_url) == committed
    assert places.contradictions(postgres_store_url) == []


async def test_a_letter_that_came_back_is_a_generation_older_once(
    store: PostgresStore, proxy: Proxy, postgres_store_url: str
) -> None:
    letter_id, _ = await store.record(an_entry())
    back = returned(await sent(store, letter_id))
    await cut_off(proxy, store.record(back))
    committed = snapshot(postgres_store_url)

    await store.record(back)

    assert (await letter(store, letter_id)).generation == 2
    assert snapshot(postgres_store_url) == committed


@pytest.mark.parametrize("step", range(0, 4000, 130))
async def test_cut_off_anywhere_a_letter_is_there_once_when_it_is_recorded_again(
    step: int, store: PostgresStore, proxy: Proxy, postgres_store_url: str
) -> None:
    """Before the COMMIT, in its middle, or after it: as many bytes of the conversation arrive as the step says."""
    entry = an_entry("it", attempts=2)
    proxy.cut_after(step)
    with suppress(Unreachable):
        await store.record(entry)
    proxy.cut_after(1 << 30)

    letter_id, _ = await store.record(entry)

    found = await letter(store, letter_id)
    assert (found.deliveries, len(found.failures)) == (1, 2)
    assert len(snapshot(postgres_store_url)["letters"]) == 1
    assert places.contradictions(postgres_store_url) == []


@pytest.mark.parametrize("step", [1, 300, 900])
async def test_of_a_connection_that_breaks_before_the_commit_nobody_hears(
    step: int, store: PostgresStore, proxy: Proxy
) -> None:
    await store.record(an_entry())  # every statement is known to the server
    proxy.cut_after(step)

    assert (await store.record(an_entry("it", attempts=2)))[1] is Recorded.NEW

    assert proxy.cuts == 1


# Everything else that changes letters

Deed = Callable[[DeadLetterStore, Placed], Awaitable[Any]]


async def claim(store: DeadLetterStore, on: Placed) -> None:
    await store.claim([on.id], owner="engine", lease=LEASE)


async def mark(store: DeadLetterStore, on: Placed) -> None:
    await store.settle(on.claim, Transition.SENT, by=ENGINE)


async def refuse(store: DeadLetterStore, on: Placed) -> None:
    await store.settle(on.claim, Transition.REFUSED, by=ENGINE)


async def confirm(store: DeadLetterStore, on: Placed) -> None:
    await store.confirm(on.claim.ticket, by=ANN)


async def discard(store: DeadLetterStore, on: Placed) -> None:
    await store.change([on.id], Transition.DISCARD, by=ANN)


async def revise(store: DeadLetterStore, on: Placed) -> None:
    with suppress(Refused):  # the second time: its base is no longer the current revision
        await store.revise(on.id, msgspec.structs.replace(a_message(), body=b"mended"), base=0, by=ANN)


async def purge(store: DeadLetterStore, on: Placed) -> None:
    await store.purge([on.id], by=ANN)


async def annotate(store: DeadLetterStore, on: Placed) -> None:
    group_id = (await letter(store, on.id)).group_id
    await store.annotate(group_id, owner="ann", verdict=Verdict.REPLAYABLE, by=ANN)


async def merge(store: DeadLetterStore, _on: Placed) -> None:
    await store.merge(a_group("another").id, [a_group().id], by=ANN)


async def index(store: DeadLetterStore, _on: Placed) -> None:
    await store.index(at_most=1000)


DEEDS: dict[Deed, Status] = {
    claim: Status.PENDING,
    mark: Status.REDRIVING,
    refuse: Status.REDRIVING,
    confirm: Status.REDRIVING,
    discard: Status.PENDING,
    revise: Status.PENDING,
    purge: Status.DISCARDED,
    annotate: Status.PENDING,
    index: Status.PENDING,
}


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)
async def test_what_was_done_and_not_answered_changes_nothing_when_it_is_done_again(
    deed: Deed, store: PostgresStore, proxy: Proxy, postgres_store_url: str
) -> None:
    placed = await place(store, DEEDS[deed])
    before = snapshot(postgres_store_url)
    await cut_off(proxy, deed(store, placed))
    committed = snapshot(postgres_store_url)
    assert committed != before

    await deed(store, placed)

    assert snapshot(postgres_store_url) == committed
    assert places.contradictions(postgres_store_url) == []


@pytest.mark.parametrize("transaction", range(1, 6))
async def test_a_merge_of_which_one_transaction_was_not_answered_is_completed_when_it_is_done_again(
    transaction: int, store: PostgresStore, proxy: Proxy, postgres_store_url: str
) -> None:
    for name in ("no customer", "another"):
        for _ in range(5):
            await store.record(an_entry(group=name))
    commits, write = 0, store._write

    async def counted(unit: Any) -> Any:
        nonlocal commits
        commits += 1
        if commits == transaction:
            proxy.cut_commits()
        return await write(unit)

    with pytest.MonkeyPatch.context() as planted, suppress(Unreachable):
        planted.setattr(store, "_write", counted)
        await merge(store, await place(store, Status.PENDING))
    proxy.cut_commits(0)

    await merge(store, await place(store, Status.PENDING))

    group = await store.group(a_group().id)
    assert group is not None
    assert (group.id, group.total) == (
        a_group("another").id,
        len(rows(postgres_store_url, "SELECT 1 FROM letters")),
    )
    assert places.contradictions(postgres_store_url) == []


async def test_two_processes_make_one_signing_key_though_the_first_was_not_answered(
    proxy: Proxy, postgres_store_url: str
) -> None:
    one, other = PostgresStore(proxy.url), PostgresStore(postgres_store_url)
    await cut_off(proxy, one.signing_key())

    assert await other.signing_key() == await one.signing_key()

    await one.close()
    await other.close()


# A process that dies instead


def test_a_spool_replayed_by_processes_that_die_after_each_commit_counts_each_letter_once(
    experiment: Callable[..., Experiment],
) -> None:
    lab, play = experiment(store="postgresql"), StoreBack(lots=20)

    kill(lab, play, "store.after_commit", KILLS)

    assert lab.problems(play.in_flight) == []
    told = "SELECT deliveries, (SELECT count(*) FROM failures WHERE letter_id = letters.id) FROM letters"
    assert set(rows(lab.premises.letters, told)) == {(1, 1)}


# Counting attempts: the one thing that cannot be repeated


async def test_attempts_whose_commit_was_not_answered_are_not_counted_twice(
    store: PostgresStore, proxy: Proxy
) -> None:
    tally = Tally()
    tally.of("charge", "orders").count_success(0.0)
    await cut_off(proxy, tally.flush(store))

    await tally.flush(store)

    assert [rate.succeeded for rate in (await store.statistics()).failure_rates] == [1]
