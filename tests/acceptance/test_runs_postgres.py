"""Redrive runs on a PostgreSQL store: the same commands, several processes at once."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import Status
from support.dead_letters import an_order, dead
from support.desk import Desk
from support.patience import until
from support.run_shop import RunShop, all_is_well

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shop(tmp_path: Path, postgres_store_url: str) -> RunShop:
    return RunShop(tmp_path, store_url=postgres_store_url)


async def test_a_filter_run_goes_back_and_the_report_is_exact(shop: RunShop) -> None:
    async with shop.with_dead_orders(120):
        errors = {1: ValueError("no such customer"), 2: TimeoutError("slow")}
        shop.outcome = errors.get

        ended = await shop.redrive("retry", "--where", "queue:orders type:ValueError", "--rate", "300", "--yes")

        assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, "Sent 120 letters back."), ended.stderr
        await until(lambda: shop.count(Status.RESOLVED, at_least=118))
        await until(lambda: shop.count(Status.PENDING, at_least=2))
        assert (await shop.report())["summary"] == (
            "120 sent, 118 confirmed, 1 came back with the same group, 1 with a new one, 0 without word"
        )


async def test_two_engines_and_a_foreground_command_share_one_run(shop: RunShop) -> None:
    async with shop.with_dead_orders(400):
        shop.outcome = all_is_well
        engines = [await shop.started("engine"), await shop.started("engine")]

        ended = await shop.redrive("retry", "--queue", "orders", "--rate", "400", "--yes")

        assert ended.returncode == 0, ended.stderr
        await until(lambda: shop.count(Status.RESOLVED, at_least=400))
        assert await asyncio.gather(*(engine.stop() for engine in engines)) == [0, 0]
        report = await shop.report()
        assert (report["status"], report["sent"], report["confirmed"]) == ("DONE", 400, 400)
        assert len({message.id for message in shop.charged}) == len(shop.charged) == 400


async def test_ctrl_c_pauses_and_another_process_resumes(shop: RunShop) -> None:
    async with shop.with_dead_orders(90):
        shop.outcome = all_is_well
        running = await shop.started("retry", "--queue", "orders", "--rate", "30", "--yes")
        await until(lambda: shop.sent(at_least=1))

        running.send_signal(signal.SIGINT)
        await running.communicate()
        assert running.returncode == 130
        [run] = await shop.runs()
        assert run["status"] == "PAUSED"

        assert (await shop.redrive("runs", "resume", run["id"])).returncode == 0
        await until(lambda: shop.count(Status.RESOLVED, at_least=90))
        assert (await shop.report())["confirmed"] == 90


def test_an_approval_is_given_by_another_person_only(tmp_path: Path, postgres_store_url: str) -> None:
    desk = Desk(tmp_path, store_url=postgres_store_url)
    with (tmp_path / "redrive.toml").open("a") as settings:
        settings.write("[approval]\nmore_than = 1\n")
    desk.record(*(dead(an_order(number)) for number in range(3)))
    assert desk.redrive("retry", "--queue", "orders", "--as", "ann", "--yes", account="ann").code == 5
    [run] = json.loads(desk.redrive("runs", "list", "--output", "json").out)

    assert desk.redrive("runs", "approve", run["id"], "--as", "ann", "--yes").code == 5
    assert desk.redrive("runs", "approve", run["id"], "--as", "bob", "--yes").code == 0
    assert desk.redrive("runs", "resume", run["id"]).out == "Sent 3 letters back.\n"
