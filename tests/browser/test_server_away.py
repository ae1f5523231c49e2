"""The server is stopped and started again on its port, below an open page."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from browser.conftest import ON_SQLITE, House, Visitor, Watched, add_people
from support.dead_letters import dead
from support.desk import Desk
from support.loopback_ports import free_ports
from support.serving import serving_at

pytestmark = ON_SQLITE
A_WHILE = 30_000
"""Milliseconds within which the page tries again, however long the server was away."""
BEGUN = "queue:orders type:Val"


@pytest.fixture
def peopled(desk: Desk) -> Desk:
    add_people(desk)
    desk.record(dead())
    return desk


async def test_a_server_that_goes_away_is_told_and_nothing_is_lost(
    peopled: Desk, browser: Browser, watched: Watched
) -> None:
    watched.expected += ["net::ERR_", "status of 503"]
    [port] = free_ports(1)
    with serving_at(peopled, port) as served:
        visitor = Visitor(browser, House(peopled, served), watched)
        page = await visitor.open("/letters", own_clock=True)
        rows = page.get_by_role("table", name="Letters").locator("tbody").get_by_role("row")
        await expect(rows).to_have_count(1)
        box = page.get_by_role("combobox", name="Filter")
        await box.fill(BEGUN)
    await page.clock.fast_forward(A_WHILE)
    away = page.get_by_role("alert").filter(has_text="The server does not answer.")
    await expect(away).to_be_visible()
    await expect(rows).to_have_count(1)
    async with peopled.opened() as (store, _transport):
        await store.record(dead())
    with serving_at(peopled, port):
        await page.clock.fast_forward(A_WHILE)
        await expect(away).to_have_count(0)
        await expect(rows).to_have_count(2)
        await expect(box).to_have_value(BEGUN)
        await expect(page.get_by_text("Something went wrong")).to_have_count(0)
        await visitor.leave()
