"""Signing in and out by the page, in both languages, and what somebody who may only look is told."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from browser.conftest import ON_SQLITE, PASSWORD, Visitor, Watched


async def test_a_user_signs_in_and_out(visitor: Visitor, watched: Watched) -> None:
    watched.expected.append("401")
    page = await visitor.open("/letters", user=None)
    await page.get_by_role("textbox", name="User").fill("ann")
    await page.get_by_role("textbox", name="Password").fill("wrong wrong wrong")
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_text("User or password is not right.")).to_be_visible()
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("heading", name="Letters", level=1)).to_be_visible()
    await page.get_by_role("button", name="Account").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("textbox", name="Password")).to_be_visible()


@ON_SQLITE
@pytest.mark.parametrize(("locale", "title"), [("en-GB", "Letters"), ("pt-BR", "Mensagens")])
async def test_pages_speak_the_language_of_the_browser(visitor: Visitor, locale: str, title: str) -> None:
    page = await visitor.open("/letters", locale=locale)
    await expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
    assert await page.locator("html").get_attribute("lang") == ("en" if locale == "en-GB" else "pt-BR")
