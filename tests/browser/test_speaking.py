"""Two languages, light and dark: switched in the page, and kept."""

from __future__ import annotations

from playwright.async_api import Page, expect

from browser.conftest import ON_SQLITE, Visitor
from support.dead_letters import dead
from support.desk import Desk

pytestmark = ON_SQLITE


async def expect_portuguese_letters(page: Page) -> None:
    await expect(page.get_by_role("heading", name="Mensagens", level=1)).to_be_visible()
    await expect(page.get_by_role("combobox", name="Filtro")).to_be_visible()
    await expect(page.get_by_text("Pendente", exact=True).first).to_be_visible()
    await expect(page.locator("html")).to_have_attribute("lang", "pt-BR")


async def test_a_language_is_switched_and_kept(desk: Desk, visitor: Visitor) -> None:
    async with desk.opened() as (store, _transport):
        await store.record(dead())
    page = await visitor.open("/letters")
    await expect(page.get_by_role("heading", name="Letters", level=1)).to_be_visible()
    await page.get_by_role("button", name="Language").click()
    await page.get_by_role("menuitem", name="Português").click()
    await expect_portuguese_letters(page)
    await page.reload()
    await expect_portuguese_letters(page)
    await page.get_by_role("navigation").get_by_role("link", name="Execuções").click()
    await expect(page.get_by_role("heading", name="Execuções", level=1)).to_be_visible()
    await page.get_by_role("button", name="Idioma").click()
    await page.get_by_role("menuitem", name="English").click()
    await expect(page.get_by_role("heading", name="Runs", level=1)).to_be_visible()
    await expect(page.get_by_text("No runs yet")).to_be_visible()


async def background(page: Page) -> str:
    told: str = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    return told


async def test_dark_and_light_are_switched_and_kept(visitor: Visitor) -> None:
    page = await visitor.open("/", color_scheme="light")
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    light = await background(page)
    await page.get_by_role("button", name="Appearance").click()
    await page.get_by_role("menuitem", name="Dark").click()
    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    dark = await background(page)
    assert dark != light
    await page.reload()
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    await page.get_by_role("button", name="Appearance").click()
    await page.get_by_role("menuitem", name="As the system").click()
    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "light")
