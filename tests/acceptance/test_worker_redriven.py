"""Messages that were put back: their outcome finds its letter, and nobody else's does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from redrive import App, DeadLetter, Drop, Message, Retry, control
from redrive.clock import new_id
from redrive.control import RedriveTicket
from redrive.dead_letter import MAX_GENERATIONS, Status
from redrive.settings import Settings
from redrive.testing import Bench, bench_for
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.message import Headers


class Shop:
    """A handler that fails as often as it is told to."""

    def __init__(self, *, failures: int, attempts: int = 2) -> None:
        self.app = App("shop", retry=Retry(attempts, "5s"))
        self.failures = failures
        self.runs: list[Message] = []
        self.told: list[DeadLetter] = []
        handler = self.app.handler("orders", name="charge")(self.charge)
        handler.on_dead_letter(self.told.append)

    async def charge(self, message: Message) -> None:
        self.runs.append(message)
        if len(self.runs) <= self.failures:
            raise TimeoutError(f"run {len(self.runs)}")


async def set_apart(bench: Bench, headers: Headers = (("trace", "abc"),)) -> DeadLetter:
    await bench.send("orders", {"order_id": 17}, headers=headers)
    await bench.run_until_quiet()
    return bench.assert_dead_lettered("orders", count=1)


async def arrives(bench: Bench, queue: str, number: int, headers: Headers) -> None:
    """From somebody who writes what they like: `App.send` leaves such headers out."""
    sent_at = bench.clock.now()
    message = Message.create(id=new_id(), sent_at=sent_at, queue=queue, data={"order_id": number}, headers=headers)
    await bench.transport.send(message)


async def test_success_after_a_redrive_resolves_the_letter_as_confirmed() -> None:
    shop = Shop(failures=2)
    async with bench_for(shop.app) as bench:
        letter = await set_apart(bench)
        await bench.redrive(letter)
        await bench.run_until_quiet()

        [after] = bench.letters
        assert (after.id, after.status, after.how) == (letter.id, Status.RESOLVED, "confirmed")
        assert [line.after for line in after.history][-1] == "RESOLVED"
        assert "charge succeeded" in after.history[-1].reason
        first, last = shop.runs[0], shop.runs[-1]
        assert (last.id, last.body, last.retry_count) == (first.id, first.body, 0)
        assert control.strip(last.headers) == (("trace", "abc"),)


async def test_success_on_a_retry_of_the_redriven_message_resolves_it_too() -> None:
    shop = Shop(failures=3)
    async with bench_for(shop.app) as bench:
        await bench.redrive(await set_apart(bench))
        await bench.run_until_quiet()

        [after] = bench.letters
        assert (after.status, after.how, len(shop.runs)) == (Status.RESOLVED, "confirmed", 4)


async def test_a_redriven_message_that_its_handler_drops_is_resolved_too() -> None:
    app, runs = App("shop"), []

    @app.handler("orders", name="charge")
    async def charge(_order: dict[str, int]) -> None:
        runs.append(1)
        raise ValueError("a bug") if len(runs) == 1 else Drop("cancelled meanwhile")

    async with bench_for(app) as bench:
        await bench.redrive(await set_apart(bench))
        await bench.run_until_quiet()

        [after] = bench.letters
        assert (after.status, after.how) == (Status.RESOLVED, "confirmed")
        assert after.history[-1].reason == "charge dropped it"


async def test_a_second_failure_is_one_more_generation_of_the_same_letter() -> None:
    shop = Shop(failures=4)
    async with bench_for(shop.app) as bench:
        letter = await set_apart(bench)
        await bench.redrive(letter)
        await bench.run_until_quiet()

        [after] = bench.letters
        assert (after.id, after.status, after.generation) == (letter.id, Status.PENDING, 2)
        assert [failure.text for failure in after.failures] == ["run 1", "run 2", "run 3", "run 4"]
        assert after.generations == (1, 1, 2, 2)
        assert after.attempts == 4
        assert after.message.headers == (("trace", "abc"),)  # ours were taken off again
        assert [(told.id, told.generation) for told in shop.told] == [(letter.id, 1), (letter.id, 2)]


async def test_beyond_the_last_generation_a_person_has_to_look() -> None:
    shop = Shop(failures=1000)
    async with bench_for(shop.app) as bench:
        letter = await set_apart(bench)
        for _ in range(MAX_GENERATIONS):
            assert bench.letters[0].status is Status.PENDING
            await bench.redrive(bench.letters[0])
            await bench.run_until_quiet()

        [after] = bench.letters
        assert (after.id, after.status, after.how) == (letter.id, Status.QUARANTINED, "generation limit")
        assert after.generation == MAX_GENERATIONS + 1
        with pytest.raises(AssertionError, match="not claimed"):
            await bench.redrive(after)


def forged(letter: DeadLetter) -> Headers:
    return control.stamp((), RedriveTicket("11111111", letter.id, 1, "orders"), b"not the key")


async def test_forged_control_headers_neither_resolve_nor_reopen_anything() -> None:
    shop = Shop(failures=2)
    async with bench_for(shop.app) as bench:
        letter = await set_apart(bench)
        await arrives(bench, "orders", 18, forged(letter))
        await bench.run_until_quiet()
        [untouched] = bench.letters
        assert (untouched.status, untouched.history) == (Status.PENDING, letter.history)

        shop.failures = 1000
        sent = forged(letter)
        await arrives(bench, "orders", 19, sent)
        await bench.run_until_quiet()

        own, untouched = bench.letters
        assert (untouched.id, untouched.history) == (letter.id, letter.history)
        assert own.id != letter.id
        assert own.message.headers == sent  # kept as they came


@pytest.mark.parametrize(
    "headers",
    [
        ((control.SIGNATURE, "x"),),
        ((control.SIGNATURE, b"\xff"), (control.LETTER, 7), (control.REDRIVE_ID, None), (control.GENERATION, "a")),
        ((control.SIGNATURE, "\ud800"), (control.LETTER, ""), (control.REDRIVE_ID, ""), (control.GENERATION, -1)),
    ],
)
@pytest.mark.parametrize("fails", [True, False])
async def test_control_headers_of_any_shape_change_nothing(headers: Headers, *, fails: bool) -> None:
    shop = Shop(failures=1000 if fails else 0)
    async with bench_for(shop.app) as bench:
        await arrives(bench, "orders", 17, headers)
        await bench.run_until_quiet()

        assert [letter.message.headers for letter in bench.letters] == ([headers] if fails else [])
        assert await bench.transport.depths() == {}


async def test_a_ticket_for_one_queue_says_nothing_in_another() -> None:
    shop = Shop(failures=2)
    shop.app.handler("refunds", name="refund")(shop.charge)
    async with bench_for(shop.app) as bench:
        letter = await set_apart(bench)
        key = await bench.store.signing_key()
        [claim] = await bench.store.claim([letter.id], owner="test", lease=60)
        headers = control.stamp((), claim.ticket, key)
        await arrives(bench, "refunds", 17, headers)
        await bench.run_until_quiet()

        assert bench.letters[0].status is Status.REDRIVING  # not confirmed by somebody else's success


async def test_a_redriven_message_that_fails_while_the_store_is_away_finds_its_letter_later(
    tmp_path: Path,
) -> None:
    shop = Shop(failures=2, attempts=1)
    store_url = f"sqlite:///{tmp_path}/letters.db"
    async with workshop(shop.app, tmp_path, store_url=store_url) as first:
        await first.send("orders", {"order_id": 17})
        [letter] = await until(first.letters)
        await first.stop()
        await first.redrive(letter)
    _hide(tmp_path)

    # A new process: it has never seen the store, nor the key in it.
    async with workshop(shop.app, tmp_path, store_url=store_url) as second:
        await until(second.empty)
        assert len(shop.runs) == 2
        assert second.spool.pending().segments == 1
        _show(tmp_path)
        await until(lambda: second.letters(status=Status.PENDING))

        [after] = await second.letters()
        assert (after.id, after.generation) == (letter.id, 2)
        assert [failure.text for failure in after.failures] == ["run 1", "run 2"]
        assert not control.carries_ticket(after.message.headers)


def _hide(folder: Path) -> None:
    """Instead of the store there is a folder of its name: it can neither be opened nor made."""
    for name in ("letters.db", "letters.db-wal", "letters.db-shm"):
        if (folder / name).exists():
            (folder / name).rename(folder / f"hidden-{name}")
    (folder / "letters.db").mkdir()


def _show(folder: Path) -> None:
    (folder / "letters.db").rmdir()
    for hidden in folder.glob("hidden-*"):
        hidden.rename(folder / hidden.name.removeprefix("hidden-"))


async def test_with_the_queue_as_sink_a_redriven_message_keeps_its_ticket_for_the_next_time() -> None:
    shop = Shop(failures=4)
    async with bench_for(shop.app) as bench:
        letter = await set_apart(bench)
        await bench.redrive(letter)
        settings = Settings.model_validate({"dead_letters": {"sink": "queue"}})
        bench._settings = settings
        await bench.run_until_quiet()
        assert set(await bench.transport.depths()) == {"orders_dlq"}

        await bench.desk.reprocess("orders_dlq")
        await bench.run_until_quiet()

        assert [(each.status, each.how) for each in bench.letters] == [(Status.RESOLVED, "confirmed")]
