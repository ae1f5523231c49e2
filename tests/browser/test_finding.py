"""The filter: completion, errors, facets; the address holds it all, so that reloading and going back work."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Page, expect

from browser.conftest import ON_SQLITE, Visitor, Watched
from support.dead_letters import an_order, dead
from support.desk import Desk

pytestmark = ON_SQLITE


@pytest.fixture(scope="module")
def ids(desk: Desk) -> list[str]:
    orders = [dead(an_order(number)) for number in range(3)]
    mails = [dead(an_order(9, queue="mails"), queue="mails", error=TimeoutError("too slow")) for _ in range(2)]
    return desk.record(*orders, *mails)


def filter_of(page: Page) -> str:
    return "".join(parse_qs(urlsplit(page.url).fragment).get("q", []))


async def expect_rows(page: Page, number: int) -> None:
    await expect(page.get_by_role("table", name="Letters").locator("tbody").get_by_role("row")).to_have_count(
        number
    )


async def test_a_filter_is_completed_and_asked(ids: list[str], visitor: Visitor) -> None:
    page = await visitor.open("/letters")
    await expect_rows(page, len(ids))
    box = page.get_by_role("combobox", name="Filter")
    await box.press_sequentially("qu")
    await expect(page.get_by_role("option", name="queue:")).to_be_visible()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Tab")
    await expect(box).to_have_value("queue:")
    await page.get_by_role("option", name="mails").click()
    await expect(box).to_have_value("queue:mails ")
    await page.keyboard.press("Enter")
    await expect_rows(page, 2)
    assert filter_of(page) == "queue:mails"


async def test_what_cannot_be_read_is_pointed_at(ids: list[str], visitor: Visitor, watched: Watched) -> None:
    watched.expected.append("400")
    page = await visitor.open("/letters")
    await expect_rows(page, len(ids))
    box = page.get_by_role("combobox", name="Filter")
    await box.fill("queue:orders age:>soon")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("at character 19")
    await expect(box).to_have_attribute("aria-invalid", "true")
    await box.fill("queue:orders")
    await page.keyboard.press("Enter")
    await expect_rows(page, 3)
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_the_address_keeps_the_filter_and_goes_back(ids: list[str], visitor: Visitor) -> None:
    page = await visitor.open("/letters")
    await expect_rows(page, len(ids))
    facets = page.get_by_role("complementary", name="Narrow down")
    await facets.get_by_role("checkbox", name="orders").click()
    await expect_rows(page, 3)
    assert filter_of(page) == "queue:orders"
    await page.reload()
    await expect(page.get_by_role("combobox", name="Filter")).to_have_value("queue:orders")
    await expect_rows(page, 3)
    await page.get_by_role("link", name="ValueError").first.click()
    await expect(page.get_by_role("heading", name="ValueError", level=1)).to_be_visible()
    await page.go_back()
    await expect_rows(page, 3)
    await page.go_back()
    await expect_rows(page, len(ids))
    assert filter_of(page) == ""


async def test_a_link_leads_to_a_part_of_a_letter(ids: list[str], visitor: Visitor) -> None:
    page = await visitor.open(f"/letters/{ids[0]}#tab=payload&view=raw")
    await expect(page.get_by_role("tab", name="Payload")).to_have_attribute("aria-selected", "true")
    await expect(page.get_by_role("tabpanel")).to_contain_text("order_id")
    await page.get_by_role("tab", name="Headers").click()
    await page.reload()
    await expect(page.get_by_role("tab", name="Headers")).to_have_attribute("aria-selected", "true")
