"""TH10: a page of another origin that is open beside the console can neither change nor read anything."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest
from playwright.async_api import Page, Request, expect

from browser.conftest import ON_SQLITE, PASSWORD, House, Visitor
from support.dead_letters import dead
from support.desk import Desk

_TRIED = 100
"""Requests, at least, that the attack sends."""
_ATTACK = """
async ({ api, letter, group }) => {
  const told = [];
  const resolve = { change: 'resolve', ids: [letter], reason: 'owned' };
  const token = { name: 'owned', grants: [{ role: 'admin' }] };
  const user = { name: 'owned', password: 'owned owned owned', grants: [{ role: 'admin' }] };
  const asked = [
    ['POST', '/dlq-changes', resolve], ['POST', '/runs', { selection: { ids: [letter] }, reason: 'owned' }],
    ['POST', `/dlq/${letter}/retry`, undefined], ['PUT', `/dlq/${letter}/resolve?reason=owned`, undefined],
    ['DELETE', `/dlq/${letter}?reason=owned`, undefined], ['PATCH', `/groups/${group}`, { note: 'owned' }],
    ['POST', '/tokens', token], ['POST', '/users', user], ['POST', `/dlq/${letter}/reveal`, { reason: 'owned' }],
    ['DELETE', '/session', undefined], ['POST', '/session', { user: 'vic', password: '%PASSWORD%' }],
  ];
  for (const [method, path, given] of asked) {
    const body = given === undefined ? undefined : JSON.stringify(given);
    for (const kind of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
      for (const mode of ['cors', 'no-cors']) {
        const headers = { 'content-type': kind };
        const how = { method, body, mode, headers, credentials: 'include' };
        await fetch(api + path, how).then((got) => told.push(got.type), () => told.push('refused'));
      }
    }
    if (body !== undefined) navigator.sendBeacon(api + path, new Blob([body], { type: 'text/plain' }));
  }
  for (const path of ['/session', '/dlq', `/dlq/${letter}`, '/export', '/tokens', '/runs/x/events']) {
    const how = { credentials: 'include' };
    await fetch(api + path, how).then((got) => told.push(got.type), () => told.push('refused'));
    new EventSource(api + path, { withCredentials: true });
    for (const tag of ['img', 'script', 'link', 'iframe', 'object', 'video']) {
      const given = { src: api + path, href: api + path, rel: 'stylesheet' };
      document.body.append(Object.assign(document.createElement(tag), given));
    }
  }
  const sent = [];
  for (const [method, path, given] of asked) {
    for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const frame = Object.assign(document.createElement('iframe'), { name: `frame${sent.length}` });
      const settings = { method: 'POST', action: `${api}${path}?_method=${method}`, enctype, target: frame.name };
      const form = Object.assign(document.createElement('form'), settings);
      const named = { name: JSON.stringify(given ?? {}), value: '' };
      form.append(Object.assign(document.createElement('input'), named));
      document.body.append(frame, form);
      sent.push(new Promise((done) => frame.addEventListener('load', done, { once: true })));
      form.submit();
    }
  }
  await Promise.race([Promise.all(sent), new Promise((done) => setTimeout(done, 5000))]);
  return told;
}
""".replace("%PASSWORD%", PASSWORD)
_OWN = """async ([path, body]) => (await fetch(path, {
  method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).status"""


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Cats</title><body>cats</body>")

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def attacker() -> Iterator[int]:
    """The port of another server on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def letter(desk: Desk) -> str:
    return desk.record(dead())[0]


def _standing(house: House) -> str:
    """Everything that somebody could have changed."""
    who = {"authorization": f"Bearer {house.served.token}"}
    with httpx2.Client(base_url=f"{house.url}/api/v1", headers=who, timeout=60) as client:
        found = {path: client.get(path).json() for path in ("/dlq", "/runs", "/users", "/groups", "/stats")}
        tokens = [each["name"] for each in client.get("/tokens").json()["items"]]
        deeds = [each for each in client.get("/audit").json()["items"] if not each["what"].startswith("denied")]
    for item in found["/users"]["items"]:
        item.pop("last_used_at", None)
    return json.dumps([found, tokens, deeds], sort_keys=True)


@ON_SQLITE
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"], ids=["another site", "another port"])
async def test_a_page_of_another_origin_changes_and_reads_nothing(
    letter: str, house: House, visitor: Visitor, attacker: int, host: str
) -> None:
    console = await visitor.open(f"/letters/{letter}")
    await expect(console.get_by_role("button", name="Redrive", exact=True)).to_be_enabled()
    before, asked = _standing(house), list[Request]()
    page = await console.context.new_page()
    page.on("request", lambda each: asked.append(each))  # noqa: PLW0108  Playwright writes on what it calls
    await page.goto(f"http://{host}:{attacker}/")
    group = json.loads(before)[0]["/groups"]["items"][0]["id"]
    told = await page.evaluate(_ATTACK, {"api": f"{house.url}/api/v1", "letter": letter, "group": group})
    assert set(told) == {"refused"}
    assert _standing(house) == before
    cookies = [await each.header_value("cookie") for each in asked if each.url.startswith(house.url)]
    assert len(cookies) > _TRIED
    assert any(cookies) == (host == "127.0.0.1")  # the port is no part of the site: there the server refuses
    await _is_not_framed(page, house)
    await _works_from_its_own_page(console, letter)


async def _is_not_framed(page: Page, house: House) -> None:
    await page.set_content(f'<iframe src="{house.url}/letters"></iframe>')
    frame = page.frame_locator("iframe")
    await expect(frame.get_by_role("heading", name="Letters")).to_have_count(0)
    opened = await page.evaluate(
        """async (url) => { const other = window.open(url); await new Promise((done) => setTimeout(done, 300));
        try { return other.document.title; } catch { return 'refused'; } }""",
        f"{house.url}/letters",
    )
    assert opened == "refused"


async def _works_from_its_own_page(console: Page, letter: str) -> None:
    """What was refused was refused for where it came from: the session is there, and may do it."""
    asked = ["/api/v1/dlq-changes", {"change": "resolve", "ids": [letter], "reason": "solved"}]
    assert await console.evaluate(_OWN, asked) == 200
