"""Alerts that the server raises by itself: from the overview to their cause, and what people do about them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.async_api import Locator, Page, expect

from browser.conftest import ON_SQLITE, House, Visitor, opened_house
from support.dead_letters import dead
from support.desk import Desk

pytestmark = ON_SQLITE


@pytest.fixture(scope="module")
def house(desk: Desk) -> Iterator[House]:
    """Four failures that nobody has seen before: the server's first look finds each of them."""
    desk.record(
        dead(error=ValueError("no such customer")),
        dead(error=TimeoutError("the acquirer does not answer"), queue="payments"),
        dead(error=KeyError("country"), queue="shipments"),
        dead(error=OSError("no space left"), queue="invoices"),
    )
    with opened_house(desk) as opened:
        yield opened


def alert(page: Page, title: str) -> Locator:
    return page.get_by_role("row").filter(has_text=f"New failure: {title}")


def part(page: Page, name: str) -> Locator:
    return page.locator("section").filter(has=page.get_by_role("heading", name=name, level=2, exact=True))


async def test_the_overview_leads_to_an_alert_that_somebody_acknowledges_and_to_its_cause(
    visitor: Visitor,
) -> None:
    page = await visitor.open("/")
    await page.get_by_role("link", name="alerts are firing").click()
    await expect(page.get_by_role("heading", name="Alerts", level=1)).to_be_visible()
    row = alert(page, "ValueError")
    await expect(row).to_contain_text("Warning")
    await expect(row).to_contain_text("orders")
    await expect(row).to_contain_text("Nobody yet")
    await row.get_by_role("button", name="Acknowledge").click()
    dialog = page.get_by_role("dialog", name="Acknowledge the alert")
    await dialog.get_by_role("textbox", name="Why").fill("calling the shop")
    await dialog.get_by_role("button", name="Acknowledge").click()
    await expect(page.get_by_text("The alert is acknowledged")).to_be_visible()
    await expect(row).to_contain_text("Acknowledged by ann")
    await expect(row.get_by_role("link")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="ValueError", level=1)).to_be_visible()


async def test_the_audit_trail_leads_back_to_the_alert(visitor: Visitor) -> None:
    page = await visitor.open("/alerts")
    await alert(page, "KeyError").get_by_role("button", name="Resolve").click()
    dialog = page.get_by_role("dialog", name="Resolve the alert")
    await dialog.get_by_role("textbox", name="Why").fill("the release is out")
    await page.keyboard.press("Enter")
    resolved = part(page, "Over").get_by_role("row").filter(has_text="KeyError")
    await expect(resolved).to_contain_text("Resolved by ann")
    await expect(resolved).to_contain_text("Said to be over, though rules still see it")
    await page.get_by_role("navigation").get_by_role("link", name="Audit").click()
    deed = page.get_by_role("row").filter(has_text="the release is out")
    await expect(deed).to_contain_text("resolved the alert")
    await deed.get_by_role("cell").nth(3).get_by_role("link").click()
    await expect(page.get_by_role("heading", name="Alert", level=1, exact=True)).to_be_visible()
    await expect(alert(page, "KeyError")).to_contain_text("Resolved by ann")


async def test_an_alert_is_snoozed_and_woken_without_a_mouse(visitor: Visitor) -> None:
    page = await visitor.open("/")
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    await page.keyboard.press("g")
    await page.keyboard.press("w")
    row = alert(page, "TimeoutError")
    await row.get_by_role("button", name="Snooze").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("menuitem", name="1 hour")).to_be_visible()
    await page.get_by_role("menuitem", name="4 hours").focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Snooze the alert")
    await expect(dialog.get_by_role("textbox", name="Why")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(row).to_contain_text("Snoozed by ann, wakes in 3 hours")
    await expect(row.get_by_role("link")).to_be_focused()
    await row.get_by_role("button", name="Wake").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog", name="Wake the alert").locator(":focus")).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(row).to_contain_text("Nobody yet")


async def test_whoever_may_only_look_sees_why_nothing_can_be_done(visitor: Visitor) -> None:
    page = await visitor.open("/alerts", user="vic")
    refused = alert(page, "OSError").get_by_role(
        "group", name="You lack the permission groups:change for the queue invoices"
    )
    for name in ("Acknowledge", "Snooze", "Resolve"):
        await expect(refused.get_by_role("button", name=name)).to_be_disabled()
    await refused.focus()
    await expect(page.get_by_role("tooltip")).to_contain_text("groups:change")
