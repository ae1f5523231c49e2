"""What is to be told survives the process, and stays bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from redrive.alerts.alert import Alert, Severity
from redrive.alerts.outbox import LEASE, Claimed, Outbox
from redrive.errors import CorruptFile, Unreachable
from support.alerts import AT, raised, resolved


@pytest.fixture
async def outbox(tmp_path: Path) -> AsyncIterator[Outbox]:
    opened = Outbox(tmp_path / "alerts.db", waiting=3, undelivered=2)
    yield opened
    await opened.close()


def later(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


async def put(outbox: Outbox, *alerts: Alert, channel: str = "ops") -> None:
    for alert in alerts:
        await outbox.put(alert, [channel], AT)


async def claimed(outbox: Outbox, now: datetime = AT, channel: str = "ops") -> Claimed:
    found = await outbox.claim(channel, now)
    assert found is not None
    return found


async def carried_out(outbox: Outbox, now: datetime = AT) -> list[Alert]:
    """All that is due, delivered."""
    told = []
    while (found := await outbox.claim("ops", now)) is not None:
        told.append(found.alert)
        await outbox.delivered("ops", found)
    return told


async def given_up(outbox: Outbox, alert: Alert) -> None:
    await put(outbox, alert)
    await outbox.failed("ops", await claimed(outbox), "refused", now=AT, again_at=None)


async def test_alerts_go_out_in_their_order_to_each_channel(outbox: Outbox) -> None:
    first, second = raised("a"), raised("b")
    for alert in (first, second):
        await outbox.put(alert, ["ops", "mail"], AT)

    assert await carried_out(outbox) == [first, second]
    assert (await claimed(outbox, channel="mail")).alert == first
    assert await carried_out(outbox) == []


async def test_what_is_claimed_is_nobody_elses_until_its_time_is_over(outbox: Outbox) -> None:
    await put(outbox, raised("a"))
    first = await claimed(outbox)

    assert await outbox.claim("ops", later(LEASE - 1)) is None
    again = await claimed(outbox, later(LEASE))

    assert (first.attempts, again.attempts) == (1, 2)
    assert again.alert == first.alert


async def test_another_process_takes_over_what_the_one_before_left(outbox: Outbox, tmp_path: Path) -> None:
    await put(outbox, raised("a"), raised("b"))
    await claimed(outbox)
    await outbox.close()

    second = Outbox(tmp_path / "alerts.db")
    told = await carried_out(second, later(LEASE))
    await second.close()

    assert [each.dedup_key for each in told] == ["b", "a"]


async def test_what_waits_is_replaced_by_what_is_newer_of_the_same_key(outbox: Outbox) -> None:
    alert = raised("a")
    again = raised("a", counts={"letters": 7})
    over = resolved(again)
    await put(outbox, alert, again, raised("b"), over)

    assert [(each.dedup_key, each.state) for each in await carried_out(outbox)] == [
        ("b", "raised"),
        ("a", "resolved"),
    ]


async def test_what_is_newer_waits_until_the_attempt_under_way_has_ended(outbox: Outbox) -> None:
    alert = raised("a")
    await put(outbox, alert)
    under_way = await claimed(outbox)
    await put(outbox, resolved(alert))

    assert await outbox.claim("ops", AT) is None
    await outbox.delivered("ops", under_way)

    assert (await claimed(outbox)).alert.state == "resolved"


async def test_an_attempt_that_failed_is_not_repeated_for_what_is_out_of_date(outbox: Outbox) -> None:
    alert = raised("a")
    await put(outbox, alert)
    under_way = await claimed(outbox)
    await put(outbox, resolved(alert))
    await outbox.failed("ops", under_way, "away", now=AT, again_at=later(1).timestamp())

    assert [each.state for each in await carried_out(outbox, later(10))] == ["resolved"]


async def test_news_do_not_shorten_the_wait_for_a_channel_that_is_away(outbox: Outbox) -> None:
    alert = raised("a")
    await put(outbox, alert)
    await outbox.failed("ops", await claimed(outbox), "away", now=AT, again_at=later(30).timestamp())
    await put(outbox, raised("a"))

    assert await outbox.claim("ops", later(29)) is None
    assert await outbox.next_due("ops") == later(30).timestamp()
    assert await outbox.claim("ops", later(30)) is not None


async def test_the_same_alert_handed_over_again_changes_nothing_whatever_became_of_it(outbox: Outbox) -> None:
    waits, sent, refused = raised("a"), raised("b"), raised("c")
    await put(outbox, sent)
    await carried_out(outbox)
    await given_up(outbox, refused)
    await put(outbox, waits, waits, sent, refused)

    assert await carried_out(outbox) == [waits]
    over = resolved(sent)
    await put(outbox, over)
    assert await carried_out(outbox) == [over]
    await put(outbox, over)
    assert await carried_out(outbox) == []


# A flood


async def test_a_flood_is_merged_into_one_message_that_counts_it(outbox: Outbox) -> None:
    for number in range(500):
        severity = Severity.CRITICAL if number == 400 else Severity.WARNING
        await put(outbox, raised(f"group/{number}", severity=severity))

    assert (await outbox.figures())["ops"].waiting == 4
    told = await carried_out(outbox)

    assert [each.dedup_key for each in told] == ["group/0", "group/1", "group/2", "merged/ops"]
    assert (told[3].counts, told[3].severity) == ({"raised": 497, "resolved": 0}, "critical")
    figures = (await outbox.figures())["ops"]
    assert (figures.delivered, figures.merged, figures.waiting) == (4, 497, 0)


async def test_the_end_of_what_was_told_is_told_whatever_else_waits(outbox: Outbox) -> None:
    """Or an incident at PagerDuty would stay open for ever."""
    alert = raised("told")
    await put(outbox, alert)
    await carried_out(outbox)
    flood = [raised(f"group/{number}") for number in range(10)]
    await put(outbox, *flood, resolved(alert))

    told = await carried_out(outbox)

    assert told[-1].dedup_key == "told"
    assert told[-1].state == "resolved"


async def test_the_end_of_what_was_only_counted_is_counted_too(outbox: Outbox) -> None:
    flood = [raised(f"group/{number}") for number in range(10)]
    await put(outbox, *flood, *(resolved(each) for each in flood[5:]))

    told = await carried_out(outbox)

    assert len(told) == 4
    assert told[-1].counts == {"raised": 7, "resolved": 5}


async def test_a_merged_message_that_somebody_may_have_got_has_another_id_when_it_grows(
    outbox: Outbox,
) -> None:
    flood = [raised(f"group/{number}") for number in range(6)]
    await put(outbox, *flood[:5])
    for _ in range(3):
        await outbox.delivered("ops", await claimed(outbox))
    await put(outbox, *(raised(f"more/{number}") for number in range(3)))
    first = await claimed(outbox)
    await outbox.failed("ops", first, "away", now=AT, again_at=AT.timestamp())
    await put(outbox, flood[5])

    again = [each for each in await carried_out(outbox) if each.rule == "merged"]

    assert first.alert.counts == {"raised": 2, "resolved": 0}
    assert [each.counts for each in again] == [{"raised": 3, "resolved": 0}]
    assert again[0].id != first.alert.id


async def test_an_alert_that_was_merged_and_is_handed_over_again_is_counted_once(outbox: Outbox) -> None:
    await put(outbox, *(raised(f"group/{number}") for number in range(3)))
    merged = raised("merged before")
    for _ in range(5):
        await put(outbox, merged)

    assert (await carried_out(outbox))[-1].counts == {"raised": 1, "resolved": 0}
    await put(outbox, merged)
    assert await carried_out(outbox) == []


async def test_nobody_waits_for_what_another_one_of_its_key_keeps_waiting(outbox: Outbox) -> None:
    """Or a courier would ask for it again and again, in vain."""
    await put(outbox, raised("a"))
    await claimed(outbox)
    await put(outbox, raised("a"))

    assert await outbox.next_due("ops") == later(LEASE).timestamp()


# Undelivered


async def test_a_message_about_many_that_was_given_up_stays_when_a_later_one_is_delivered(outbox: Outbox) -> None:
    for number in range(2):
        await put(outbox, *(raised(f"{number}/{each}") for each in range(4)))
        for _ in range(3):
            await outbox.delivered("ops", await claimed(outbox))
        if not number:
            await outbox.failed("ops", await claimed(outbox), "refused", now=AT, again_at=None)
    await carried_out(outbox)

    assert [each.alert.rule for each in await outbox.undelivered()] == ["merged"]


async def test_what_is_given_up_is_listed_also_by_the_next_process(outbox: Outbox, tmp_path: Path) -> None:
    alert = raised("a")
    await given_up(outbox, alert)
    await outbox.close()

    second = Outbox(tmp_path / "alerts.db")
    [found] = await second.undelivered()
    assert (found.channel, found.alert, found.attempts, found.reason, found.at) == ("ops", alert, 1, "refused", AT)
    assert await second.claim("ops", later(1000)) is None
    assert await second.undelivered("other") == []
    await second.tried_again(found, "away")
    assert [(each.attempts, each.reason) for each in await second.undelivered()] == [(2, "away")]
    await second.sent_by_hand(found)
    assert await second.undelivered() == []
    assert (await second.figures())["ops"].delivered == 1
    await second.close()


async def test_the_list_is_bounded_and_says_how_many_it_forgot(outbox: Outbox) -> None:
    for key in "abcd":
        await given_up(outbox, raised(key))

    assert [each.alert.dedup_key for each in await outbox.undelivered()] == ["c", "d"]
    figures = (await outbox.figures())["ops"]
    assert (figures.undelivered, figures.given_up, figures.forgotten) == (2, 4, 2)


async def test_dropping_takes_off_the_list_what_is_on_it_and_nothing_else(outbox: Outbox) -> None:
    await given_up(outbox, raised("a"))
    await put(outbox, raised("b"))
    [found] = await outbox.undelivered()

    assert await outbox.drop([found.number, found.number + 1, 99]) == 1

    assert await outbox.undelivered() == []
    assert (await outbox.figures())["ops"].dropped == 1
    assert len(await carried_out(outbox)) == 1


async def test_what_is_out_of_date_leaves_the_list(outbox: Outbox) -> None:
    """Sent by hand, it would open again what is over."""
    alert = raised("a")
    await given_up(outbox, alert)
    await given_up(outbox, raised("b"))
    await put(outbox, resolved(alert))
    await carried_out(outbox)

    assert [each.alert.dedup_key for each in await outbox.undelivered()] == ["b"]


# The file


async def test_a_clock_that_is_put_back_holds_nobody_up(outbox: Outbox) -> None:
    await put(outbox, raised("a"))
    found = await claimed(outbox)
    await outbox.failed("ops", found, "away", now=AT, again_at=later(300).timestamp())

    assert await outbox.claim("ops", AT - timedelta(hours=3)) is not None


async def test_the_file_is_for_its_owner_alone(outbox: Outbox, tmp_path: Path) -> None:
    await put(outbox, raised())
    assert (tmp_path / "alerts.db").stat().st_mode & 0o777 == 0o600


async def test_a_file_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "garbage.db").write_bytes(b"garbage" * 1000)
    garbage, nowhere = Outbox(tmp_path / "garbage.db"), Outbox(tmp_path / "garbage.db" / "x.db")
    with pytest.raises(CorruptFile) as told:
        await put(garbage, raised())
    assert told.value.remedy
    with pytest.raises(Unreachable):
        await put(nowhere, raised())
    await garbage.close()
    await nowhere.close()
