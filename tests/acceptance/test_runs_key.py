"""`redrive retry --key`: a cron job that is started twice, or again after a crash, makes one run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.dead_letters import an_order, dead
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

NIGHTLY = ("retry", "--where", "queue:orders age:<2d", "--key", "nightly 2026-11-16", "--yes")


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_store_url")
    return Desk(tmp_path, store_url=url)


def orders(desk: Desk, number: int) -> list[str]:
    return desk.record(*(dead(an_order(each)) for each in range(number)))


def runs(desk: Desk) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(desk.redrive("runs", "list", "--output", "json").out)
    return listed


def test_the_same_key_again_tells_the_same_run_and_sends_nothing(desk: Desk) -> None:
    orders(desk, 3)
    assert desk.redrive(*NIGHTLY).out == "Sent 3 letters back.\n"
    orders(desk, 2)

    again = desk.redrive(*NIGHTLY)

    [run] = runs(desk)
    assert (again.code, again.out) == (0, "Sent 3 letters back.\n")
    assert f"Run {run['id']} was made by this key before." in again.err
    assert len(desk.take("orders")) == 3


def test_a_run_whose_command_died_is_gone_on_with(desk: Desk) -> None:
    orders(desk, 3)
    killed = desk.process(*NIGHTLY, "--detach", faults="store.after_commit=kill9")
    made = [run["status"] for run in runs(desk)]
    assert killed.returncode != 0 or made == ["RUNNING"]

    assert desk.redrive(*NIGHTLY).out == "Sent 3 letters back.\n"

    assert [run["status"] for run in runs(desk)] == ["DONE"]
    assert len(desk.take("orders")) == 3


def test_a_run_that_waits_for_approval_still_waits(desk: Desk) -> None:
    with (desk.folder / "redrive.toml").open("a") as settings:
        settings.write("[approval]\nmore_than = 2\n")
    orders(desk, 3)

    codes = [desk.redrive(*NIGHTLY).code for _ in range(2)]

    assert codes == [5, 5]
    assert [run["status"] for run in runs(desk)] == ["AWAITING_APPROVAL"]


def test_another_request_by_the_same_key_is_refused(desk: Desk) -> None:
    orders(desk, 3)
    assert desk.redrive(*NIGHTLY).code == 0

    refused = desk.redrive("retry", "--queue", "orders", "--key", "nightly 2026-11-16", "--yes")

    assert (refused.code, "give another key" in refused.err) == (5, True)


def test_named_letters_need_no_key(desk: Desk) -> None:
    [letter] = orders(desk, 1)

    assert desk.redrive("retry", letter, "--key", "once", "--yes").code == 2
    assert desk.redrive("retry", "--queue", "orders", "--key", "", "--yes").code == 2
    assert runs(desk) == []
