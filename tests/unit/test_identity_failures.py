"""Whoever guesses is slowed down, in bounded memory, and nobody else is (TH12)."""

from __future__ import annotations

import pytest

from redrive.identity.failures import Failures, Limit, site_of
from redrive.testing import ManualClock

LIMIT = Limit(3, 60.0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def failures(clock: ManualClock, most: int = 100) -> Failures:
    return Failures(clock, per_address=LIMIT, per_name=Limit(5, 60.0), most=most)


def test_after_some_failures_there_is_a_wait_until_their_time_is_over(clock: ManualClock) -> None:
    limiter, waits = failures(clock), []
    for _ in range(4):
        waits.append(limiter.wait("192.0.2.1"))
        limiter.note("192.0.2.1")
        clock.advance(10)

    assert waits == [0, 0, 0, 30]
    assert limiter.wait("192.0.2.1") == 20
    clock.advance(20)
    assert limiter.wait("192.0.2.1") == 0


def test_one_address_does_not_wait_for_another(clock: ManualClock) -> None:
    limiter = failures(clock)
    for _ in range(3):
        limiter.note("192.0.2.1")
    assert (limiter.wait("192.0.2.1"), limiter.wait("192.0.2.2")) == (60, 0)


def test_one_name_from_many_addresses_waits_too(clock: ManualClock) -> None:
    limiter = failures(clock)
    for number in range(5):
        limiter.note(f"192.0.2.{number}", "abcdefghjk23")
    assert limiter.wait("198.51.100.1", "abcdefghjk23") == 60
    assert limiter.wait("198.51.100.1", "another") == limiter.wait("198.51.100.1") == 0


def test_all_addresses_of_a_site_are_one(clock: ManualClock) -> None:
    limiter = failures(clock)
    for number in range(3):
        limiter.note(f"2001:db8:0:1::{number:x}")
    assert limiter.wait("2001:db8:0:1:ffff::1") == 60
    assert limiter.wait("2001:db8:0:2::1") == 0


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix", "unix"),
        ("x" * 1000, "x" * 64),
        ("", ""),
    ],
)
def test_every_address_has_a_site(address: str, site: str) -> None:
    assert site_of(address) == site


def test_memory_is_bounded_and_names_do_not_push_out_addresses(clock: ManualClock) -> None:
    limiter = failures(clock, most=10)
    for _ in range(3):
        limiter.note("192.0.2.1")
    for number in range(1000):
        limiter.note("192.0.2.1", f"made up {number}" + "x" * 10_000)
    assert len(limiter) == 11
    assert limiter.wait("192.0.2.1") == 60


def test_the_oldest_are_forgotten_first_and_the_rest_when_their_time_is_over(clock: ManualClock) -> None:
    limiter = failures(clock, most=10)
    for number in range(12):
        for _ in range(3):
            limiter.note(f"192.0.2.{number}")
    assert [limiter.wait(f"192.0.2.{number}") > 0 for number in range(12)] == [False] * 2 + [True] * 10
    clock.advance(60)
    limiter.note("198.51.100.1")
    assert len(limiter) == 1


def test_a_new_window_begins_with_the_next_failure(clock: ManualClock) -> None:
    limiter = failures(clock)
    for _ in range(3):
        limiter.note("192.0.2.1")
    clock.advance(60)
    limiter.note("192.0.2.1")
    limiter.note("192.0.2.1")
    assert limiter.wait("192.0.2.1") == 0
    limiter.note("192.0.2.1")
    assert limiter.wait("192.0.2.1") == 60
