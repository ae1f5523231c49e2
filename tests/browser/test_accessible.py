"""axe finds nothing serious on any page, wide and light or narrow and dark; and no page is wider than a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from browser.conftest import ON_SQLITE, Visitor, Watched
from browser.suspicion import GO
from support.dead_letters import an_order, dead
from support.desk import Desk

pytestmark = ON_SQLITE
_AXE = Path(__file__).parents[2] / "console/node_modules/axe-core/axe.min.js"
WIDE: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}
NARROW: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
PAGES = {
    "/": "Overview",
    "/alerts/{alert}": "Alert",
    "/alerts": "Alerts",
    "/groups": "Groups",
    "/groups/{group}": "ValueError",
    "/letters": "Letters",
    "/letters/{letter}": "TimeoutError",
    "/letters/{letter}#tab=payload": "TimeoutError",
    "/letters/{letter}#tab=headers": "TimeoutError",
    "/letters/{letter}#tab=story": "TimeoutError",
    "/runs": "Runs",
    "/runs/{run}": "Run",
    "/queues": "Queues",
    "/audit": "Audit",
    "/doctor": "Doctor",
    "/settings": "Settings",
}


@pytest.fixture(scope="module")
def letter(desk: Desk) -> str:
    """One of a shop with some of everything, with words that are longer than a telephone is wide."""
    long = TimeoutError(f"no answer of https://{'very-' * 30}long.example.org within 30 s")
    orders = [dead(an_order(number, headers=(("x-trace", b"a" * 200),))) for number in range(3)]
    ids = desk.record(*orders, dead(an_order(9), error=long))
    assert desk.redrive("retry", ids[0], "--yes", "--detach", "--reason", "the customer is back").code == 0
    return ids[-1]


async def found_by_axe(page: Page) -> list[str]:
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(_AXE.read_text())
    told = await page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{page.url}: {each['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for each in told["violations"]
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"]
    ]


async def wider_than_the_window(page: Page) -> list[str]:
    """Addresses of pages that scroll sideways, with what makes them."""
    told: list[str] = await page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('main *')]
             .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
             .map((each) => `${location} ${each.outerHTML.slice(0, 120)}`).slice(0, 5)"""
    )
    return told


@pytest.mark.parametrize("look", [WIDE, NARROW], ids=["wide and light", "narrow and dark"])
async def test_every_page(letter: str, visitor: Visitor, look: dict[str, Any]) -> None:
    page = await visitor.open("/", reduced_motion="reduce", **look)
    groups = await (await page.request.get("/api/v1/groups?text=customer")).json()
    runs = await (await page.request.get("/api/v1/runs")).json()
    await expect(page.get_by_role("link", name="firing")).to_be_visible()  # the server has looked at its rules
    alerts = await (await page.request.get("/api/v1/alerts")).json()
    names = {
        "letter": letter,
        "group": groups["items"][0]["id"],
        "run": runs["items"][0]["id"],
        "alert": alerts["items"][0]["id"],
    }
    found = []
    for path, heading in PAGES.items():
        await page.evaluate(GO, path.format(**names))
        await expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        if "#tab=" in path:
            selected = page.get_by_role("tab", name=path.partition("=")[2].title())
            await expect(selected).to_have_attribute("aria-selected", "true")
        await expect(page.locator(".mantine-Skeleton-root")).to_have_count(0)
        found += await found_by_axe(page) + await wider_than_the_window(page)
    assert found == []


@pytest.mark.parametrize("look", [WIDE, NARROW], ids=["wide and light", "narrow and dark"])
async def test_dialogs_and_signing_in(
    letter: str, visitor: Visitor, watched: Watched, look: dict[str, Any]
) -> None:
    watched.expected.append("401")
    page = await visitor.open(f"/letters/{letter}", reduced_motion="reduce", **look)
    await page.get_by_role("button", name="Redrive", exact=True).click()
    await expect(page.get_by_role("button", name="Redrive 1 letter")).to_be_visible()
    found = await found_by_axe(page) + await wider_than_the_window(page)
    await page.get_by_role("button", name="Close").click()
    await page.get_by_role("button", name="Edit", exact=True).click()
    await page.get_by_role("textbox", name="Why").fill("to look at it")
    await page.get_by_role("button", name="Show the real text and edit it").click()
    await expect(page.get_by_role("textbox", name="Payload")).to_be_visible()
    found += await found_by_axe(page) + await wider_than_the_window(page)
    outside = await visitor.open("/", user=None, reduced_motion="reduce", **look)
    await expect(outside.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    found += await found_by_axe(outside) + await wider_than_the_window(outside)
    assert found == []
