from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from redrive.breaker import Breaker, BreakerState
from redrive.consumer import Consumer, ConsumerOptions
from redrive.failure import FailureKind, Host, capture
from redrive.message import Message
from redrive.testing.clock import InstantClock
from redrive.transports import Delivery, Names, open_transport


def failing(
    breaker: Breaker, count: int, *, kind: str = "TimeoutError", first: int = 0, now: float = 0.0
) -> list[bool]:
    return [breaker.failed(kind, f"message-{first + n}", now) for n in range(count)]


def opened(failures: int = 3, pause: float = 30.0, now: float = 0.0) -> Breaker:
    breaker = Breaker(failures=failures, pause=pause)
    failing(breaker, failures, now=now)
    assert breaker.state is BreakerState.OPEN
    return breaker


def test_it_opens_after_so_many_distinct_messages_of_one_type_and_says_so_once() -> None:
    breaker = Breaker(failures=3, pause=30)
    assert failing(breaker, 5) == [False, False, True, False, False]
    assert breaker.state is BreakerState.OPEN


def test_one_message_that_fails_again_and_again_does_not_open_it() -> None:
    breaker = Breaker(failures=3, pause=30)
    assert not any(breaker.failed("TimeoutError", "the same", 0) for _ in range(100))
    assert breaker.state is BreakerState.CLOSED


def test_another_type_starts_the_count_again() -> None:
    breaker = Breaker(failures=3, pause=30)
    failing(breaker, 2)
    assert failing(breaker, 2, kind="ConnectionError", first=10) == [False, False]
    assert failing(breaker, 2, first=20) == [False, False]
    assert breaker.state is BreakerState.CLOSED
    assert failing(breaker, 1, first=30) == [True]


def test_one_success_starts_the_count_again() -> None:
    breaker = Breaker(failures=3, pause=30)
    failing(breaker, 2)
    breaker.succeeded()
    assert failing(breaker, 2, first=10) == [False, False]
    assert breaker.state is BreakerState.CLOSED


def consumer(failures: int) -> Consumer:
    """For its counting alone: nothing moves messages."""
    missing: Any = None
    return Consumer(
        "orders",
        transport=open_transport("embedded:///:memory:", names=Names()),
        attempts=missing,
        settling=missing,
        suspects=missing,
        options=ConsumerOptions(breaker_failures=failures),
        clock=InstantClock(),
    )


def count(counting: Consumer, error: Exception, kind: FailureKind, identity: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    message = Message(id=identity, queue="orders", body=b"", sent_at=now)
    delivery = Delivery(
        message=message,
        queue="orders",
        identity=identity,
        attempt=1,
        redelivered=False,
        first_attempt_at=None,
        trail=None,
        receipt=None,
    )
    counting._count(capture(error, attempt=1, at=now, kind=kind, handler="h", host=Host()), delivery)


def test_permanent_failures_do_not_open_it() -> None:
    counting = consumer(failures=3)
    for number in range(100):
        count(counting, ValueError("bad"), FailureKind.PERMANENT, f"message-{number}")
        count(counting, MemoryError(), FailureKind.CRITICAL, f"other-{number}")
    assert counting.breaker.state is BreakerState.CLOSED


def test_permanent_failures_do_not_start_the_count_again() -> None:
    counting = consumer(failures=3)
    for number in range(3):
        count(counting, TimeoutError(), FailureKind.TRANSIENT, f"message-{number}")
        count(counting, ValueError("bad"), FailureKind.PERMANENT, f"bad-{number}")
    assert counting.breaker.state is BreakerState.OPEN


def test_closed_it_never_makes_anybody_wait() -> None:
    breaker = Breaker(failures=3, pause=30)
    failing(breaker, 2)
    assert breaker.remaining(0) == 0


def test_open_it_waits_for_the_pause_and_not_below_zero() -> None:
    breaker = opened(now=100)
    assert breaker.remaining(100) == 30
    assert breaker.remaining(115) == 15
    assert breaker.remaining(130) == 0
    assert breaker.remaining(1000) == 0


def test_it_holds_messages_up_while_it_is_open_and_a_pause_longer_for_one_to_come_and_be_tried() -> None:
    assert not Breaker(failures=3, pause=30).holds_up(0)
    breaker = opened(now=100)
    assert [breaker.holds_up(now) for now in (100, 130, 159, 160)] == [True, True, True, False]
    breaker.probe()
    breaker.failed("TimeoutError", "it came at last", 500)
    assert [breaker.holds_up(now) for now in (500, 589, 590)] == [True, True, False]
    breaker.probe()
    breaker.succeeded()
    assert not breaker.holds_up(590)


def test_a_probe_that_succeeds_closes_it() -> None:
    breaker = opened()
    breaker.probe()
    assert breaker.remaining(0) == 30
    breaker.succeeded()
    assert breaker.state is BreakerState.CLOSED
    assert breaker.remaining(0) == 0


def test_a_probe_that_fails_opens_it_for_twice_as_long_up_to_ten_times_the_pause() -> None:
    breaker, now, pauses = opened(pause=30), 0.0, []
    for probe in range(7):
        now += breaker.remaining(now)
        breaker.probe()
        assert breaker.failed("AnythingElse", f"probe-{probe}", now)
        assert breaker.state is BreakerState.OPEN
        pauses.append(breaker.remaining(now))
    assert pauses == [60, 120, 240, 300, 300, 300, 300]


def test_after_it_closed_the_next_pause_is_the_first_one_again() -> None:
    breaker = opened(pause=30)
    breaker.probe()
    breaker.failed("TimeoutError", "probe", 0)
    breaker.probe()
    breaker.succeeded()
    failing(breaker, 3, first=50, now=500)
    assert breaker.state is BreakerState.OPEN
    assert breaker.remaining(500) == 30


def test_what_failed_before_the_pause_does_not_count_after_it() -> None:
    breaker = opened(failures=3)
    breaker.probe()
    breaker.succeeded()
    assert failing(breaker, 2, first=50) == [False, False]


def test_a_probe_that_is_neither_success_nor_transient_failure_leaves_it_probing() -> None:
    breaker = opened(now=0)
    breaker.probe()
    assert breaker.remaining(31) == 0
    assert breaker.state is BreakerState.PROBING


def test_failures_that_were_on_their_way_when_it_opened_do_not_prolong_the_pause() -> None:
    breaker = opened(now=0)
    assert failing(breaker, 10, first=50, now=20) == [False] * 10
    assert breaker.remaining(20) == 10


def test_zero_switches_it_off() -> None:
    breaker = Breaker(failures=0, pause=30)
    assert not any(failing(breaker, 1000))
    assert breaker.state is BreakerState.CLOSED
