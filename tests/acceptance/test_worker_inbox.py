"""A handler with an inbox has its effect once per message, however often the message is delivered."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from redrive import App, SqliteInbox, faults
from redrive.dead_letter import Status
from redrive.message import Message
from redrive.testing import bench_for
from support.patience import until
from support.plant import Plant

if TYPE_CHECKING:
    from pathlib import Path

KILLED_BEFORE_ACK = """
def prepare(connection):
    connection.execute("CREATE TABLE IF NOT EXISTS charges (number)")

inbox = SqliteInbox("charges.db", prepare=prepare)

@app.handler("orders", inbox=inbox)
def charge(order: dict, connection: __import__("sqlite3").Connection):
    note("ran", order["number"])
    connection.execute("INSERT INTO charges VALUES (?)", (order["number"],))
"""


def charges(folder: Path) -> list[int]:
    with sqlite3.connect(folder / "charges.db") as connection:
        found = [number for (number,) in connection.execute("SELECT number FROM charges ORDER BY number")]
    connection.close()
    return found


def shop(folder: Path) -> tuple[App, SqliteInbox]:
    def prepare(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE IF NOT EXISTS charges (number)")

    app, inbox = App("shop"), SqliteInbox(folder / "charges.db", prepare=prepare)

    @app.handler("orders", name="charge", inbox=inbox)
    def charge(order: dict[str, int], connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO charges VALUES (?)", (order["number"],))
        if order["number"] == 13:
            raise ValueError("an unlucky number")

    return app, inbox


async def test_the_same_message_delivered_twice_is_charged_once(tmp_path: Path) -> None:
    app, inbox = shop(tmp_path)
    async with bench_for(app) as bench:
        message = await bench.send("orders", {"number": 1})
        await bench.transport.send(message)
        await bench.run_until_quiet()
        await bench.transport.send(message)
        await bench.run_until_quiet()

        assert charges(tmp_path) == [1]
        assert await bench.transport.depths() == {}
    await inbox.close()


async def test_what_a_failing_handler_wrote_is_taken_back_and_its_redrive_may_try_again(tmp_path: Path) -> None:
    app, inbox = shop(tmp_path)
    async with bench_for(app) as bench:
        await bench.send("orders", {"number": 13})
        await bench.run_until_quiet()
        letter = bench.assert_dead_lettered("orders", type="ValueError", attempts=1)
        assert charges(tmp_path) == []

        fixed = Message.create(
            id=letter.message.id, sent_at=bench.clock.now(), queue="orders", data={"number": 14}
        )
        await bench.desk.revise(letter.id, base=0, reason="a luckier number", body=fixed.body)
        await bench.redrive(letter)
        await bench.run_until_quiet()

        assert charges(tmp_path) == [14]
        assert [each.status for each in bench.letters] == [Status.RESOLVED]
    await inbox.close()


async def test_killed_between_effect_and_acknowledgement_the_effect_is_not_repeated(tmp_path: Path) -> None:
    assert "worker.before_ack" in faults.POINTS
    async with Plant(tmp_path, KILLED_BEFORE_ACK, broker={"lease": "300ms"}) as plant:
        await plant.send("orders", *({"number": number} for number in range(3)))
        with plant.worker("--drain", REDRIVE_FAULTS="worker.before_ack=kill9") as process:
            await until(lambda: process.poll() is not None)
        assert process.returncode == -9
        effects = charges(tmp_path)
        assert effects  # at least the one that was about to be acknowledged

        with plant.worker("--drain") as process:
            await until(lambda: process.poll() is not None)

        assert process.returncode == 0
        assert charges(tmp_path) == [0, 1, 2]
        assert sorted(plant.notes()) == ["ran 0", "ran 1", "ran 2"]
