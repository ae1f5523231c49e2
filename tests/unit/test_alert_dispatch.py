"""F32: a channel that is down, slow or flooded holds up neither others nor whoever raises alerts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from redrive.alert_settings import AlertSettings, ChannelSettings
from redrive.alerts.alert import Alert, Severity
from redrive.alerts.channels import Channel
from redrive.alerts.dispatch import LONGEST_ASKED, Dispatcher, Line
from redrive.alerts.incident import Incident
from redrive.alerts.outbox import Outbox
from redrive.alerts.texts import Texts
from redrive.alerts.webhook import Webhook
from redrive.alerts_wiring import dispatching as serving
from redrive.alerts_wiring import examine_undelivered, serve_alerts, undelivered
from redrive.errors import NotDelivered, Unreachable
from redrive.finding import FindingLevel
from redrive.metrics_wiring import ServerMetrics
from redrive.outgoing import Outgoing
from redrive.settings import Settings
from redrive.stores import Store, open_store
from redrive.testing.clock import ManualClock
from redrive.testing.store_contract_alerts import an_incident
from support.alert_receivers import Receiver, black_hole
from support.alerts import AT, SECRET, raised, resolved
from support.dead_letters import dead
from support.listener import listening
from support.loopback_ports import free_ports
from support.patience import until


class Scripted:
    """A fake channel: raises these, one after the other, and takes all from then on."""

    kind = "scripted"

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.tried: list[Alert] = []
        self.taken: list[Alert] = []

    async def deliver(self, alert: Alert) -> None:
        self.tried.append(alert)
        if self.errors:
            raise self.errors.pop(0)
        self.taken.append(alert)

    async def check(self) -> None: ...


class Stuck(Scripted):
    """A fake channel that never comes back by itself."""

    async def deliver(self, alert: Alert) -> None:
        self.tried.append(alert)
        await asyncio.Event().wait()


def away() -> NotDelivered:
    return NotDelivered("away", permanent=False)


@asynccontextmanager
async def dispatching(
    folder: Path,
    channels: Mapping[str, Channel],
    clock: ManualClock,
    *,
    attempts: int = 3,
    waiting: int = 100,
    **given: Any,
) -> AsyncIterator[tuple[Dispatcher, Outbox]]:
    outbox = Outbox(folder / "alerts.db", waiting=waiting)
    lines = {name: Line(channel) for name, channel in channels.items()}
    dispatcher = Dispatcher(lines, outbox, clock=clock, attempts=attempts, dice=lambda: 1.0, **given)
    running = asyncio.create_task(dispatcher.run())
    try:
        yield dispatcher, outbox
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await outbox.close()


def local_webhook(port: int) -> Webhook:
    outgoing = Outgoing(allowed=[f"localhost:{port}"])
    return Webhook(f"http://localhost:{port}/", secret=SECRET, texts=Texts(), outgoing=outgoing)


async def passes(clock: ManualClock, seconds: float) -> None:
    """Time, once somebody waits for it."""
    await until(lambda: clock.sleeping)
    clock.advance(seconds)


async def test_an_alert_goes_to_every_channel_that_is_to_hear_of_it(tmp_path: Path) -> None:
    everything, worst = Scripted(), Scripted()
    outbox = Outbox(tmp_path / "alerts.db")
    lines = {"all": Line(everything), "worst": Line(worst, Severity.ERROR)}
    dispatcher = Dispatcher(lines, outbox, clock=ManualClock(AT))
    running = asyncio.create_task(dispatcher.run())
    alerts = [raised(each, severity=Severity(each)) for each in Severity]

    for alert in alerts:
        await dispatcher.hand_over(alert)

    await until(lambda: len(everything.taken) == 4)
    await until(lambda: len(worst.taken) == 2)
    assert everything.taken == alerts
    assert worst.taken == alerts[2:]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await outbox.close()


async def test_what_is_not_taken_is_tried_again_after_waits_that_grow(tmp_path: Path) -> None:
    channel, clock = Scripted(away(), away()), ManualClock(AT)
    async with dispatching(tmp_path, {"ops": channel}, clock) as (dispatcher, _):
        await dispatcher.hand_over(raised())
        await until(lambda: len(channel.tried) == 1)
        await passes(clock, 1.9)
        await passes(clock, 0.2)
        await until(lambda: len(channel.tried) == 2)
        await passes(clock, 3.9)
        assert len(channel.tried) == 2
        await passes(clock, 0.2)
        await until(lambda: channel.taken)
    assert len({alert.id for alert in channel.tried}) == 1


@pytest.mark.parametrize(("asked", "waits"), [(120.0, 120), (1.0, 2), (1e9, LONGEST_ASKED)])
async def test_a_receiver_is_left_alone_for_as_long_as_it_asks_within_bounds(
    tmp_path: Path, asked: float, waits: float
) -> None:
    channel, clock = Scripted(NotDelivered("busy", permanent=False, again_in=asked)), ManualClock(AT)
    async with dispatching(tmp_path, {"ops": channel}, clock) as (dispatcher, outbox):
        await dispatcher.hand_over(raised())
        await until(lambda: _waits_after(outbox, AT.timestamp() + waits - 1))


async def test_after_the_last_attempt_it_is_undelivered_and_the_next_one_is_tried(tmp_path: Path) -> None:
    channel, clock = Scripted(away(), away(), away()), ManualClock(AT)
    with capture_logs() as logs:
        async with dispatching(tmp_path, {"ops": channel}, clock) as (dispatcher, outbox):
            await dispatcher.hand_over(raised("a"))
            while len(channel.tried) < 3:
                await passes(clock, 5)
            [given_up] = await until(outbox.undelivered)
            await dispatcher.hand_over(raised("b"))
            await until(lambda: channel.taken)
    assert (given_up.alert.dedup_key, given_up.attempts, given_up.reason) == ("a", 3, "away")
    assert [each["log_level"] for each in logs] == ["warning", "warning", "error"]
    assert "redrive alerts undelivered" in logs[-1]["event"]


async def test_what_cannot_be_helped_by_trying_again_is_undelivered_at_once(tmp_path: Path) -> None:
    channel = Scripted(NotDelivered("refused", permanent=True))
    async with dispatching(tmp_path, {"ops": channel}, ManualClock(AT)) as (dispatcher, outbox):
        await dispatcher.hand_over(raised())
        [given_up] = await until(outbox.undelivered)
    assert (given_up.attempts, given_up.reason) == (1, "refused")


async def test_a_channel_that_breaks_in_an_unforeseen_way_is_one_that_failed_and_its_text_is_not_kept(
    tmp_path: Path,
) -> None:
    channel = Scripted(*(RuntimeError("payload of somebody") for _ in range(3)))
    clock = ManualClock(AT)
    with capture_logs() as logs:
        async with dispatching(tmp_path, {"ops": channel}, clock) as (dispatcher, outbox):
            await dispatcher.hand_over(raised())
            while len(channel.tried) < 3:
                await passes(clock, 5)
            [given_up] = await until(outbox.undelivered)
    assert given_up.reason == "sending it failed: RuntimeError"
    assert "payload" not in str(logs)


async def test_a_restart_in_the_middle_loses_nothing_and_repeats_nothing_that_was_told(tmp_path: Path) -> None:
    clock, first = ManualClock(AT), Stuck()
    told, never, waits = raised("told"), raised("never"), raised("waits")
    async with dispatching(tmp_path, {"ops": Scripted()}, clock) as (dispatcher, outbox):
        await dispatcher.hand_over(told)
        await until(lambda: _delivered(outbox, 1))
    async with dispatching(tmp_path, {"ops": Scripted(NotDelivered("refused", permanent=True))}, clock) as (
        dispatcher,
        outbox,
    ):
        await dispatcher.hand_over(never)
        await until(outbox.undelivered)
    async with dispatching(tmp_path, {"ops": first}, clock) as (dispatcher, _):
        await dispatcher.hand_over(waits)
        await until(lambda: first.tried)
    clock.advance(60)
    second = Scripted()

    async with dispatching(tmp_path, {"ops": second}, clock) as (dispatcher, outbox):
        for alert in (told, never, waits):  # whoever raises them did not know what it had handed over
            await dispatcher.hand_over(alert)
        await until(lambda: second.taken)
        listed = await outbox.undelivered()

    assert second.taken == [waits]
    assert [each.alert for each in listed] == [never]


async def _delivered(outbox: Outbox, number: int) -> bool:
    figures = await outbox.figures()
    return "ops" in figures and figures["ops"].delivered == number


# F32, with real receivers


async def test_a_channel_that_does_not_answer_holds_up_no_other_channel_and_no_letter(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/redrive.db")
    async with black_hole() as (port, connected), listening(Receiver()) as well:
        assert isinstance(well, Receiver)
        channels = {"slow": local_webhook(port), "well": local_webhook(well.port)}
        async with dispatching(tmp_path, channels, ManualClock(AT)) as (dispatcher, _):
            for number in range(20):
                await dispatcher.hand_over(raised(f"group/{number}"))
                await store.record(dead())
            await until(lambda: len(well.told) == 20)
            assert len(connected) == 1, "it still waits for its first answer"
    assert [each.json["dedup_key"] for each in well.told] == [f"group/{number}" for number in range(20)]
    await store.close()


async def test_a_channel_that_is_down_is_told_when_it_is_back(tmp_path: Path) -> None:
    [port] = free_ports(1)
    clock, alert = ManualClock(AT), raised()
    async with dispatching(tmp_path, {"ops": local_webhook(port)}, clock, attempts=10) as (dispatcher, outbox):
        await dispatcher.hand_over(alert)
        await until(lambda: _waits_after(outbox, AT.timestamp() + 1))
        receiver = Receiver()
        server = await asyncio.start_server(receiver.serve, "127.0.0.1", port)
        await passes(clock, 3)
        await until(lambda: receiver.told)
        await until(lambda: _delivered(outbox, 1))
        server.close()
        await server.wait_closed()
    assert [each.json["id"] for each in receiver.told] == [alert.id]


async def _waits_after(outbox: Outbox, moment: float) -> bool:
    due = await outbox.next_due("ops")
    return due is not None and moment < due < moment + 5


async def test_a_flood_while_a_channel_is_down_is_one_message_with_counts(tmp_path: Path) -> None:
    clock, stuck = ManualClock(AT), Stuck()
    async with dispatching(tmp_path, {"ops": stuck}, clock, waiting=5) as (dispatcher, outbox):
        for number in range(200):
            await dispatcher.hand_over(raised(f"group/{number}"))
        assert (await outbox.figures())["ops"].waiting == 6
    clock.advance(60)
    back = Scripted()
    async with dispatching(tmp_path, {"ops": back}, clock, waiting=5):
        await until(lambda: len(back.taken) == 6)
    [merged] = [each for each in back.taken if each.rule == "merged"]
    assert merged.counts == {"raised": 195, "resolved": 0}


async def test_ten_thousand_messages_about_one_group_are_one_alert(tmp_path: Path) -> None:
    clock, stuck = ManualClock(AT), Stuck()
    async with dispatching(tmp_path, {"ops": stuck}, clock) as (dispatcher, outbox):
        flood = [raised(counts={"letters": number}) for number in range(10_000)]
        await asyncio.gather(*map(dispatcher.hand_over, flood))
        assert (await outbox.figures())["ops"].waiting <= 2
    clock.advance(60)
    back = Scripted()
    async with dispatching(tmp_path, {"ops": back}, clock) as (_, outbox):
        await until(lambda: back.taken and back.taken[-1].counts == {"letters": 9_999})
    assert len(back.taken) <= 2


async def test_two_processes_with_one_outbox_send_each_alert_once(tmp_path: Path) -> None:
    clock, first, second = ManualClock(AT), Scripted(), Scripted()
    async with (
        dispatching(tmp_path, {"ops": first}, clock) as (one, outbox),
        dispatching(tmp_path, {"ops": second}, clock) as (other, _),
    ):
        alerts = [raised(f"group/{number}") for number in range(60)]
        await asyncio.gather(*map(one.hand_over, alerts[:30]), *map(other.hand_over, alerts[30:]))
        await until(lambda: _delivered(outbox, 60))
    assert sorted(each.id for each in first.taken + second.taken) == sorted(each.id for each in alerts)


async def test_an_outbox_that_fails_is_told_to_whoever_raises_and_the_couriers_live_on(tmp_path: Path) -> None:
    blocked = tmp_path / "folder"
    blocked.write_text("no folder")
    channel, clock = Scripted(), ManualClock(AT)
    with capture_logs() as logs:
        async with dispatching(blocked, {"ops": channel}, clock) as (dispatcher, _):
            with pytest.raises(Unreachable):
                await dispatcher.hand_over(raised())
            await until(lambda: logs)
            blocked.unlink()
            blocked.mkdir()
            await dispatcher.hand_over(raised())
            await passes(clock, 5)
            await until(lambda: channel.taken)
    assert logs[0]["event"] == "alerts wait: the outbox fails"


async def test_one_failed_look_at_the_outbox_ends_no_delivery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[str] = []
    next_due = Outbox.next_due

    async def fails_once(outbox: Outbox, channel: str) -> float | None:
        if not failed:
            failed.append(channel)
            raise Unreachable("the disk is away")
        return await next_due(outbox, channel)

    monkeypatch.setattr(Outbox, "next_due", fails_once)
    channels, clock = {"ops": Scripted(), "mail": Scripted()}, ManualClock(AT)
    async with dispatching(tmp_path, channels, clock) as (dispatcher, _):
        await until(lambda: failed)
        await dispatcher.hand_over(raised())
        while not all(each.taken for each in channels.values()):
            await passes(clock, 5)


async def test_what_is_out_of_date_is_not_sent_behind_what_another_server_told(tmp_path: Path) -> None:
    """Its outbox knows nothing of ours: at PagerDuty, an incident would be open again for ever."""
    channel, clock, over = Scripted(away()), ManualClock(AT), []

    async def is_current(alert: Alert) -> bool:
        return alert.id not in over

    async with dispatching(tmp_path, {"ops": channel}, clock, is_current=is_current) as (dispatcher, outbox):
        first = raised("a")
        await dispatcher.hand_over(first)
        await until(lambda: channel.tried)
        over.append(first.id)
        await dispatcher.hand_over(raised("b"))
        while not channel.taken:
            await passes(clock, 5)
        await until(lambda: _waits_no_more(outbox))
    assert [each.dedup_key for each in channel.tried] == ["a", "b"]


async def _waits_no_more(outbox: Outbox) -> bool:
    figures = (await outbox.figures())["ops"]
    return (figures.waiting, figures.undelivered) == (0, 0)


async def test_whether_an_alert_is_out_of_date_is_asked_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kept:
        async def incident(self, incident_id: str) -> Incident | None:
            last = raised(incident_id=incident_id)
            return an_incident("a", id=incident_id, last_message=last.id if incident_id == "over" else "")

    channel = Scripted()
    monkeypatch.setattr("redrive.alerts_wiring._lines", lambda _settings: {"ops": Line(channel)})
    settings = Settings(alerts=AlertSettings(outbox=tmp_path / "alerts.db"))
    async with serving(settings, cast("Store", Kept()), ManualClock(AT)) as dispatcher:
        for incident_id in ("over", "goes on", ""):
            await dispatcher.hand_over(raised(f"key of {incident_id}", incident_id=incident_id))
        await until(lambda: len(channel.taken) == 2)
    assert [each.incident_id for each in channel.taken] == ["goes on", ""]


async def test_what_nobody_can_say_to_be_out_of_date_is_sent(tmp_path: Path) -> None:
    async def is_current(_alert: Alert) -> bool:
        raise Unreachable("the store is away")

    channel = Scripted()
    async with dispatching(tmp_path, {"ops": channel}, ManualClock(AT), is_current=is_current) as (dispatcher, _):
        await dispatcher.hand_over(raised())
        await until(lambda: channel.taken)


async def test_when_nobody_carries_alerts_out_any_more_whoever_serves_them_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is begun anew, instead of being silent for ever."""

    async def broken(_dispatcher: Dispatcher) -> None:
        raise RuntimeError("unforeseen")

    class Hanging:
        async def take_duty(self, *_given: Any, **_more: Any) -> None:
            await asyncio.Event().wait()

        async def end_duty(self, *_given: Any, **_more: Any) -> None: ...

    monkeypatch.setattr(Dispatcher, "run", broken)
    settings = Settings(alerts=AlertSettings(outbox=tmp_path / "alerts.db"))
    with pytest.raises(ExceptionGroup):
        await serve_alerts(settings, cast("Store", Hanging()), ManualClock(AT))


async def test_what_was_given_up_is_told_by_the_doctor_and_by_a_metric(tmp_path: Path) -> None:
    settings = Settings(alerts=AlertSettings(outbox=tmp_path / "alerts.db", channels={"mail": CHANNEL}))
    assert await examine_undelivered(settings) == []
    assert not (tmp_path / "alerts.db").exists()
    channel = Scripted(NotDelivered("refused", permanent=True))
    async with dispatching(tmp_path, {"ops": channel}, ManualClock(AT)) as (dispatcher, outbox):
        await dispatcher.hand_over(raised())
        await until(outbox.undelivered)
        metrics = ServerMetrics(cast("Store", Away()), ManualClock(AT))
        metrics.alerts(partial(undelivered, settings, outbox))
        lines = (await metrics.text()).decode().splitlines()

    assert 'redrive_alerts_undelivered{channel="mail"} 0.0' in lines
    assert 'redrive_alerts_undelivered{channel="ops"} 1.0' in lines
    (finding,) = await examine_undelivered(settings)
    assert (finding.check, finding.level) == ("undelivered-alerts", FindingLevel.WARN)
    assert finding.what == "channel ops did not take 1 alert: nobody was told by it"


CHANNEL = ChannelSettings(url="https://hooks.example.org/", secret=SECRET)  # type: ignore[arg-type]  # as in a file


class Away:
    """A fake store that is away."""

    async def numbers(self) -> None:
        raise Unreachable("it is away")


async def test_the_end_comes_after_the_beginning(tmp_path: Path) -> None:
    channel, clock, alert = Scripted(away()), ManualClock(AT), raised()
    async with dispatching(tmp_path, {"ops": channel}, clock) as (dispatcher, _):
        await dispatcher.hand_over(alert)
        await until(lambda: channel.tried)
        await dispatcher.hand_over(resolved(alert))
        while not channel.taken:
            await passes(clock, 5)
    assert [each.state for each in channel.taken] == ["resolved"]
