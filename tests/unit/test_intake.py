"""The one writer of a process: who shares a transaction, who is answered when, and whose error it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from redrive.dead_letter import Entry, Recorded
from redrive.errors import RedriveError, Unreachable
from redrive.stores import postgres_intake
from redrive.stores.postgres_intake import Intake
from redrive.testing.letters import a_message, an_entry

Answer = tuple[str, Recorded]


class Server:
    """Keeps batches; holds each until `commit` is called, if told to, and refuses what it is told to refuse."""

    def __init__(self, *, held: bool = False) -> None:
        self.batches: list[list[str]] = []
        self.refused: dict[str, Exception] = {}
        self._held = held
        self._commits: asyncio.Queue[None] = asyncio.Queue()

    async def record_all(self, entries: Sequence[Entry]) -> list[Answer]:
        identities = [entry.identity for entry in entries]
        self.batches.append(identities)
        if self._held:
            await self._commits.get()
        for identity in identities:
            if identity in self.refused:
                raise self.refused[identity]
        return [(identity, Recorded.NEW) for identity in identities]

    def commit(self) -> None:
        self._commits.put_nowait(None)


async def settled() -> None:
    """Everything that can go on without a commit has done so."""
    for _ in range(10):
        await asyncio.sleep(0)


def handed_in(intake: Intake, *identities: str) -> list[asyncio.Task[Answer]]:
    return [asyncio.create_task(intake.record(an_entry(identity))) for identity in identities]


def entries(*identities: str) -> list[Entry]:
    return [an_entry(identity) for identity in identities]


async def test_nobody_is_answered_before_the_commit() -> None:
    server = Server(held=True)
    intake = Intake(server.record_all)
    [task] = handed_in(intake, "a")
    await settled()

    assert not task.done()
    server.commit()
    assert await task == ("a", Recorded.NEW)
    await intake.close()


async def test_those_who_come_together_share_a_transaction_and_get_each_their_own_answer() -> None:
    server = Server()
    intake = Intake(server.record_all)

    answers = await asyncio.gather(*handed_in(intake, "a", "b", "c"))

    assert server.batches == [["a", "b", "c"]]
    assert [identity for identity, _ in answers] == ["a", "b", "c"]
    await intake.close()


async def test_those_who_come_while_a_transaction_is_under_way_share_the_next() -> None:
    server = Server(held=True)
    intake = Intake(server.record_all)
    first = handed_in(intake, "a")
    await settled()
    rest = handed_in(intake, "b", "c")
    await settled()

    server.commit()
    server.commit()
    await asyncio.gather(*first, *rest)

    assert server.batches == [["a"], ["b", "c"]]
    await intake.close()


async def test_one_after_the_other_each_is_answered() -> None:
    server = Server()
    intake = Intake(server.record_all)

    for number in range(5):
        assert await intake.record(an_entry(str(number))) == (str(number), Recorded.NEW)

    await intake.close()


async def test_a_batch_is_bounded_by_number_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_intake, "MOST_LETTERS", 3)
    monkeypatch.setattr(postgres_intake, "MOST_BYTES", 100)
    server = Server()
    intake = Intake(server.record_all)

    await asyncio.gather(*handed_in(intake, "a", "b", "c", "d"))
    large = [
        an_entry(name, message=a_message(body=b"x" * size))
        for name, size in zip("efg", (60, 60, 500), strict=True)
    ]
    await asyncio.gather(*map(intake.record, large))

    assert server.batches == [["a", "b", "c"], ["d"], ["e"], ["f"], ["g"]]
    await intake.close()


async def test_a_letter_that_is_refused_is_the_error_of_its_own_caller_only() -> None:
    server = Server()
    server.refused["c"] = RedriveError("not this one")
    intake = Intake(server.record_all)

    answers = await asyncio.gather(*handed_in(intake, *"abcdefg"), return_exceptions=True)

    kept = [(identity, Recorded.NEW) for identity in "abdefg"]
    assert answers == [*kept[:2], server.refused["c"], *kept[2:]]
    await intake.close()


async def test_what_is_handed_in_together_shares_one_transaction_with_others_and_keeps_its_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_intake, "MOST_LETTERS", 4)
    server = Server()
    intake = Intake(server.record_all)
    first, second, large = ("a", "b", "c"), ("d", "e"), ("f", "g", "h", "i", "j")

    answers = await asyncio.gather(*(intake.record_together(entries(*each)) for each in (first, second, large)))

    assert server.batches == [["a", "b", "c"], ["d", "e"], [*large]]
    assert [[identity for identity, _ in each] for each in answers] == [[*first], [*second], [*large]]
    alone, together = await asyncio.gather(intake.record(an_entry("k")), intake.record_together(entries("l", "m")))
    assert server.batches[-1] == ["k", "l", "m"]
    assert (alone, [identity for identity, _ in together]) == (("k", Recorded.NEW), ["l", "m"])
    await intake.close()


async def test_what_is_handed_in_together_is_refused_together_and_alone() -> None:
    server = Server()
    server.refused["c"] = RedriveError("not this one")
    intake = Intake(server.record_all)

    answers = await asyncio.gather(
        intake.record_together(entries("a", "b")),
        intake.record_together(entries("c", "d")),
        intake.record(an_entry("e")),
        return_exceptions=True,
    )

    assert list(answers) == [[("a", Recorded.NEW), ("b", Recorded.NEW)], server.refused["c"], ("e", Recorded.NEW)]
    assert not any(batch == ["d"] for batch in server.batches)
    await intake.close()


async def test_many_that_come_together_are_worth_a_second_lane() -> None:
    server = Server(held=True)
    intake = Intake(server.record_all)
    several = [entries(*(f"{name}{number}" for number in range(300))) for name in "ab"]

    tasks = [asyncio.create_task(intake.record_together(each)) for each in several]
    await settled()

    assert [len(batch) for batch in server.batches] == [300, 300]
    server.commit()
    server.commit()
    await asyncio.gather(*tasks)
    await intake.close()


async def test_what_is_under_way_already_opens_no_lane_for_the_next() -> None:
    server = Server(held=True)
    intake = Intake(server.record_all)
    first = asyncio.create_task(intake.record_together(entries(*map(str, range(150)))))
    await settled()
    [second] = handed_in(intake, "next")
    await settled()

    assert len(server.batches) == 1
    server.commit()
    server.commit()
    await asyncio.gather(first, second)
    await intake.close()


async def test_a_store_that_is_away_is_asked_once_for_all_who_wait() -> None:
    server = Server()
    server.refused["a"] = Unreachable("away")
    intake = Intake(server.record_all)

    answers = await asyncio.gather(*handed_in(intake, *"abcdefg"), return_exceptions=True)

    assert answers == [server.refused["a"]] * 7
    assert len(server.batches) == 1
    await intake.close()


async def test_a_caller_who_has_gone_holds_nobody_up_and_its_letter_is_recorded() -> None:
    server = Server(held=True)
    intake = Intake(server.record_all)
    gone, other = handed_in(intake, "a", "b")
    await settled()
    gone.cancel()

    server.commit()

    assert await other == ("b", Recorded.NEW)
    assert server.batches == [["a", "b"]]
    await intake.close()


async def test_very_many_open_a_second_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_intake, "MOST_LETTERS", 100)
    server = Server(held=True)
    intake = Intake(server.record_all)

    tasks = handed_in(intake, *map(str, range(250)))
    await settled()

    assert [len(batch) for batch in server.batches] == [100, 100]
    for _ in range(3):
        server.commit()
    await asyncio.gather(*tasks)
    assert sum(len(batch) for batch in server.batches) == 250
    await intake.close()


async def test_close_waits_for_what_was_handed_in_and_takes_no_more() -> None:
    server = Server(held=True)
    intake = Intake(server.record_all)
    [task] = handed_in(intake, "a")
    await settled()
    closing = asyncio.create_task(intake.close())
    await settled()

    assert not closing.done()
    server.commit()
    await closing
    assert task.done()
    with pytest.raises(Unreachable):
        await intake.record(an_entry("b"))
