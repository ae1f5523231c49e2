"""From a failure that arrives while somebody looks to a resolved letter; and a redrive that stops itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from browser.conftest import House, Visitor, desk_over, opened_house
from support.desk import Desk
from support.failing_shop import FailingShop

A_WHILE = 12_000
"""Milliseconds within which each page asks the server for what is new."""
MANY = 60
"""More than a page of the list has."""


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    """For each test, since a shop counts everything that it has charged."""
    return desk_over(request.param, tmp_path, request)


@pytest.fixture
def house(desk: Desk) -> Iterator[House]:
    with opened_house(desk) as opened:
        yield opened


async def redrive(page: Page, button: str) -> None:
    """In the open dialog, whose button names exactly what it does."""
    dialog = page.get_by_role("dialog", name="Redrive letters")
    await dialog.get_by_role("textbox", name="Why").fill("the customer is known now")
    await dialog.get_by_role("button", name=button, exact=True).click()


async def test_from_an_arriving_failure_to_a_resolved_letter(desk: Desk, visitor: Visitor) -> None:
    shop = FailingShop(desk)
    page = await visitor.open("/", own_clock=True)
    await expect(page.get_by_role("heading", name="No dead letters yet")).to_be_visible()
    await shop.fail_at({"order_id": 7, "customer": "nobody"})
    await page.clock.fast_forward(A_WHILE)
    await page.get_by_role("table").get_by_role("link", name="NoCustomer").click()
    await expect(page.get_by_role("heading", name="NoCustomer", level=1)).to_be_visible()
    await expect(page.get_by_role("button", name="Redrive 1 letter")).to_be_enabled()
    await page.get_by_role("link", name="order 7 has no customer").click()
    await expect(page.get_by_role("heading", name="NoCustomer", level=1)).to_be_visible()
    await expect(page.get_by_text("Pending", exact=True).first).to_be_visible()
    await page.get_by_role("button", name="Redrive", exact=True).click()
    await redrive(page, "Redrive 1 letter")
    progress = page.get_by_role("region", name="Progress")
    await expect(progress.get_by_text("1 of 1 sent")).to_be_visible()
    await expect(progress.get_by_text("Confirmed0")).to_be_visible()
    shop.mend()
    await shop.work()
    await page.clock.fast_forward(A_WHILE)
    await expect(progress.get_by_text("Confirmed1")).to_be_visible()
    outcomes = page.get_by_role("region", name="Letters")
    await expect(outcomes.get_by_role("cell", name="Confirmed")).to_be_visible()
    await outcomes.get_by_role("row").nth(1).get_by_role("link").first.click()
    await expect(page.get_by_text("Resolved", exact=True).first).to_be_visible()
    assert shop.charged == [b'{"order_id":7,"customer":"nobody"}']


async def test_a_canary_stops_the_redrive_of_all_that_match(desk: Desk, visitor: Visitor) -> None:
    shop = FailingShop(desk)
    await shop.fail_at(*({"order_id": number, "customer": "nobody"} for number in range(MANY)))
    page = await visitor.open("/letters")
    await page.get_by_role("combobox", name="Filter").fill("queue:orders type:NoCustomer")
    await page.keyboard.press("Enter")
    await page.get_by_role("checkbox", name="Select all that are listed").check()
    selected = page.get_by_role("region", name="Actions for what is selected")
    await selected.get_by_role("button", name=f"Select all {MANY} that match").click()
    await expect(selected.get_by_text(f"All {MANY} that match are selected")).to_be_visible()
    await selected.get_by_role("button", name="Redrive", exact=True).click()
    dialog = page.get_by_role("dialog", name="Redrive letters")
    await dialog.get_by_role("checkbox", name="Canary: first a few").check()
    await dialog.get_by_role("textbox", name="Steps").fill("3, 20")
    async with page.expect_request(lambda request: request.resource_type == "eventsource"):
        await redrive(page, f"Redrive {MANY} letters")
    await expect(page.get_by_role("status").get_by_text("Live")).to_be_visible()
    await expect(page.get_by_text(f"3 of {MANY} sent")).to_be_visible()
    canary = page.get_by_role("region", name="Canary")
    await expect(canary.get_by_text("Waiting for outcomes")).to_be_visible()
    await shop.work()
    await expect(canary.get_by_text("Too many came back (3 of 3)")).to_be_visible()
    stopped = page.get_by_role("status").filter(has_text="Stopped")
    await expect(stopped).to_contain_text("canary: 3 of 3 came back, 20% are allowed")
    await expect(page.get_by_text(f"{MANY - 3} were not sent")).to_be_visible()
    await page.get_by_role("region", name="Letters").get_by_text("Came back", exact=True).first.click()
    await page.get_by_role("link", name="Open 3 letters that came back").click()
    await expect(page.get_by_role("table", name="Letters").get_by_role("row")).to_have_count(4)
    assert shop.charged == []
