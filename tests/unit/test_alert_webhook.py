"""Our webhook, against a real receiver that checks the signature by the words of the documentation."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from redrive.alerts.channels import open_channel
from redrive.alerts.signing import key_of, signature
from redrive.alerts.texts import Texts
from redrive.alerts.webhook import Webhook
from redrive.errors import ConfigurationError, MissingExtra, NotDelivered
from redrive.outgoing import Outgoing
from redrive.testing.clock import ManualClock
from support.alert_receivers import Receiver, Request, black_hole, endless
from support.alerts import AT, GROUP, INCIDENT, SECRET, raised, resolved
from support.listener import http, listening
from support.loopback_ports import free_ports

DOCS = (Path(__file__).parents[2] / "docs" / "alert-channels.md").read_text()
TEXTS = Texts(public_url="https://redrive.example.org", place="production")


def webhook(port: int, *, clock: ManualClock | None = None, deadline: float = 5.0) -> Webhook:
    outgoing = Outgoing(allowed=[f"localhost:{port}"], deadline=deadline)
    url = f"http://localhost:{port}/hooks/redrive?team=ops"
    return Webhook(url, secret=SECRET, texts=TEXTS, outgoing=outgoing, clock=clock or ManualClock(AT))


def is_signed(request: Request, secret: str) -> bool:
    """From the documentation's words, with HMAC written out (RFC 2104): nothing of ours is used."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    key = key.ljust(64, b"\0")
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    inner = hashlib.sha256(bytes(each ^ 0x36 for each in key) + signed).digest()
    outer = hashlib.sha256(bytes(each ^ 0x5C for each in key) + inner).digest()
    return f"v1,{base64.b64encode(outer).decode()}" in request.headers["webhook-signature"].split(" ")


async def test_the_receiver_gets_every_fact_by_its_documented_name() -> None:
    alert = raised()
    async with listening(Receiver()) as receiver:
        await webhook(receiver.port).deliver(alert)

    assert isinstance(receiver, Receiver)
    [request] = receiver.told
    assert request.line == "POST /hooks/redrive?team=ops HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert request.json == {
        "version": 1,
        "id": alert.id,
        "dedup_key": f"new_group/{GROUP}",
        "rule": "new_group",
        "severity": "critical",
        "state": "raised",
        "title": "TimeoutError: no answer from [masked]",
        "counts": {"letters": 10000, "per minute": 40},
        "queue": "orders",
        "group_id": GROUP,
        "since": "2026-03-01T12:00:00Z",
        "at": "2026-03-01T12:05:00Z",
        "path": f"/groups/{GROUP}",
        "environment": "production",
        "url": f"https://redrive.example.org/groups/{GROUP}",
        "incident_id": INCIDENT,
        "alert_url": f"https://redrive.example.org/alerts/{INCIDENT}",
    }
    table = DOCS.split("## The body of a webhook")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(request.json)


async def test_a_receiver_can_tell_who_sent_it_when_and_that_nobody_changed_it() -> None:
    alert = raised()
    async with listening(Receiver()) as receiver:
        await webhook(receiver.port).deliver(alert)
        await webhook(receiver.port).deliver(resolved(alert))

    assert isinstance(receiver, Receiver)
    for request in receiver.told:
        assert is_signed(request, SECRET)
        assert not is_signed(request, "whsec_" + base64.b64encode(b"x" * 32).decode())
        assert not is_signed(request._replace(body=request.body.replace(b"critical", b"info")), SECRET)
        for header in ("webhook-id", "webhook-timestamp"):
            changed = {**request.headers, header: request.headers[header][:-1] + "0x"}
            assert not is_signed(request._replace(headers=changed), SECRET)
    assert receiver.told[0].headers["webhook-id"] == alert.id
    assert receiver.told[0].headers["webhook-timestamp"] == str(int(AT.timestamp()))
    assert [each.json["state"] for each in receiver.told] == ["raised", "resolved"]


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The example of its specification."""
    body = b'{"test": 2432232314}'
    made = signature(key_of(SECRET), message_id="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp=1614265330, body=body)
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_the_documented_receiver_takes_what_is_ours_and_nothing_else() -> None:
    example = DOCS.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102  what the documentation tells people to write
    verified = names["verified"]
    async with listening(Receiver()) as receiver:
        await webhook(receiver.port).deliver(raised())
    assert isinstance(receiver, Receiver)
    [request] = receiver.told
    now = AT.timestamp()

    assert verified(request.headers, request.body, SECRET, now=now)["dedup_key"] == f"new_group/{GROUP}"

    for headers, body, secret, moment in (
        (request.headers, request.body + b" ", SECRET, now),
        (request.headers, request.body, "whsec_" + base64.b64encode(b"x" * 32).decode(), now),
        (request.headers, request.body, SECRET, now + 301),
        (request.headers, request.body, SECRET, now - 301),
        ({**request.headers, "webhook-id": "other"}, request.body, SECRET, now),
        ({**request.headers, "webhook-signature": "v1,"}, request.body, SECRET, now),
    ):
        with pytest.raises(ValueError, match="not"):
            verified(headers, body, secret, now=moment)


async def test_sent_again_it_has_the_same_id_and_a_new_timestamp() -> None:
    alert, clock = raised(), ManualClock(AT)
    async with listening(Receiver("503 Later", "200 OK")) as receiver:
        channel = webhook(receiver.port, clock=clock)
        with pytest.raises(NotDelivered):
            await channel.deliver(alert)
        clock.advance(60)
        await channel.deliver(alert)

    assert isinstance(receiver, Receiver)
    first, second = receiver.told
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) == 60
    assert first.body == second.body
    assert is_signed(second, SECRET)


@pytest.mark.parametrize(
    ("status", "permanent"),
    [
        *(("500 Oops", False), ("503 Later", False), ("429 Slow down", False), ("408 Timeout", False)),
        *(("400 Bad", True), ("401 Who", True), ("404 Gone", True), ("302 Found", True), ("308 Moved", True)),
    ],
)
async def test_whether_trying_again_helps_is_judged_by_the_status(status: str, permanent: object) -> None:
    async with listening(Receiver(status)) as receiver:
        with pytest.raises(NotDelivered, match=f"status {status[:3]}") as told:
            await webhook(receiver.port).deliver(raised())
    assert told.value.permanent is permanent


@pytest.mark.parametrize(
    ("later", "seconds"),
    [
        *(("120", 120.0), ("Sun, 01 Mar 2026 12:06:00 GMT", 60.0), ("9" * 40, 1e40)),
        *(("9" * 41, None), ("", None), ("-5", None), ("soon", None), ("1.5", None), ("٣", None)),
    ],
)
async def test_when_the_receiver_wants_to_be_asked_again_is_told(later: str, seconds: float | None) -> None:
    async with listening(http(b"", "503 Later", f"retry-after: {later}")) as receiver:
        with pytest.raises(NotDelivered) as told:
            await webhook(receiver.port).deliver(raised())
    assert told.value.again_in == (None if seconds is None else pytest.approx(seconds))


async def test_nobody_is_redirected() -> None:
    class Redirecting(Receiver):
        def reply(self, request: bytes) -> bytes:
            super().reply(request)
            return http(b"", "307 There", f"location: http://localhost:{inside.port}/")

    async with listening() as inside, listening(Redirecting()) as receiver:
        with pytest.raises(NotDelivered, match="nobody is redirected"):
            await webhook(receiver.port).deliver(raised())
        assert (inside.seen, receiver.seen) == (0, 1)


async def test_a_receiver_that_is_down_slow_or_endless_is_not_waited_for() -> None:
    with pytest.raises(NotDelivered) as refused:
        await webhook(free_ports(1)[0]).deliver(raised())
    async with black_hole() as (port, _):
        with pytest.raises(NotDelivered, match="did not answer") as slow:
            await webhook(port, deadline=0.1).deliver(raised())
    async with endless() as port:
        with pytest.raises(NotDelivered, match="64 KiB") as large:
            await webhook(port).deliver(raised())
    assert not any(each.value.permanent for each in (refused, slow, large))


async def test_an_address_inside_is_never_asked_unless_its_host_is_allowed() -> None:
    async with listening() as inside:
        url = f"https://127.0.0.1:{inside.port}/"
        channel = Webhook(url, secret=SECRET, texts=TEXTS, outgoing=Outgoing(ports=[inside.port]))
        with pytest.raises(NotDelivered, match="not a public host") as told:
            await channel.deliver(raised())
        assert told.value.permanent
        assert inside.seen == 0
    plain = Webhook("http://hooks.example.org/", secret=SECRET, texts=TEXTS, outgoing=Outgoing())
    with pytest.raises(ConfigurationError, match="http is not private"):
        await plain.check()


async def test_no_error_tells_the_secret_the_path_or_what_was_answered() -> None:
    async with listening(Receiver("500 SECRET-OF-THE-RECEIVER")) as receiver:
        with pytest.raises(NotDelivered) as told:
            await webhook(receiver.port).deliver(raised())
    text = f"{told.value} {told.value.remedy} {told.value!r}"
    for secret in ("SECRET-OF", "team=ops", "hooks/redrive", SECRET):
        assert secret not in text


@pytest.mark.parametrize(
    "secret", ["", "plain", "whsec_", "whsec_!!!", f"whsec_{'QUJD'}", SECRET.removeprefix("whsec_")]
)
def test_a_secret_that_is_none_is_refused_without_being_quoted(secret: str) -> None:
    with pytest.raises(ConfigurationError, match="openssl rand") as told:
        Webhook("https://x.example/", secret=secret, texts=TEXTS, outgoing=Outgoing())
    assert not secret or f"'{secret}'" not in str(told.value)


def test_a_missing_extra_is_one_line_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redrive.alerts.channels.find_spec", lambda _name: None)
    for url in ("slack://a/b/c", "https://hooks.example.org/"):
        with pytest.raises(MissingExtra) as told:
            open_channel(url, secret=SECRET, texts=TEXTS, outgoing=Outgoing())
        assert told.value.remedy == "pip install 'redrive[alerts]'"
        assert "\n" not in str(told.value)


def test_a_webhook_without_a_secret_says_how_chats_are_written() -> None:
    with pytest.raises(ConfigurationError, match="needs a secret") as told:
        open_channel("https://hooks.slack.com/services/A/B/C", secret=None, texts=TEXTS, outgoing=Outgoing())
    assert "slack://" in told.value.remedy


async def test_a_hostile_title_is_tame_in_the_body_too() -> None:
    async with listening(Receiver()) as receiver:
        await webhook(receiver.port).deliver(raised(title="a\r\nb\x00\u202ec " + "x" * 900))
    assert isinstance(receiver, Receiver)
    title = json.loads(receiver.told[0].body)["title"]
    assert title.startswith("a b c x")
    assert len(title) == 200
    assert msgspec.json.decode(receiver.told[0].body)["title"] == title
