"""Watches whether a page does anything that a text of a message could have told it to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from playwright.async_api import expect

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Frame, Page, Request

# What no page of ours has: it is there only if a text became markup.
_FOREIGN = """
script:not([src]), script[src^="data:"], iframe, object, embed, base, meta[http-equiv], img, video, audio, marquee,
math, foreignObject, animate, x-y, template, body[onload], form[action], [srcdoc], [onerror], [onload], [onfocus],
[ontoggle], [onmouseover], link[href*="attacker"], [style*="attacker"]
"""
_RAW = r"/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/"
_FINDINGS = f"""() => {{
  const found = [...document.querySelectorAll(`{_FOREIGN}`)].map((each) => each.outerHTML.slice(0, 200));
  for (const link of document.querySelectorAll('a, area')) {{
    if (new URL(link.href, location.href).origin !== location.origin) found.push(link.outerHTML.slice(0, 200));
  }}
  const raw = {_RAW};
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) {{
    if (node.parentElement?.localName === 'textarea') continue;  // what is edited there is saved as it is
    const texts = node.nodeType === Node.TEXT_NODE ? [node.data] : ['title', 'aria-label', 'alt', 'placeholder']
      .map((name) => node.getAttribute(name) ?? '');
    for (const text of texts.filter((each) => raw.test(each))) {{
      found.push(`unescaped: ${{JSON.stringify(text.slice(0, 100))}}`);
    }}
  }}
  const {{ title }} = document;
  if (raw.test(title) || title.length > 120) found.push(`title: ${{title.slice(0, 150)}}`);
  if (Object.keys(Object.prototype).length > 0) found.push('the prototype of objects was changed');
  return found;
}}"""
GO = "(to) => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }"
"""To another address within the page, as its own links go."""


class Suspicion:
    """`await Suspicion.of(page)` before the page shows anything."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page, self._origin = page, origin
        self.found: list[str] = []

    @classmethod
    async def of(cls, page: Page, origin: str) -> Suspicion:
        made = cls(page, origin)
        context = page.context
        await context.expose_function("owned", lambda *_: made.found.append(f"a script ran at {page.url}"))
        context.on("request", made._asked)
        context.on("page", lambda other: made.found.append(f"a window was opened: {other.url}"))
        context.on("dialog", made._talked)
        page.on("framenavigated", made._went)
        return made

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self._origin}/", "blob:", "data:application/")):
            self.found.append(f"asked for {request.url}")

    async def _talked(self, dialog: Dialog) -> None:
        self.found.append(f"a dialog: {dialog.message}")
        await dialog.dismiss()

    def _went(self, frame: Frame) -> None:
        if not frame.url.startswith(f"{self._origin}/"):
            self.found.append(f"went to {frame.url}")

    async def go(self, path: str, shows: str | re.Pattern[str] | None = None) -> None:
        """Within the page, as its own links do; and looks at it once `shows` is in it."""
        await self.page.evaluate(GO, path)
        await self.settle(shows)

    async def settle(self, shows: str | re.Pattern[str] | None = None) -> None:
        if shows is not None:
            await expect(self.page.locator("body")).to_contain_text(shows)
        found: list[Any] = await self.page.evaluate(_FINDINGS)
        assert found == [], f"{found} at {self.page.url}"
        assert self.found == []
        await self.page.evaluate("() => document.title")
