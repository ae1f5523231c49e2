"""Alerts of a real server, from failing messages to a person who is told and does something about it; killed in
between, nothing is told twice and nothing is lost.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from redrive.failure import FailureKind
from redrive.testing.letters import a_failure, an_entry
from support.alert_receivers import Receiver, receiving
from support.alerts import SECRET
from support.dead_letters import an_order, dead
from support.desk import Desk
from support.forked import REDRIVE, Recorded
from support.patience import until_now
from support.serving import Served, serving

CARD = "4111 1111 1111 1111"


def settings(port: int, rules: str = "") -> str:
    return f"""
[server]
public_url = "https://redrive.example.org"
[alerts]
every = "1s"
allowed_hosts = ["localhost:{port}"]
[alerts.channels.ops]
url = "http://localhost:{port}/"
secret = "{SECRET}"
{rules}
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def desk(tmp_path: Path, receiver: Receiver) -> Desk:
    (tmp_path / "redrive.toml").write_text(settings(receiver.port))
    return Desk(tmp_path)


def told(receiver: Receiver) -> list[tuple[str, str]]:
    return sorted((each.json["state"], each.json["rule"]) for each in receiver.told)


def a_critical_letter() -> Any:
    now = datetime.now(UTC)
    failures = (a_failure(kind=FailureKind.CRITICAL, text=f"no money on {CARD}", at=now),)
    return an_entry(message=an_order(17), failures=failures, at=now)


def listed(desk: Desk, *more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(desk.redrive("alerts", "list", "--output", "json", *more).out)
    return found


def test_somebody_is_told_of_a_critical_failure_with_a_link_and_nothing_private(
    desk: Desk, receiver: Receiver
) -> None:
    error = ValueError(f"no money on {CARD}")
    with serving(desk):
        desk.record(dead(error=error), a_critical_letter())
        until_now(lambda: ("raised", "critical") in told(receiver))
        (critical,) = [each.json for each in receiver.told if each.json["rule"] == "critical"]

    assert critical["severity"] == "critical"
    assert critical["url"] == f"https://redrive.example.org/groups/{critical['group_id']}"
    every = b"".join(each.body for each in receiver.told)
    assert CARD.encode() not in every
    assert b"order_id" not in every


def test_people_acknowledge_snooze_and_resolve_by_the_command_line_and_through_a_server(
    desk: Desk, receiver: Receiver
) -> None:
    with serving(desk) as served:
        desk.record(dead(), a_critical_letter())
        until_now(lambda: told(receiver) == [("raised", "critical"), ("raised", "new_group")])
        first, second = listed(desk, "--firing")
        shown = [line.split()[0] for line in desk.redrive("alerts", "list").out.splitlines()[1:]]
        assert len({*shown}) == 2  # though both are of one moment, and begin with it

        assert desk.redrive("alerts", "acknowledge", first["id"], "--reason", "mine").code == 0
        remote = ("--server", served.url, "--token-file", str(_token(served)))
        for way in ((), remote):
            soon = desk.redrive(*way, "alerts", "snooze", second["id"], "soon")
            assert (soon.code, "'soon' is no time to snooze" in soon.err) == (2, True), soon.err
        snoozed = desk.redrive(*remote, "alerts", "snooze", second["id"], "2h")
        assert snoozed.code == 0, snoozed.err
        rows = {
            each["id"]: each
            for each in json.loads(desk.redrive(*remote, "alerts", "list", "--output", "json").out)
        }
        assert rows[first["id"]]["acknowledged_by"]
        assert rows[second["id"]]["snoozed_until"]
        assert "seen by" in desk.redrive("alerts", "list").out
        assert desk.redrive("alerts", "resolve", first["id"]).code == 0
        until_now(lambda: len(receiver.told) == 3)
        again = desk.redrive("alerts", "resolve", first["id"])
        assert again.code != 0
        assert "over" in again.err

    assert told(receiver)[-1][0] == "resolved"
    ledger = desk.redrive("audit", "list", "--output", "json").out
    for deed in ("alert acknowledge", "alert snooze", "alert resolve"):
        assert deed in ledger


def _token(served: Served) -> Path:
    file = served.folder / "token"
    file.write_text(served.token)
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("point", ["alerts.saved", "alerts.handed_over"])
def test_a_server_that_is_killed_while_it_tells_leaves_it_to_the_next_one(
    desk: Desk, receiver: Receiver, point: str
) -> None:
    desk.record(dead())

    ended = desk.process("serve", "--port", "0", faults=f"{point}=kill9")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert not receiver.told

    desk.do(_without_the_duty)  # its lease would have to run out first
    with serving(desk):
        until_now(lambda: receiver.told)
        until_now(lambda: not desk.do(_untold))

    assert told(receiver) == [("raised", "new_group")]


async def _untold(store: Any, _transport: Any) -> list[str]:
    return [each.key for each in await store.incidents() if each.message is not None]


async def _without_the_duty(store: Any, _transport: Any) -> None:
    from sqlalchemy import text  # noqa: PLC0415  beside its only use

    await store._write(lambda connection: connection.execute(text("UPDATE duties SET holder = NULL")))


def test_a_worker_that_is_killed_is_missed_and_one_that_is_stopped_is_not(desk: Desk, receiver: Receiver) -> None:
    rules = '[alerts.rules.worker_down]\nwindow = "1s"\n'
    (desk.folder / "redrive.toml").write_text(settings(receiver.port, rules))
    (desk.folder / "app.py").write_text(
        "from redrive import App\napp = App('shop')\n\n@app.handler('orders')\ndef charge(message): pass\n"
    )
    variables = dict(os.environ)
    with serving(desk):
        for signalled, left in ((signal.SIGTERM, 0), (signal.SIGKILL, 1)):
            worker = Recorded(REDRIVE, "work", "app:app", cwd=desk.folder, env=variables)
            until_now(lambda: desk.do(_reports) == 1)
            worker.send_signal(signalled)
            worker.ended()
            assert desk.do(_reports) == left


async def _reports(store: Any, _transport: Any) -> int:
    since = datetime.now(UTC) - timedelta(hours=1)
    return len(await store.processes(since=since, spools_since=since))


def test_one_channel_that_could_never_send_is_no_reason_not_to_tell_by_the_others(
    desk: Desk, receiver: Receiver
) -> None:
    broken = '[alerts.channels.broken]\nurl = "http://10.0.0.1/"\nsecret = "none-of-ours"\n'
    (desk.folder / "redrive.toml").write_text(settings(receiver.port, broken))
    checked = desk.redrive("config", "check")
    assert checked.code != 0  # a secret that is none is refused at the start

    odd = '[alerts.channels.odd]\nurl = "slak://token/x"\n'
    (desk.folder / "redrive.toml").write_text(settings(receiver.port, odd))
    with serving(desk):
        desk.record(dead())
        until_now(lambda: receiver.told)
    assert told(receiver) == [("raised", "new_group")]


# The API


def test_alerts_of_other_queues_are_not_there(desk: Desk, receiver: Receiver) -> None:
    with serving(desk) as served:
        desk.record(dead(queue="orders"), dead(queue="bills"))
        until_now(lambda: len(receiver.told) == 2)
        made = desk.redrive("tokens", "create", "ann", "--grant", "viewer:orders")
        headers = {"authorization": f"Bearer {made.out.strip()}"}
        found = httpx2.get(f"{served.url}/api/v1/alerts", headers=headers).json()["items"]
        assert [each["queue"] for each in found] == ["orders"]
        others = next(each["id"] for each in listed(desk) if each["queue"] == "bills")
        shown = httpx2.get(f"{served.url}/api/v1/alerts/{others}", headers=headers)
        denied = httpx2.post(f"{served.url}/api/v1/alerts/{found[0]['id']}/acknowledge", headers=headers, json={})
        assert (shown.status_code, denied.status_code) == (404, 403)
