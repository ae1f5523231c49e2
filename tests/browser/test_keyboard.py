"""Without a mouse: keys of the pages, where the focus is, and that one sees it."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from browser.conftest import ON_SQLITE, Visitor
from support.dead_letters import an_order, dead
from support.desk import Desk

pytestmark = ON_SQLITE
STOPS = 25
_MARK = """() => {
  const at = document.activeElement;
  const parts = [at, at.parentElement, ...at.parentElement.children];
  const seen = parts.map((each) => getComputedStyle(each)).some(
    ({ outlineStyle, outlineWidth, boxShadow }) =>
      (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || boxShadow !== 'none');
  return seen || at === document.body ? '' : at.outerHTML.slice(0, 200);
}"""


@pytest.fixture(scope="module")
def ids(desk: Desk) -> list[str]:
    return desk.record(*(dead(an_order(number), error=ValueError(f"order {number}")) for number in range(3)))


async def test_letters_are_walked_and_redriven_by_keys(ids: list[str], visitor: Visitor) -> None:
    page = await visitor.open("/letters")
    await expect(page.get_by_role("table", name="Letters").get_by_role("row")).to_have_count(1 + len(ids))
    chosen = page.locator("tr[data-chosen]")
    for key, row in (("j", "order 2"), ("j", "order 1"), ("j", "order 0"), ("j", "order 0"), ("k", "order 1")):
        await page.keyboard.press(key)
        await expect(chosen).to_contain_text(row)
    await page.keyboard.press("/")
    await expect(page.get_by_role("combobox", name="Filter")).to_be_focused()
    await page.keyboard.type("j")
    await expect(page.get_by_role("combobox", name="Filter")).to_have_value("j")
    await page.keyboard.press("Backspace")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("combobox", name="Filter")).not_to_be_focused()
    await page.keyboard.press("r")
    await expect(page.get_by_role("dialog").get_by_role("button", name="Redrive 1 letter")).to_be_enabled()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard")).to_contain_text("Next line")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="ValueError", level=1)).to_be_visible()
    assert page.url.endswith(ids[1])


async def test_the_focus_comes_back_from_dialogs(ids: list[str], visitor: Visitor) -> None:
    page = await visitor.open(f"/letters/{ids[0]}")
    button = page.get_by_role("button", name="Redrive", exact=True)
    await button.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog").get_by_role("textbox", name="Why")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(button).to_be_focused()
    await page.keyboard.press("e")
    await expect(page.get_by_role("dialog").get_by_role("textbox", name="Why")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(button).to_be_focused()


async def unmarked(page: Page) -> list[str]:
    """What has the focus at some stop of the tab key and does not show it."""
    found = []
    for _ in range(STOPS):
        await page.keyboard.press("Tab")
        found.append(await page.evaluate(_MARK))
    return [each for each in found if each]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_one_sees_where_the_focus_is(ids: list[str], visitor: Visitor, scheme: str) -> None:
    page = await visitor.open("/letters", color_scheme=scheme)
    await expect(page.get_by_role("table", name="Letters").get_by_role("row")).to_have_count(1 + len(ids))
    assert await unmarked(page) == []
    await page.goto(f"/letters/{ids[0]}")
    await expect(page.get_by_role("heading", name="ValueError", level=1)).to_be_visible()
    assert await unmarked(page) == []
