"""`redrive retry`: claim, send, mark, and what a crash in between leaves behind."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING

import pytest

from redrive.access import local
from redrive.actions import Actions, Result
from redrive.clock import SystemClock
from redrive.control import read_ticket, strip
from redrive.dead_letter import Actor, Status
from redrive.redriving import WINDOW
from support.dead_letters import an_order, dead, foreign
from support.desk import Desk, LaterClock, take_all

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.dead_letter import DeadLetter
    from redrive.stores import DeadLetterStore
    from redrive.transports import Delivery, Transport


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_letter_goes_back_to_its_queue_with_the_same_id_and_bytes(desk: Desk) -> None:
    message = an_order(headers=(("trace", "abc"), ("trace", b"\xff"))).with_error("boom", "500", "...")
    [letter_id] = desk.record(dead(message))

    ended = desk.redrive("retry", letter_id, "--yes")

    assert (ended.code, ended.out) == (0, "Sent 1 letter back.\n")
    [delivery] = desk.take("orders")
    assert delivery.message.id == message.id
    assert delivery.message.body == message.body
    assert strip(delivery.message.headers) == message.headers
    assert (delivery.message.error, delivery.message.retry_count, delivery.attempt) == (None, 0, 1)
    assert desk.letter(letter_id).status is Status.REDRIVEN


@pytest.mark.parametrize("body", [None, b"", b"\x00\xff", b"{", b"[" * 5000])
def test_a_foreign_body_goes_back_byte_for_byte(desk: Desk, body: bytes | None) -> None:
    [letter_id] = desk.record(dead(foreign(body)))

    assert desk.redrive("retry", letter_id, "--yes").code == 0

    [delivery] = desk.take("orders")
    assert delivery.message.body == body


def test_thirty_letters_each_get_a_signed_ticket_and_each_can_be_confirmed(desk: Desk) -> None:
    ids = desk.record(*(dead(an_order(number)) for number in range(30)))

    ended = desk.redrive("retry", *ids, "--yes")

    assert (ended.code, ended.out) == (0, "Sent 30 letters back.\n")
    deliveries = desk.take("orders")

    async def confirm(store: DeadLetterStore, _transport: Transport) -> set[str]:
        key = await store.signing_key()
        tickets = [read_ticket(delivery.message.headers, "orders", key) for delivery in deliveries]
        confirmed = [ticket for ticket in tickets if ticket and await store.confirm(ticket, by=Actor("consumer"))]
        assert len({ticket.redrive_id for ticket in confirmed}) == 30
        return {ticket.letter_id for ticket in confirmed}

    assert desk.do(confirm) == set(ids)
    assert {desk.letter(each).status for each in ids} == {Status.RESOLVED}


def test_two_retries_of_one_letter_at_once_are_one_send(desk: Desk) -> None:
    [letter_id] = desk.record(dead())

    async def race(store: DeadLetterStore, transport: Transport) -> list[Result]:
        other = desk.store()
        desks = [
            Actions(store=each, transport=transport, clock=SystemClock(), who=local("a"))
            for each in (store, other)
        ]
        outcomes = await asyncio.gather(*(each.retry([letter_id]) for each in desks))
        await other.close()
        return sorted(outcome.result for [outcome] in outcomes)

    assert desk.do(race) == [Result.NOT_CLAIMED, Result.SENT]
    assert len(desk.take("orders")) == 1


def taken_over(desk: Desk, letter_ids: list[str]) -> list[Result]:
    """What a retry gives once the dead process's leases have run out."""

    async def work(_store: DeadLetterStore, transport: Transport) -> list[Result]:
        later = desk.store(clock=LaterClock())
        actions = Actions(store=later, transport=transport, clock=LaterClock(), who=local("somebody"))
        outcomes = await actions.retry(letter_ids)
        await later.close()
        return [outcome.result for outcome in outcomes]

    results: list[Result] = desk.do(work)
    return results


@pytest.mark.parametrize("point", ["engine.taken", "engine.sent", "engine.marked"])
def test_sd1_a_process_killed_between_claim_send_and_mark_loses_nothing(desk: Desk, point: str) -> None:
    """S0 removes the letter from the store before it sends it: killed in between, the message is gone."""
    ids = desk.record(*(dead(an_order(number)) for number in range(3)))

    killed = desk.process("retry", *ids, "--yes", faults=f"{point}=kill9")
    assert killed.returncode == -signal.SIGKILL

    assert all(desk.letter(each).status in {Status.REDRIVING, Status.REDRIVEN} for each in ids)
    stuck = [each for each in ids if desk.letter(each).status is Status.REDRIVING]
    assert desk.redrive("retry", *stuck, "--yes").code == 5 if stuck else True  # the lease is still running
    assert taken_over(desk, stuck) == [Result.SENT] * len(stuck)
    copies = desk.take("orders")
    assert {copy.message.id for copy in copies} == {desk.letter(each).message.id for each in ids}
    assert len(copies) <= len(ids) + WINDOW
    assert len({_redrive_id(copy) for copy in copies}) == len(ids)  # a duplicate is known as one (G4)


def _redrive_id(delivery: Delivery) -> object:
    return dict(delivery.message.headers)["x-redrive-id"]


def test_letters_that_cannot_be_sent_are_told_one_by_one_with_the_remedy(desk: Desk) -> None:
    pending, discarded, quarantined, resolved = desk.record(dead(), dead(), dead(quarantine="too large"), dead())
    desk.redrive("discard", discarded, "--reason", "test order", "--yes")
    desk.redrive("resolve", resolved, "--reason", "done by hand", "--yes")
    unknown = "01a1e159-cf20-722c-a384-905c90383150"

    ended = desk.redrive("retry", pending, discarded, quarantined, resolved, unknown, "--yes")

    assert (ended.code, ended.out) == (4, "Sent 1 letter back.\n")
    assert ended.err == (
        f"error: letter {discarded} is DISCARDED: not sent\n  hint: restore it first\n"
        f"error: letter {quarantined} is QUARANTINED: not sent\n  hint: look at it, then release it first\n"
        f"error: letter {resolved} is RESOLVED: not sent\n  hint: restore it first if it has to be sent again\n"
        f"error: no letter {unknown}\n  hint: `redrive list` shows the ids\n"
        f"Run {_run_id(desk)} is DONE: `redrive runs show {_run_id(desk)}` tells what becomes of its letters.\n"
    )
    assert len(desk.take("orders")) == 1


def _run_id(desk: Desk) -> str:
    run_id: str = json.loads(desk.redrive("runs", "list", "--output", "json").out)[0]["id"]
    return run_id


def test_a_broker_that_refuses_leaves_the_letter_pending_and_the_third_time_quarantined(desk: Desk) -> None:
    [letter_id] = desk.record(dead(foreign(b"x", queue="orders\x07"), queue="orders\x07"))

    for status in (Status.PENDING, Status.PENDING, Status.QUARANTINED):
        ended = desk.redrive("retry", letter_id, "--yes")
        assert ended.code == 1
        assert "refused" in ended.err
        assert "\x07" not in ended.err
        assert desk.letter(letter_id).status is status


def test_a_dry_run_sends_nothing(desk: Desk) -> None:
    [letter_id] = desk.record(dead())

    ended = desk.redrive("retry", letter_id, "--dry-run")

    assert (ended.code, ended.err) == (0, "Nothing was changed.\n")
    assert ended.out.startswith("1 letter,")
    assert desk.letter(letter_id).status is Status.PENDING
    assert desk.take("orders") == []


def test_without_yes_and_nobody_to_ask_nothing_is_sent(desk: Desk) -> None:
    [letter_id] = desk.record(dead())

    ended = desk.redrive("retry", letter_id)

    assert ended.code == 5
    assert "--yes" in ended.err
    assert desk.letter(letter_id).status is Status.PENDING


def test_no_more_than_the_limit_are_sent(desk: Desk) -> None:
    ids = desk.record(dead(), dead(), dead())

    assert desk.redrive("retry", *ids, "--yes", "--limit", "2").out == "Sent 2 letters back.\n"

    assert [desk.letter(each).status for each in ids] == [Status.REDRIVEN, Status.REDRIVEN, Status.PENDING]


@pytest.mark.parametrize("rate", ["0", "-1", "nan"])
def test_a_rate_that_is_not_possible_is_a_usage_error(desk: Desk, rate: str) -> None:
    [letter_id] = desk.record(dead())

    ended = desk.redrive("retry", letter_id, "--yes", "--rate", rate)

    assert ended.code == 2
    assert desk.letter(letter_id).status is Status.PENDING


def test_what_list_writes_can_be_piped_into_retry(desk: Desk) -> None:
    desk.record(dead(), dead(queue="mail"), dead())

    listed = desk.redrive("list", "--queue", "orders", "--output", "jsonl")
    ended = desk.redrive("retry", "-", "--yes", stdin=listed.out)

    assert (ended.code, ended.out) == (0, "Sent 2 letters back.\n")


def test_a_letter_that_fails_again_after_its_retry_tells_both_stories(desk: Desk) -> None:
    """S0's map forgets the first failure when the second comes (SD2)."""
    [letter_id] = desk.record(dead(error=TimeoutError("first")))
    desk.redrive("retry", letter_id, "--yes")
    [delivery] = desk.take("orders")

    async def fail_again(store: DeadLetterStore, _transport: Transport) -> None:
        ticket = read_ticket(delivery.message.headers, "orders", await store.signing_key())
        message = delivery.message.with_headers(strip(delivery.message.headers))
        await store.record(dead(message, error=ValueError("second"), ticket=ticket))

    desk.do(fail_again)

    letter = desk.letter(letter_id)
    assert (letter.status, letter.generation) == (Status.PENDING, 2)
    shown = desk.redrive("show", letter_id).out
    assert shown.index("TimeoutError: first") < shown.index("Attempt 1 of generation 2")
    assert shown.count("ValueError: second") == 3  # the headline and both attempts


async def test_a_broker_that_goes_away_leaves_what_was_not_sent_to_be_sent_later(desk: Desk) -> None:
    """T9: nothing is known about the first, nothing was tried with the rest."""
    async with desk.opened() as (store, transport):
        ids = [(await store.record(dead()))[0] for _ in range(WINDOW + 2)]
        await transport.close()
        actions = Actions(store=store, transport=transport, clock=SystemClock(), who=local("somebody"))

        outcomes = await actions.retry(ids)

        results = [outcome.result for outcome in outcomes]
        assert results == [Result.UNKNOWN] * WINDOW + [Result.NOT_TRIED] * 2
        letters: list[DeadLetter | None] = [await store.get(each) for each in ids]
        assert [letter.status for letter in letters if letter] == [Status.REDRIVING] * WINDOW + [
            Status.PENDING
        ] * 2

    async with desk.opened() as (_, transport):
        assert await take_all(transport, "orders") == []
