"""Where a browser keeps nothing for us, and where not everything of the page comes."""

from __future__ import annotations

from playwright.async_api import Route, expect

from browser.conftest import ON_SQLITE, Visitor, Watched

pytestmark = ON_SQLITE
_BLOCKED = """
Object.defineProperty(window, 'localStorage', {
  get() { throw new DOMException('The operation is insecure.', 'SecurityError'); },
});
"""


async def test_a_browser_that_keeps_nothing_shows_everything(visitor: Visitor) -> None:
    page = await visitor.open("about:blank")
    await page.add_init_script(_BLOCKED)
    await page.goto("/letters")
    await expect(page.get_by_role("heading", name="Letters", level=1)).to_be_visible()
    await page.get_by_role("button", name="Live").click()
    await page.get_by_role("button", name="Language").click()
    await page.get_by_role("menuitem", name="Português").click()
    await expect(page.get_by_role("heading", name="Mensagens", level=1)).to_be_visible()
    await page.get_by_role("button", name="Aparência").click()
    await page.get_by_role("menuitem", name="Escura").click()
    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")


async def test_a_page_without_its_texts_says_so_and_starts_again(visitor: Visitor, watched: Watched) -> None:
    watched.expected += ["net::ERR_FAILED", "Failed to fetch dynamically imported module"]
    page = await visitor.open("about:blank")

    async def lose(route: Route) -> None:
        await route.abort()

    await page.route("**/assets/en-*.js", lose)
    await page.goto("/letters")
    await expect(page.get_by_role("alert")).to_contain_text("Redrive could not be loaded")
    await expect(page.get_by_role("alert")).to_contain_text("Não foi possível carregar o Redrive")
    await page.unroute("**/assets/en-*.js")
    await page.get_by_role("button", name="Reload").click()
    await expect(page.get_by_role("heading", name="Letters", level=1)).to_be_visible()
