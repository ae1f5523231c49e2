"""Behind a proxy that has the server below a path."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, expect

from browser.conftest import ON_SQLITE, PASSWORD, House, Visitor, Watched, add_people
from support.dead_letters import dead
from support.desk import Desk
from support.serving import serving

pytestmark = ON_SQLITE


@pytest.fixture
def below(desk: Desk) -> Iterator[House]:
    add_people(desk)
    desk.record(dead())
    with serving(desk, "--root-path", "/redrive") as served:
        yield House(desk, served)


async def test_pages_stay_below_their_path(below: House, browser: Browser, watched: Watched) -> None:
    watched.expected.append("401")
    assert below.url.endswith("/redrive")
    visitor = Visitor(browser, below, watched)
    page = await visitor.open("about:blank", user=None)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    await page.goto("/redrive/letters")
    await page.get_by_role("textbox", name="User").fill("ann")
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_role("link", name="ValueError").click()
    await expect(page.get_by_role("heading", name="ValueError", level=1)).to_be_visible()
    assert urlsplit(page.url).path.startswith("/redrive/letters/")
    await page.reload()
    await expect(page.get_by_role("heading", name="ValueError", level=1)).to_be_visible()
    await page.get_by_role("navigation").get_by_role("link", name="Overview").click()
    await expect(page.get_by_role("region", name="At a glance")).to_be_visible()
    assert [path for path in asked if not path.startswith("/redrive/")] == []
    await visitor.leave()
