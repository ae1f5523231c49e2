"""`/doctor` of a real server: for administrators of everything alone, asked for, bounded, without secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from redrive.access import Role
from redrive.examining import Doctor
from redrive.finding import problem
from redrive.testing.clock import ManualClock
from support.api_house import House, open_house
from support.desk import Desk
from support.patience import until, until_now
from support.serving import Served, serving

PASSWORD = "hunter2-not-told"  # noqa: S105  a canary
CARD = "4111 1111 1111 1111"


@pytest.fixture
def served(disk_path: Path, unused_tcp_port: int) -> Iterator[Served]:
    """With a broker that is away, and a setting that discards letters."""
    url = f"amqp://shop:{PASSWORD}@127.0.0.1:{unused_tcp_port}/"
    desk = Desk(disk_path)
    (disk_path / "redrive.toml").write_text(
        f'[broker]\nurl = "{url}"\n[queues.orders.dead_letters]\nexpire_after = "1h"\n[server]\nengine = false\n'
    )
    with serving(desk) as found:
        yield found


def asked(served: Served, method: str) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {served.token}"}
    answer = httpx2.request(method, f"{served.url}/api/v1/doctor", headers=headers, timeout=30)
    assert answer.status_code == (200 if method == "GET" else 202), answer.text
    assert PASSWORD not in answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_a_look_is_begun_by_asking_for_one_and_told_when_it_is_done(served: Served) -> None:
    assert asked(served, "GET") == {"running": False, "at": None, "findings": []}
    assert asked(served, "POST")["running"] is True

    def done() -> dict[str, Any] | None:
        told = asked(served, "GET")
        return None if told["running"] else told

    told = until_now(done)

    found = {(each["place"], each["check"]): each["level"] for each in told["findings"]}
    assert found["broker", "broker"] == "problem"
    assert found["settings", "expire-after"] == "problem"
    assert found["store", "store"] == "ok"
    assert found["disk", "spool"] == "ok"
    again = asked(served, "POST")  # within the minute
    assert (again["running"], again["at"]) == (False, told["at"])
    assert PASSWORD not in served.said


async def test_only_who_administers_every_queue_is_told(tmp_path: Path) -> None:
    async def look() -> list[Any]:
        return [problem("ttl", f"queue {CARD} loses messages", f"see {CARD}", queue="orders")]

    doctor = Doctor(look, ManualClock())
    async with open_house(tmp_path, doctor=doctor) as house:
        for method in ("GET", "POST"):
            assert (await house.ask(method, "/doctor")).status_code == 401
            for role in Role:
                if role is not Role.ADMIN:
                    assert (await house.ask(method, "/doctor", role)).status_code == 403, role
            some = await house.ask(method, "/doctor", Role.ADMIN, queues=("orders",))
            assert some.status_code == 403
        assert doctor.told.at is None

        assert (await house.ask("POST", "/doctor", Role.ADMIN)).status_code == 202
        await until(lambda: not doctor.told.running)
        told = await house.ask("GET", "/doctor", Role.ADMIN)
        assert told.json()["findings"][0]["check"] == "ttl"
        assert CARD not in told.text


async def test_a_server_that_only_shows_can_be_asked_for_a_look(tmp_path: Path) -> None:
    async def look() -> list[Any]:
        return []

    async with open_house(tmp_path, doctor=Doctor(look, ManualClock()), read_only=True) as house:
        assert (await house.ask("POST", "/doctor", Role.ADMIN)).status_code == 202


async def test_a_look_that_takes_long_holds_up_nobody(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def look() -> list[Any]:
        await gate.wait()
        return []

    doctor = Doctor(look, ManualClock())
    async with open_house(tmp_path, doctor=doctor) as house:
        assert (await house.ask("POST", "/doctor", Role.ADMIN)).json()["running"] is True
        assert (await house.ask("GET", "/doctor", Role.ADMIN)).json()["running"] is True
        gate.set()
        await until(lambda: not doctor.told.running)


async def test_a_process_without_a_doctor_says_so(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        assert isinstance(house, House)
        assert (await house.ask("GET", "/doctor", Role.ADMIN)).status_code == 404
