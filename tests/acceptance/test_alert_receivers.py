"""Slack, PagerDuty and mail, as they see us: real processes of ours, real TLS, real SMTP.

apprise calls services by their real names. So the way there is a proxy of the test's, behind which a server has a
certificate for those names, of an authority that the processes are told to trust.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from redrive.alerts.alert import Severity
from redrive.alerts.apprise_channel import AppriseChannel
from redrive.alerts.texts import Texts
from redrive.errors import ConfigurationError, NotDelivered
from support.alert_receivers import Receiver, black_hole, endless, proxy_to, receiving_mail
from support.alerts import GROUP, INCIDENT, raised, resolved
from support.certificates import Certificates, make_certificates
from support.listener import http, listening
from support.loopback_ports import free_ports
from support.patience import until

TEXTS = Texts(public_url="https://redrive.example.org", place="production")
LINK = f"https://redrive.example.org/groups/{GROUP}"
SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
ROUTING_KEY, API_KEY = "r0ut1ngk3yr0ut1ngk3yr0ut1ngk3y00", "ap1k3y"
PAGERDUTY = f"pagerduty://{ROUTING_KEY}@{API_KEY}"
TEAMS = "workflows://prod-00.westeurope.logic.azure.com/0123456789abcdef/s1gnatures1gnature"
NAMES = ("hooks.slack.com", "events.pagerduty.com", "prod-00.westeurope.logic.azure.com")


def channel(url: str, **options: float) -> AppriseChannel:
    return AppriseChannel(url, texts=TEXTS, **options)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"), names=NAMES)


@asynccontextmanager
async def services(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, *answers: str
) -> AsyncIterator[tuple[Receiver, list[str]]]:
    """What stands for all of them, and whom our processes wanted to reach."""
    security = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    security.load_cert_chain(certificates.certificate, certificates.key)
    receiver = Receiver(*answers)
    async with listening(receiver, security=security), proxy_to(receiver.port) as (port, wanted):
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates.authority))
        yield receiver, wanted


async def test_pagerduty_gets_one_incident_by_its_dedup_key_and_its_end(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field by field as developer.pagerduty.com has "Send an alert event" of the Events API v2."""
    alert = raised()
    async with services(certificates, monkeypatch, "202 Accepted") as (pagerduty, wanted):
        await channel(PAGERDUTY).deliver(alert)
        await channel(PAGERDUTY).deliver(resolved(alert))

    assert wanted == ["events.pagerduty.com:443"] * 2
    begun, over = pagerduty.told
    assert begun.line == "POST /v2/enqueue HTTP/1.1"
    assert begun.headers["content-type"] == "application/json"
    assert begun.json == {
        "routing_key": ROUTING_KEY,
        "event_action": "trigger",
        "dedup_key": alert.dedup_key,
        "client": "Redrive",
        "links": [{"href": LINK}],
        "payload": {
            "summary": "[critical] TimeoutError: no answer from [masked] (production)",
            "severity": "critical",
            "source": "production",
            "component": "dead-letters",
            "class": "new_group",
            "custom_details": {
                "letters": "10,000",
                "per minute": "40",
                "queue": "orders",
                "rule": "new_group",
                "alert": INCIDENT,
                "environment": "production",
                "since": "2026-03-01 12:00:00 UTC",
            },
        },
    }
    assert over.json == {"routing_key": ROUTING_KEY, "event_action": "resolve", "dedup_key": alert.dedup_key}


@pytest.mark.parametrize("severity", ["info", "warning", "error", "critical"])
async def test_pagerduty_is_told_our_severity(
    severity: str, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with services(certificates, monkeypatch, "202 Accepted") as (pagerduty, _):
        await channel(f"{PAGERDUTY}/shop/api?class=mine").deliver(raised(severity=Severity(severity)))
    payload = pagerduty.told[0].json["payload"]
    assert (payload["severity"], payload["source"], payload["component"]) == (severity, "shop", "api")
    assert payload["class"] == "mine"


async def test_slack_gets_a_message_of_its_format_with_counts_and_link(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As api.slack.com has incoming webhooks and their attachments."""
    alert = raised()
    async with services(certificates, monkeypatch) as (slack, wanted):
        await channel(SLACK).deliver(alert)
        await channel(SLACK).deliver(resolved(alert))

    assert wanted == ["hooks.slack.com:443"] * 2
    begun, over = slack.told
    assert begun.line == "POST /services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ HTTP/1.1"
    assert begun.headers["content-type"].startswith("application/json")
    first, last = begun.json, over.json
    assert all(isinstance(each["attachments"][0].pop("ts"), float) for each in (first, last))
    assert first == {
        "mrkdwn": False,
        "attachments": [
            {
                "title": "[critical] TimeoutError: no answer from [masked] (production)",
                "text": "TimeoutError: no answer from [masked]\n\n"
                "letters: 10,000\nper minute: 40\nqueue: orders\nrule: new_group\n"
                f"alert: {INCIDENT}\nenvironment: production\nsince: 2026-03-01 12:00:00 UTC\n\n"
                f"To acknowledge or snooze it: https://redrive.example.org/alerts/{INCIDENT}\n\n{LINK}",
                "color": "#A32037",
                "footer": "Redrive",
            }
        ],
    }
    assert last == {
        "mrkdwn": False,
        "attachments": [
            {
                "title": "[resolved, was critical] TimeoutError: no answer from [masked] (production)",
                "text": TEXTS.body(resolved(alert)),
                "color": "#3AA337",
                "footer": "Redrive",
            }
        ],
    }


async def test_teams_gets_an_adaptive_card_by_a_workflow(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As learn.microsoft.com has "Post a message when a webhook request is received"."""
    alert = raised()
    async with services(certificates, monkeypatch, "202 Accepted") as (teams, wanted):
        await channel(TEAMS).deliver(alert)
        await channel(TEAMS).deliver(resolved(alert))

    assert wanted == ["prod-00.westeurope.logic.azure.com:443"] * 2
    begun, over = teams.told
    assert begun.line.startswith("POST /workflows/0123456789abcdef/triggers/manual/paths/invoke?")
    card = begun.json
    title, body = card["attachments"][0]["content"].pop("body")
    assert card == {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": None,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "msteams": {"width": "full"},
                },
            }
        ],
    }
    assert title["text"] == "[critical] TimeoutError: no answer from [masked] (production)"
    assert body["text"].replace("\\", "") == TEXTS.body(alert)  # what Markdown would read is escaped
    assert over.json["attachments"][0]["content"]["body"][0]["text"].startswith("[resolved, was critical] ")


async def test_a_title_that_calls_the_whole_channel_is_only_text_in_slack(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "<!channel> <@U024BE7LH> <https://evil.example|your bank> & *bold*"
    async with services(certificates, monkeypatch) as (slack, _):
        await channel(SLACK).deliver(raised(title=hostile))
    [attachment] = slack.told[0].json["attachments"]
    for text in (attachment["title"], attachment["text"]):
        assert "<" not in text
        assert "&lt;!channel&gt;" in text


async def test_mail_has_a_subject_a_body_and_no_header_of_whoever_made_the_title() -> None:
    hostile = raised(title="Timeout\r\nBcc: everybody@example.org\r\n\r\nhello")
    async with receiving_mail() as mailbox:
        url = f"mailto://127.0.0.1:{mailbox.port}?from=redrive@example.org&to=ops@example.org&mode=insecure"
        await channel(url).deliver(hostile)
        await channel(url).deliver(resolved(hostile))

    begun, over = mailbox.mails
    assert mailbox.recipients == [["ops@example.org"]] * 2
    assert begun["subject"] == "[critical] Timeout Bcc: everybody@example.org hello (production)"
    assert begun["bcc"] is None
    assert "redrive@example.org" in begun["from"]
    text = begun.get_body(("plain", "html"))
    assert text is not None
    assert "letters: 10,000" in text.get_content()
    assert LINK in text.get_content()
    assert over["subject"].startswith("[resolved, was critical] ")


@pytest.mark.parametrize("status", ["500 Oops", "429 Slow down", "403 No"])
async def test_a_service_that_does_not_take_it_is_told_by_its_status(status: str) -> None:
    async with listening(Receiver(status)) as receiver:
        with pytest.raises(NotDelivered, match=rf"json did not take it \(status {status[:3]}\)") as told:
            await channel(f"json://127.0.0.1:{receiver.port}/t0ken").deliver(raised())
    assert not told.value.permanent
    assert "t0ken" not in f"{told.value!r} {told.value.remedy}"


async def test_nobody_is_redirected() -> None:
    class Redirecting(Receiver):
        def reply(self, request: bytes) -> bytes:
            super().reply(request)
            return http(b"", "307 There", f"location: http://127.0.0.1:{inside.port}/")

    async with listening() as inside, listening(Redirecting()) as receiver:
        with pytest.raises(NotDelivered):
            await channel(f"json://127.0.0.1:{receiver.port}/").deliver(raised())
        assert (inside.seen, receiver.seen) == (0, 1)


async def test_a_service_that_is_down_did_not_take_it() -> None:
    with pytest.raises(NotDelivered, match="did not take it"):
        await channel(f"json://127.0.0.1:{free_ports(1)[0]}/").deliver(raised())


async def test_a_service_that_does_not_answer_costs_a_process_that_is_killed_in_time() -> None:
    async with black_hole() as (port, _):
        with pytest.raises(NotDelivered, match=r"did not answer in 0\.2 s"):
            await channel(f"json://127.0.0.1:{port}/?rto=600", deadline=0.2).deliver(raised())


async def test_whoever_no_longer_waits_leaves_no_process_behind() -> None:
    async with black_hole() as (port, connected):
        sending = asyncio.create_task(channel(f"json://127.0.0.1:{port}/?rto=600").deliver(raised()))
        await until(lambda: connected)
        sending.cancel()
        await until(lambda: not connected)
        with pytest.raises(asyncio.CancelledError):
            await sending


async def test_an_endless_answer_fills_no_memory_of_ours() -> None:
    """The process that reads it has a limit, and fails by it long before its deadline."""
    async with endless() as port:
        with pytest.raises(NotDelivered):
            await channel(f"json://127.0.0.1:{port}/", deadline=240).deliver(raised())


async def test_a_url_that_apprise_does_not_know_is_told_without_being_quoted() -> None:
    for url in ("slak://t0ken/a/b", "slack://t0ken"):
        with pytest.raises(ConfigurationError, match="does not understand this sla") as told:
            await channel(url).check()
        with pytest.raises(NotDelivered, match="does not understand") as refused:
            await channel(url).deliver(raised())
        assert refused.value.permanent
        assert "t0ken" not in f"{told.value} {told.value.remedy} {refused.value} {refused.value.remedy}"


async def test_checking_sends_nothing() -> None:
    async with listening(Receiver()) as receiver:
        await channel(f"json://127.0.0.1:{receiver.port}/").check()
        assert receiver.seen == 0


async def test_a_file_of_the_working_folder_is_not_taken_for_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "requests.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    async with listening(Receiver()) as receiver:
        await channel(f"json://127.0.0.1:{receiver.port}/").deliver(raised())
        assert receiver.seen == 1
