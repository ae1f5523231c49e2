"""`redrive alerts` as people use it, and what a kill in the middle leaves."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from redrive.alerts.alert import Alert
from redrive.alerts.outbox import Outbox
from redrive.clock import SystemClock
from redrive.configuration import load
from support.alert_receivers import receiving
from support.alerts import SECRET, raised
from support.desk import Desk
from support.loopback_ports import free_ports

TOKEN = "T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"  # noqa: S105  made up, to be looked for


def settings(port: int) -> str:
    return f"""
[alerts]
allowed_hosts = ["localhost:{port}"]
[alerts.channels.ops]
url = "http://localhost:{port}/hooks/t0ken"
secret = "{SECRET}"
[alerts.channels.chat]
url = "slack://{TOKEN}"
min_severity = "error"
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def at_outbox(desk: Desk, work: Callable[[Outbox], Any]) -> Any:
    async def run() -> Any:
        outbox = Outbox(desk.folder / ".redrive/alerts.db")
        try:
            return await work(outbox)
        finally:
            await outbox.close()

    return asyncio.run(run())


def give_up(desk: Desk, *alerts: Alert) -> list[int]:
    """Their numbers in the list."""

    async def work(outbox: Outbox) -> list[int]:
        for alert in alerts:
            now = SystemClock().now()
            await outbox.put(alert, ["ops"], now)
            claimed = await outbox.claim("ops", now)
            assert claimed is not None
            await outbox.failed("ops", claimed, "refused", now=now, again_at=None)
        return [each.number for each in await outbox.undelivered()]

    numbers: list[int] = at_outbox(desk, work)
    return numbers


def listed(desk: Desk) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(desk.redrive("alerts", "undelivered", "list", "--output", "json").out)
    return found


# Trying a channel out


def test_a_test_sends_a_beginning_and_an_end_and_says_so(desk: Desk) -> None:
    with receiving() as receiver:
        (desk.folder / "redrive.toml").write_text(settings(receiver.port))
        ended = desk.redrive("alerts", "test", "ops")

    assert (ended.code, ended.out.splitlines()) == (
        0,
        ["ops (webhook): raised was delivered.", "ops (webhook): resolved was delivered."],
    )
    assert "server.public_url" in ended.err
    begun, over = (each.json for each in receiver.told)
    assert (begun["state"], over["state"], begun["rule"]) == ("raised", "resolved", "test")
    assert begun["dedup_key"] == over["dedup_key"]


@pytest.mark.parametrize(
    ("answers", "code", "told"),
    [
        (["500 Oops"], 6, "raised was not delivered: the receiver answered with status 500"),
        (["404 Gone"], 1, "raised was not delivered: the receiver answered with status 404"),
        (["200 OK", "500 Oops"], 4, "resolved was not delivered: the receiver answered with status 500"),
    ],
)
def test_the_exit_code_of_a_test_says_what_happened(desk: Desk, answers: list[str], code: int, told: str) -> None:
    with receiving(*answers) as receiver:
        (desk.folder / "redrive.toml").write_text(settings(receiver.port))
        ended = desk.redrive("alerts", "test", "ops")
    assert ended.code == code
    assert f"error: ops (webhook): {told}" in ended.err


def test_a_channel_that_is_down_or_does_not_exist_is_told(desk: Desk) -> None:
    (desk.folder / "redrive.toml").write_text(settings(free_ports(1)[0]))
    down = desk.redrive("alerts", "test", "ops")
    unknown = desk.redrive("alerts", "test", "nobody")
    assert (down.code, unknown.code) == (6, 3)
    assert "the settings have: ops, chat" in unknown.err


# Channels


def test_channels_are_listed_with_what_became_of_alerts_and_without_secrets(desk: Desk) -> None:
    (desk.folder / "redrive.toml").write_text(settings(free_ports(1)[0]))
    give_up(desk, raised("a"))

    ended = desk.redrive("alerts", "channels", "--output", "json")

    ops, chat = json.loads(ended.out)
    assert ended.code == 0, ended.err
    assert (ops["channel"], ops["kind"], ops["undelivered"], ops["problem"]) == ("ops", "webhook", 1, "")
    assert (chat["channel"], chat["kind"], chat["min_severity"], chat["problem"]) == ("chat", "slack", "error", "")
    _no_secret(ended.out + ended.err)


def test_a_channel_that_could_never_send_anything_is_a_problem(desk: Desk) -> None:
    (desk.folder / "redrive.toml").write_text(
        f'[alerts.channels.a]\nurl = "http://localhost:1/t0ken"\nsecret = "{SECRET}"\n'
        '[alerts.channels.b]\nurl = "slak://t0ken/x"\n'
    )
    ended = desk.redrive("alerts", "channels")
    assert ended.code == 2
    assert "http is not private" in ended.out
    assert "does not understand this slak:// URL" in ended.out
    _no_secret(ended.out + ended.err)


def test_what_is_left_of_a_channel_that_is_no_longer_in_the_settings_is_told(desk: Desk) -> None:
    give_up(desk, raised("a"))
    ended = desk.redrive("alerts", "channels", "--output", "json")
    [row] = json.loads(ended.out)
    assert (ended.code, row["channel"], row["undelivered"]) == (2, "ops", 1)
    assert "there is no channel 'ops'" in row["problem"]
    assert desk.redrive("alerts", "undelivered", "resend", "--all").code == 3
    assert desk.redrive("alerts", "undelivered", "drop", "--all", "--yes").code == 0
    assert json.loads(desk.redrive("alerts", "channels", "--output", "json").out) == []


def _no_secret(text: str) -> None:
    for secret in ("t0ken", TOKEN, TOKEN.split("/")[2], SECRET):
        assert secret not in text


def test_secrets_are_in_no_setting_that_is_shown_and_in_no_log(desk: Desk) -> None:
    with receiving("500 Oops") as receiver:
        (desk.folder / "redrive.toml").write_text(settings(receiver.port))
        for command in (
            ("config", "show"),
            ("config", "show", "--output", "json"),
            ("config", "check"),
            ("--verbose", "alerts", "test", "ops"),
            ("--verbose", "alerts", "channels"),
        ):
            ended = desk.redrive(*command)
            _no_secret(ended.out + ended.err)
        shown = {
            row["key"]: row["value"] for row in json.loads(desk.redrive("config", "show", "--output", "json").out)
        }
    assert shown["alerts.channels.ops.url"] == "http://***"
    assert shown["alerts.channels.ops.secret"] == "***"
    assert shown["alerts.channels.chat.url"] == "slack://***"
    assert "alerts.channels.chat.secret" not in shown


# Settings


def test_urls_and_secrets_can_come_from_files(desk: Desk) -> None:
    (desk.folder / "url").write_text(f"slack://{TOKEN}\n")
    (desk.folder / "secret").write_text(f"{SECRET}\n")
    loaded = load(
        environ={
            "REDRIVE_ALERTS__CHANNELS__CHAT__URL_FILE": str(desk.folder / "url"),
            "REDRIVE_ALERTS__CHANNELS__OPS__URL": "https://hooks.example.org/",
            "REDRIVE_ALERTS__CHANNELS__OPS__SECRET_FILE": str(desk.folder / "secret"),
        }
    )
    channels = loaded.settings.alerts.channels
    assert channels["chat"].url.reveal() == f"slack://{TOKEN}"
    secret = channels["ops"].secret
    assert secret is not None
    assert secret.reveal() == SECRET
    _no_secret(repr(loaded) + str(loaded.settings))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("url = 'https://hooks.slack.com/services/t0ken'", "needs `secret`; for Slack, Teams and others write"),
        (f"url = 'slack://t0ken/x'\nsecret = '{SECRET}'", "`secret` is for webhooks"),
        ("url = 'https://x.example'\nsecret = 't0ken'", "should be whsec_ and base64 of 24 to 64 random bytes"),
        ("url = 't0ken'", "alerts.channels.ops.url should be a URL such as 'slack://…'"),
        ("min_severity = 'error'", "should say `url`"),
        ("url = 'slack://t0ken/x'\nmin_severity = 'loud'", "alerts.channels.ops.min_severity should be 'info', "),
        ("ulr = 'slack://t0ken/x'", "unknown setting 'alerts.channels.ops.ulr'"),
    ],
)
def test_a_channel_that_cannot_be_used_is_told_with_its_line(desk: Desk, text: str, told: str) -> None:
    (desk.folder / "redrive.toml").write_text(f"[alerts.channels.ops]\n{text}\n")
    ended = desk.redrive("config", "check")
    assert ended.code == 2
    assert told in ended.err
    assert "redrive.toml, line " in ended.err
    _no_secret(ended.err)


def test_an_unknown_key_names_the_nearest_one_of_a_channel(desk: Desk) -> None:
    (desk.folder / "redrive.toml").write_text("[alerts.channels.ops]\nurl = 'json://x'\nmin_severty = 'info'\n")
    assert "did you mean alerts.channels.ops.min_severity?" in desk.redrive("config", "check").err


@pytest.mark.parametrize(
    "url", ["redrive.example.org", "https://a b", "https://u:p@x/", "https://x/?q=1", "ftp://x"]
)
def test_a_public_url_that_is_none_is_refused(desk: Desk, url: str) -> None:
    (desk.folder / "redrive.toml").write_text(f"[server]\npublic_url = '{url}'\n")
    ended = desk.redrive("config", "check")
    assert (ended.code, "server.public_url should be a URL such as" in ended.err) == (2, True)


# Undelivered


def test_what_was_given_up_is_listed_sent_again_and_dropped(desk: Desk) -> None:
    alert = raised("a")
    with receiving() as receiver:
        (desk.folder / "redrive.toml").write_text(settings(receiver.port))
        first, second, third = give_up(desk, alert, raised("b"), raised("c"))
        rows = listed(desk)
        for command in ("resend", "drop"):
            dry = desk.redrive("alerts", "undelivered", command, "--all", "--dry-run")
            assert (dry.code, "3 alerts. Nothing was changed." in dry.out) == (0, True)
        resent = desk.redrive("alerts", "undelivered", "resend", str(first))
        unasked = desk.redrive("alerts", "undelivered", "drop", str(second))
        dropped = desk.redrive("alerts", "undelivered", "drop", str(second), "--yes")
        rest = desk.redrive("alerts", "undelivered", "resend", "--all")

    assert [(row["number"], row["channel"], row["reason"], row["attempts"]) for row in rows] == [
        (number, "ops", "refused", 1) for number in (first, second, third)
    ]
    assert (resent.code, resent.out) == (0, f"{first}: delivered by ops.\n")
    assert unasked.code == 5
    assert (dropped.code, dropped.out) == (0, "Dropped 1 alert.\n")
    assert rest.code == 0
    assert [each.json["dedup_key"] for each in receiver.told] == ["a", "c"]
    assert receiver.told[0].json["id"] == alert.id
    assert listed(desk) == []


def test_what_is_refused_again_stays_on_the_list_with_its_new_reason(desk: Desk) -> None:
    with receiving("500 Oops") as receiver:
        (desk.folder / "redrive.toml").write_text(settings(receiver.port))
        give_up(desk, raised("a"))
        ended = desk.redrive("alerts", "undelivered", "resend", "--all")
    assert ended.code == 6
    [row] = listed(desk)
    assert (row["attempts"], row["reason"]) == (2, "the receiver answered with status 500")


def test_what_is_not_on_the_list_is_told(desk: Desk) -> None:
    for command, code in (
        (("resend", "7"), 3),
        (("drop", "--all", "--yes"), 3),
        (("resend",), 2),
        (("drop", "7", "--all"), 2),
    ):
        ended = desk.redrive("alerts", "undelivered", *command)
        assert (ended.code, "Traceback" in ended.err) == (code, False)
    assert desk.redrive("alerts", "undelivered", "list").code == 0


@pytest.mark.parametrize("point", ["alerts.delivered", "alerts.before_commit", "alerts.after_commit"])
def test_killed_while_sending_again_nothing_is_lost(desk: Desk, point: str) -> None:
    """It comes a second time under the same id, or it is off the list because it was delivered."""
    alert = raised("a")
    with receiving() as receiver:
        (desk.folder / "redrive.toml").write_text(settings(receiver.port))
        give_up(desk, alert)
        ended = desk.process("alerts", "undelivered", "resend", "--all", faults=f"{point}=kill9")
        assert ended.returncode == -signal.SIGKILL
        left = listed(desk)
        assert len(left) == (0 if point == "alerts.after_commit" else 1)
        if left:
            assert desk.redrive("alerts", "undelivered", "resend", "--all").code == 0
    assert {each.json["id"] for each in receiver.told} == {alert.id}
    assert len(receiver.told) == len(left) + 1
    assert listed(desk) == []
