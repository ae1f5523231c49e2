from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from redrive import (
    Drop,
    FailurePolicy,
    Message,
    Permanent,
    Retry,
    Status,
    Transient,
    execute_with_retry,
    exponential,
    fixed,
)
from redrive.control import RedriveTicket, stamp
from redrive.dead_letter import Actor, DeadLetter, Transition
from redrive.errors import Unreachable
from redrive.letter_query import LetterQuery
from redrive.stores import DeadLetterStore, open_store
from redrive.testing.clock import InstantClock

NOW = datetime(2026, 2, 28, tzinfo=UTC)
MESSAGE = Message.create(id="m-1", sent_at=NOW, queue="test-queue", data={"order_id": 1})
POLICY = FailurePolicy(Retry(5, exponential("5s", jitter="none")))


class Handling:
    """Fails with these errors, one per call, then succeeds."""

    def __init__(self, *errors: BaseException) -> None:
        self._errors = list(errors)
        self.seen: list[Message] = []

    @property
    def calls(self) -> int:
        return len(self.seen)

    async def __call__(self, message: Message) -> None:
        self.seen.append(message)
        if self._errors:
            raise self._errors.pop(0)


@pytest.fixture
def clock() -> InstantClock:
    return InstantClock(NOW)


@pytest.fixture
async def store(clock: InstantClock) -> AsyncIterator[DeadLetterStore]:
    opened = open_store("sqlite:///:memory:", clock=clock)
    yield opened
    await opened.close()


async def letters(store: DeadLetterStore) -> list[DeadLetter]:
    found = [await store.get(each.id) for each in await store.find(LetterQuery())]
    return [letter for letter in found if letter is not None]


async def only_letter(store: DeadLetterStore) -> DeadLetter:
    (letter,) = await letters(store)
    return letter


async def test_s2_message_retry_middleware_with_transient_failure_should_retry_and_succeed(
    clock: InstantClock,
) -> None:
    handling = Handling(TimeoutError("Temporary failure"), TimeoutError("Temporary failure"))
    success = await execute_with_retry(MESSAGE, handling, policy=POLICY, clock=clock)
    assert success is True
    assert handling.calls == 3
    assert clock.now() - NOW == timedelta(seconds=5 + 10)


async def test_s2_with_permanent_exception_should_send_immediately(
    clock: InstantClock, store: DeadLetterStore
) -> None:
    handling = Handling(*[ValueError("Invalid argument")] * 9)
    success = await execute_with_retry(
        MESSAGE, handling, policy=POLICY, store=store, clock=clock, handler_name="TestHandler"
    )
    letter = await only_letter(store)
    assert success is False
    assert handling.calls == 1
    assert clock.now() == NOW
    assert (letter.queue, letter.handler, letter.attempts) == ("test-queue", "TestHandler", 1)
    assert (letter.kind, letter.type, letter.text) == ("permanent", "ValueError", "Invalid argument")


async def test_success_at_once_touches_neither_clock_nor_store(
    clock: InstantClock, store: DeadLetterStore
) -> None:
    assert await execute_with_retry(MESSAGE, Handling(), policy=POLICY, store=store, clock=clock)
    assert await letters(store) == []
    assert clock.now() == NOW


async def test_s0_exhausted_attempts_are_all_kept_oldest_first(
    clock: InstantClock, store: DeadLetterStore
) -> None:
    handling = Handling(*(ConnectionError(f"attempt {n}") for n in range(1, 9)))
    policy = FailurePolicy(Retry(3, fixed("10s")))
    assert not await execute_with_retry(MESSAGE, handling, policy=policy, store=store, clock=clock)
    letter = await only_letter(store)
    assert handling.calls == 3
    assert [failure.text for failure in letter.failures] == ["attempt 1", "attempt 2", "attempt 3"]
    assert [failure.attempt for failure in letter.failures] == [1, 2, 3]
    assert [(failure.at - NOW).total_seconds() for failure in letter.failures] == [0, 10, 20]
    assert all("in Handling.__call__" in failure.trace for failure in letter.failures)
    assert letter.message.body == MESSAGE.body


async def test_without_a_store_the_last_error_is_raised_and_not_lost(clock: InstantClock) -> None:
    handling = Handling(TimeoutError("first"), TimeoutError("second"), ValueError("last"))
    with pytest.raises(ValueError, match="last"):
        await execute_with_retry(MESSAGE, handling, policy=POLICY, clock=clock)
    assert handling.calls == 3


async def test_a_store_that_is_away_is_told_to_the_caller(clock: InstantClock) -> None:
    gone = open_store("sqlite:////no-such-folder/at/all.db")
    with pytest.raises(Unreachable):
        await execute_with_retry(MESSAGE, Handling(Permanent()), policy=POLICY, store=gone, clock=clock)
    await gone.close()


async def test_a_handler_that_drops_the_message_is_done_with_it(
    clock: InstantClock, store: DeadLetterStore
) -> None:
    handling = Handling(TimeoutError(), Drop("seen before"))
    assert await execute_with_retry(MESSAGE, handling, policy=POLICY, store=store, clock=clock)
    assert handling.calls == 2
    assert await letters(store) == []


async def test_a_handler_may_say_when_to_try_again(clock: InstantClock) -> None:
    handling = Handling(Transient("busy", retry_after="42s"))
    assert await execute_with_retry(MESSAGE, handling, policy=POLICY, clock=clock)
    assert clock.now() - NOW == timedelta(seconds=42)


async def test_the_time_budget_ends_the_attempts(clock: InstantClock, store: DeadLetterStore) -> None:
    handling = Handling(*[TimeoutError()] * 99)
    policy = FailurePolicy(Retry(100, fixed("10s"), budget="35s"))
    assert not await execute_with_retry(MESSAGE, handling, policy=policy, store=store, clock=clock)
    assert handling.calls == 4


@pytest.mark.parametrize("answer", [None, 17, True, "done", [1]])
async def test_a_plain_handler_may_give_back_anything(answer: object) -> None:
    assert await execute_with_retry(MESSAGE, lambda _: answer)


async def test_a_plain_handler_that_fails_first_may_give_back_anything(clock: InstantClock) -> None:
    calls: list[Message] = []

    def handle(message: Message) -> int:
        calls.append(message)
        if len(calls) == 1:
            raise TimeoutError
        return 17

    assert await execute_with_retry(MESSAGE, handle, policy=POLICY, clock=clock)
    assert calls == [MESSAGE, MESSAGE]


async def test_a_plain_handler_around_an_async_one_is_awaited() -> None:
    handling = Handling()
    assert await execute_with_retry(MESSAGE, lambda message: handling(message))  # noqa: PLW0108  the case
    assert handling.calls == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
async def test_what_is_no_failure_passes_through(error: type[BaseException], store: DeadLetterStore) -> None:
    with pytest.raises(error):
        await execute_with_retry(MESSAGE, Handling(error()), store=store)
    assert await letters(store) == []


async def test_the_same_message_failing_again_is_the_same_letter(
    clock: InstantClock, store: DeadLetterStore
) -> None:
    for _ in range(2):
        await execute_with_retry(MESSAGE, Handling(Permanent()), store=store, clock=clock, handler_name="h")
        clock.advance(60)
    assert (await only_letter(store)).deliveries == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("orders", "eu:1", "h"), ("orders:eu", "1", "h")),
        (("orders", "1/h", "g"), ("orders", "1", "h/g")),
        (("1:orders", "1", "h"), ("orders", "1:1", "h")),
    ],
)
async def test_two_messages_are_two_letters_whatever_their_ids_and_queues_are(
    one: tuple[str, str, str], other: tuple[str, str, str], clock: InstantClock, store: DeadLetterStore
) -> None:
    for queue, id_, handler in (one, other):
        message = Message(id=id_, queue=queue, body=b"x", sent_at=NOW)
        await execute_with_retry(message, Handling(Permanent()), store=store, clock=clock, handler_name=handler)
    assert len(await letters(store)) == 2


async def redriven(store: DeadLetterStore, clock: InstantClock, handler_name: str = "h") -> Message:
    """A message that failed, was put back, and carries the ticket of that."""
    await execute_with_retry(
        MESSAGE, Handling(Permanent("1")), store=store, clock=clock, handler_name=handler_name
    )
    (claim,) = await store.claim([(await only_letter(store)).id], owner="test", lease=60)
    assert await store.settle(claim, Transition.SENT, by=Actor("test"))
    return claim.message.with_headers(stamp(claim.message.headers, claim.ticket, await store.signing_key()))


async def test_a_redriven_message_that_succeeds_confirms_its_letter(
    clock: InstantClock, store: DeadLetterStore
) -> None:
    message = await redriven(store, clock)
    assert await execute_with_retry(message, Handling(), store=store, clock=clock, handler_name="h")
    letter = await only_letter(store)
    assert (letter.status, letter.how) == (Status.RESOLVED, "confirmed")


async def test_a_redriven_message_that_succeeds_later_confirms_its_letter(
    clock: InstantClock, store: DeadLetterStore
) -> None:
    message = await redriven(store, clock)
    handling = Handling(TimeoutError())
    assert await execute_with_retry(message, handling, policy=POLICY, store=store, clock=clock)
    assert (await only_letter(store)).status is Status.RESOLVED


async def test_a_redriven_message_that_fails_again_is_pending_again_with_both_chapters(
    clock: InstantClock, store: DeadLetterStore
) -> None:
    message = await redriven(store, clock)
    assert not await execute_with_retry(
        message, Handling(Permanent("2")), store=store, clock=clock, handler_name="h"
    )
    letter = await only_letter(store)
    assert letter.status is Status.PENDING
    assert [failure.text for failure in letter.failures] == ["1", "2"]
    assert letter.message.headers == ()


@pytest.mark.parametrize("outcome", [Handling, lambda: Handling(Permanent())], ids=["succeeds", "fails"])
async def test_a_forged_ticket_changes_no_letter(
    outcome: Callable[[], Any], clock: InstantClock, store: DeadLetterStore
) -> None:
    await redriven(store, clock)
    letter = await only_letter(store)
    ticket = RedriveTicket("made up", letter.id, letter.generation, "test-queue")
    forged = Message(
        id="other", queue="test-queue", body=b"x", sent_at=NOW, headers=stamp((), ticket, b"not the key")
    )
    await execute_with_retry(forged, outcome(), store=store, clock=clock)
    unchanged = await store.get(letter.id)
    assert unchanged is not None
    assert unchanged.status is Status.REDRIVEN


async def test_a_producer_that_uses_one_id_twice_hides_no_message_th6() -> None:
    store = open_store("sqlite:///:memory:")

    async def fail(_: Message) -> None:
        raise ValueError("no")

    for data in (1, 2):
        message = Message.create(id="same", sent_at=NOW, queue="orders", data=data)
        assert not await execute_with_retry(message, fail, store=store)
        assert not await execute_with_retry(message, fail, store=store)
    letters = await store.find(LetterQuery())
    await store.close()
    assert len(letters) == 2
