"""Ten at a time, and everybody is told of their own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from redrive.errors import Unreachable
from redrive.transports.sqs.batches import Batches
from redrive.transports.sqs.refusals import SqsRefusal
from support.patience import until


class Queue:
    """Answers as SQS does: entries named `bad` fail, `busy` ones fail at SQS, `silent` ones are not answered."""

    def __init__(self, **options: Any) -> None:
        self.requests: list[list[str]] = []
        self.under_way = self.most_under_way = 0
        self.batches = Batches(self._answer, **options)

    async def _answer(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        self.requests.append([entry["name"] for entry in entries])
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if any(entry["name"] == "cut" for entry in entries):
            raise Unreachable("gone")
        told = {entry["Id"]: entry["name"] for entry in entries}
        return {
            "Successful": [{"Id": each} for each, name in told.items() if name not in {"bad", "busy", "silent"}],
            "Failed": [
                {"Id": each, "Code": "InvalidMessageContents", "SenderFault": name == "bad"}
                for each, name in told.items()
                if name in {"bad", "busy"}
            ],
        }

    async def add(self, *names: str, size: int = 0) -> list[Any]:
        every = (self.batches.add({"name": name}, size=size) for name in names)
        return await asyncio.gather(*every, return_exceptions=True)


async def test_what_is_asked_for_together_goes_together_ten_at_a_time() -> None:
    queue = Queue()
    assert await queue.add(*map(str, range(25))) == [None] * 25
    assert [len(each) for each in queue.requests] == [10, 10, 5]


async def test_no_batch_is_larger_than_sqs_takes() -> None:
    queue = Queue()
    await queue.add("a", "b", "c", size=2**19)
    assert queue.requests == [["a", "b"], ["c"]]
    await queue.add("d", size=2**20)
    assert queue.requests[-1] == ["d"]


async def test_an_entry_that_fails_fails_alone() -> None:
    queue = Queue()
    fine, bad, busy, silent, also_fine = await queue.add("a", "bad", "busy", "silent", "b")
    assert (fine, also_fine, len(queue.requests)) == (None, None, 1)
    assert isinstance(bad, SqsRefusal)
    assert bad.code == "InvalidMessageContents"
    assert isinstance(busy, Unreachable)
    assert isinstance(silent, Unreachable)


async def test_a_batch_that_fails_is_told_to_all_who_are_in_it() -> None:
    queue = Queue()
    answers = await queue.add("a", "cut", "b")
    assert [type(each) for each in answers] == [Unreachable] * 3
    assert await queue.add("a") == [None]


async def test_who_no_longer_waits_keeps_nobody_from_being_told() -> None:
    queue = Queue()
    impatient = asyncio.create_task(queue.batches.add({"name": "a"}))
    await asyncio.sleep(0)
    patient = asyncio.create_task(queue.batches.add({"name": "b"}))
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    await patient
    assert [name for request in queue.requests for name in request] == ["a", "b"]


async def test_finished_waits_for_what_is_under_way() -> None:
    queue = Queue()
    asked = asyncio.create_task(queue.batches.add({"name": "a"}))
    while not queue.requests:
        await asyncio.sleep(0)
    await queue.batches.finished()
    await asked


async def test_what_is_not_full_waits_for_an_answer_and_goes_together() -> None:
    queue, answered = Queue(), asyncio.Event()
    answer = queue.batches._request

    async def slow(entries: list[dict[str, Any]]) -> dict[str, Any]:
        told = await answer(entries)
        await answered.wait()
        return told

    queue.batches._request = slow
    first = asyncio.create_task(queue.add("a"))
    await until(lambda: queue.requests)
    others = [asyncio.create_task(queue.add(name)) for name in "bc"]
    await asyncio.sleep(0)
    answered.set()
    await asyncio.gather(first, *others)

    assert queue.requests == [["a"], ["b", "c"]]


async def test_a_full_batch_waits_for_nobody_and_the_rest_not_for_ever() -> None:
    queue = Queue()
    answer = queue.batches._request

    async def never_the_first(entries: list[dict[str, Any]]) -> dict[str, Any]:
        told = await answer(entries)
        if entries[0]["name"] == "silent":
            await asyncio.Event().wait()
        return told

    queue.batches._request = never_the_first
    stuck = asyncio.create_task(queue.add("silent"))
    await until(lambda: queue.requests)

    assert await queue.add(*map(str, range(12))) == [None] * 12
    assert [len(each) for each in queue.requests] == [1, 10, 2]
    stuck.cancel()


@pytest.mark.parametrize("at_once", [1, 3])
async def test_no_more_requests_are_under_way_than_may_be_and_they_begin_in_order(at_once: int) -> None:
    queue = Queue(at_once=at_once)
    names = [str(number) for number in range(45)]
    assert await queue.add(*names) == [None] * 45
    assert [name for request in queue.requests for name in request] == names
    assert queue.most_under_way == at_once
