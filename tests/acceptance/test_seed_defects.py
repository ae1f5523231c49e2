"""Defects of the seeds (GUARANTEES, section 6) that the worker must not have, each under its number."""

from __future__ import annotations

import json
import signal
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from redrive import App, Message, Retry
from redrive.schedule import MIN_DELAY
from redrive.sinks import TRAIL_BUDGET
from redrive.testing import ManualClock, bench_for
from support.patience import until
from support.plant import Plant
from support.workshop import workshop

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.message import Headers
    from redrive.transports import Transport


# SD2: S0's map forgets the first failure when the second comes


async def test_sd2_both_attempts_are_kept() -> None:
    app, runs = App("shop", retry=Retry(2, "5s")), []

    @app.handler("orders")
    def charge(_order: dict[str, int]) -> None:
        runs.append(1)
        raise [TimeoutError("the bank did not answer"), ConnectionError("the bank hung up")][len(runs) - 1]

    async with bench_for(app) as bench:
        await bench.send("orders", {"order_id": 17})
        await bench.run_until_quiet()

        first, second = bench.assert_dead_lettered("orders", count=1).failures
        assert (first.attempt, first.text) == (1, "the bank did not answer")
        assert (second.attempt, second.text) == (2, "the bank hung up")
        assert (second.at - first.at).total_seconds() == 5
        assert all("charge" in failure.trace for failure in (first, second))


async def test_sd2_a_message_that_fails_twice_in_two_lives_keeps_both_stories() -> None:
    app, runs = App("shop", retry=Retry(1)), []

    @app.handler("orders")
    def charge(_order: dict[str, int]) -> None:
        runs.append(1)
        raise ValueError(f"run {len(runs)}")

    async with bench_for(app) as bench:
        await bench.send("orders", {"order_id": 17})
        await bench.run_until_quiet()
        await bench.redrive(*bench.letters)
        await bench.run_until_quiet()

        [letter] = bench.letters
        assert [failure.text for failure in letter.failures] == ["run 1", "run 2"]


# SD3: S1 acknowledges even when it could not save


STORE_AWAY = """
@app.handler("orders")
def charge(order: dict):
    raise ValueError("no customer")
"""


async def test_sd3_store_down_and_kill_9_nothing_is_lost(tmp_path: Path) -> None:
    away = {"url": f"sqlite:///{tmp_path}/away/redrive.db"}
    async with Plant(tmp_path, STORE_AWAY, broker={"lease": "300ms"}, store=away) as plant:
        sent = await plant.send("orders", *({"number": number} for number in range(50)))
        with plant.worker() as process:
            await until(lambda: plant.logged("message sent to dead letter queue"))
            process.kill()
            await until(lambda: process.poll() is not None)
        assert process.returncode == -signal.SIGKILL
        assert {line["sink"] for line in plant.logged("message sent to dead letter queue")} == {"spool"}
        assert list((tmp_path / ".redrive" / "spool").iterdir())

        # The store is back, and so is a worker: it adopts what the dead one had spooled, and does the rest.
        (tmp_path / "away").mkdir()
        plant.use_store(away["url"])
        with plant.worker() as process:
            await until(lambda: _has_letters(plant, len(sent)))
            await until(lambda: not list((tmp_path / ".redrive" / "spool").glob("*.seg")))
            process.send_signal(signal.SIGTERM)
            await until(lambda: process.poll() is not None)

        letters = await plant.letters()
        assert sorted(letter.message.id for letter in letters) == sorted(message.id for message in sent)
        assert await plant.transport.depths() == {}


async def _has_letters(plant: Plant, count: int) -> bool:
    return len(await plant.letters()) == count


# SD5: S1's columns refuse nine of eleven poison messages


POISON: dict[str, tuple[bytes | None, Headers]] = {
    "malformed JSON": (b'{"cpf": "123', ()),
    "a null character in a string": (rb'{"name": "Ana\u0000"}', ()),
    "binary": (bytes(range(256)), ()),
    "nested too deep": (b"[" * 100_000 + b"]" * 100_000, ()),
    "a correlation id that is no UUID": (b'{"id": 1}', (("correlation_id", "abc-123"),)),
    "an event id of more than fifty characters": (b'{"id": 1}', (("event_id", "e" * 200),)),
    "empty": (b"", ()),
    "nothing": (None, ()),
    "a bare value": (b"42", ()),
    "duplicate keys and odd spacing": (b'{ "a":1,  "a" : 2.0 }', ()),
    "a lone surrogate": (rb'{"name": "\ud800"}', ()),
    "not UTF-8": (b'{"name": "Jos\xe9"}', (("name", b"Jos\xe9"),)),
    "a number beyond every integer": (b'{"n": 1e400, "m": 123456789012345678901234567890}', ()),
}


@pytest.mark.parametrize("body_and_headers", POISON.values(), ids=POISON)
async def test_sd5_poison_messages_are_stored_and_put_back_byte_for_byte(
    body_and_headers: tuple[bytes | None, Headers],
) -> None:
    body, headers = body_and_headers
    app, seen = App("shop", retry=Retry(2, "5s")), []

    @app.handler("events")
    def process(message: Message) -> None:
        seen.append(message)
        raise TimeoutError("always")

    async with bench_for(app) as bench:
        sent = await bench.send_foreign("events", body, headers=headers)
        await bench.run_until_quiet()
        letter = bench.assert_dead_lettered("events", count=1)
        assert (letter.message.body, letter.message.headers, letter.message.id) == (body, headers, sent.id)

        await bench.redrive(letter)
        await bench.run_until_quiet()

        assert [message.body for message in seen] == [body] * 4
        [again] = bench.letters
        assert (again.message.body, again.message.headers) == (body, headers)


async def test_sd5_what_a_handler_cannot_even_decode_is_stored_byte_for_byte_too() -> None:
    app = App("shop")

    @app.handler("events")
    def process(_event: dict[str, object]) -> None:
        raise ValueError("refused")

    async with bench_for(app) as bench:
        for body, headers in POISON.values():
            await bench.send_foreign("events", body, headers=headers)
        await bench.run_until_quiet()

        stored = [(letter.message.body, letter.message.headers) for letter in reversed(bench.letters)]
        assert sorted(stored, key=repr) == sorted(POISON.values(), key=repr)


# SD11: S3 retries without a delay, and the message grows with every trace


async def test_sd11_a_handler_that_always_fails_fast_is_not_run_in_a_hot_loop() -> None:
    app = App("shop", retry=Retry(20, [0]))

    @app.handler("orders")
    async def charge(_order: dict[str, int]) -> None:
        raise TimeoutError("at once")

    async with bench_for(app) as bench:
        await bench.send("orders", {"order_id": 17})
        await bench.run_until_quiet()

        letter = bench.assert_dead_lettered("orders", attempts=20)
        waits = [later.at - earlier.at for earlier, later in pairwise(letter.failures)]
        assert min(waits) >= timedelta(seconds=MIN_DELAY)


async def test_sd11_a_message_does_not_grow_with_its_failures(tmp_path: Path) -> None:
    app, clock, runs, sizes = App("shop", retry=Retry(40, "5s")), ManualClock(), [], []

    def deep(levels: int) -> None:
        if not levels:
            raise TimeoutError("a long story. " * 5000)
        deep(levels - 1)

    @app.handler("orders")
    async def charge(message: Message) -> None:
        runs.append(message)
        sizes.append(len(message.to_json()))
        deep(100)

    async with workshop(app, tmp_path, clock=clock) as shop:
        [sent] = await shop.send("orders", {"order_id": 17})
        await until(lambda: _passing(clock) and len(runs) == 39)

        assert {message.body for message in runs} == {sent.body}
        assert sizes[0] < 500
        assert len(set(sizes[-20:])) == 1  # as large after forty failures as after twenty
        assert sizes[-1] < 16 * 1024
        stored = await _stored_bytes(shop.transport)
        assert stored < TRAIL_BUDGET + 32 * 1024
        envelope = json.loads(runs[-1].to_json())
        assert "characters cut" in envelope["error"]["message"]


def _passing(clock: ManualClock) -> bool:
    clock.advance(5)
    return True


async def _stored_bytes(transport: Transport) -> int:
    """What the one message takes in the broker's file."""
    query = "SELECT max(length(body) + length(headers) + length(overlay) + length(trail)) FROM messages"
    [(stored,)] = await transport._file.look(  # type: ignore[attr-defined]
        lambda table: table.connection.execute(query).fetchall()
    )
    return int(stored)
