"""The console as the server hands it out: where, for how long, and what it may do in a browser (TH1, TH11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.api_house import House, open_house

SOURCE = Path(__file__).parents[2] / "console" / "index.html"
BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
SCRIPT = "console.log('a part')"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """As `make console` leaves it: the page, and parts with hashes in their names."""
    folder = tmp_path / "console"
    (folder / "assets").mkdir(parents=True)
    page = SOURCE.read_text().replace("./src/main.tsx", "./assets/index-Ab1_-x.js")
    (folder / "index.html").write_text(page)
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / "assets" / "index-Ab1_-x.js").write_text(SCRIPT)
    (folder / "assets" / "index-Cd2.css").write_text("a{}")
    (folder / "assets" / ".unseen.js").write_text("not a part of the page")
    (folder / "assets" / "notes.txt").write_text("not a part of the page")
    return folder


@pytest.fixture
async def house(tmp_path: Path, built: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path, console_folder=built) as opened:
        yield opened


async def get(house: House, path: str, **headers: str) -> httpx2.Response:
    return await house.client.get(path, headers=headers)


def directives(response: httpx2.Response) -> dict[str, str]:
    given = response.headers["content-security-policy"].split("; ")
    return {name: rest for name, _, rest in (each.partition(" ") for each in given)}


async def test_the_page_may_run_its_own_script_and_nothing_else(house: House) -> None:
    page = await get(house, "/", **BROWSER)

    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert directives(page) == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self'",
        "font-src": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["referrer-policy"] == "no-referrer"


async def test_nothing_in_the_page_comes_from_elsewhere_or_stands_in_it_as_script(house: House) -> None:
    page = (await get(house, "/")).text

    assert "//" not in page.replace("<!doctype html>", "")
    assert page.count("<script") == 1
    assert '<script type="module" src="/assets/index-Ab1_-x.js"></script>' in page
    assert "<style" not in page


async def test_nobody_keeps_the_page_and_everybody_keeps_its_parts(house: House) -> None:
    page, part = await get(house, "/"), await get(house, "/assets/index-Ab1_-x.js")
    style, icon = await get(house, "/assets/index-Cd2.css"), await get(house, "/favicon.svg")

    assert page.headers["cache-control"] == "no-store"
    assert part.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert part.text == SCRIPT
    assert [each.headers["content-type"].partition(";")[0] for each in (part, style, icon)] == [
        "text/javascript",
        "text/css",
        "image/svg+xml",
    ]
    assert "immutable" not in icon.headers["cache-control"]


@pytest.mark.parametrize("path", ["/letters", "/groups/9f2c", "/letters/a%2Fb", "/sign-in", "/no/such/page"])
async def test_an_address_of_the_consoles_own_is_the_page(house: House, path: str) -> None:
    page = await get(house, path, **BROWSER)

    assert page.status_code == 200
    assert page.text == (await get(house, "/")).text
    assert "trusted-types" in directives(page)


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/api/v1/nothing", BROWSER, 404),
        ("GET", "/api", BROWSER, 404),
        ("GET", "/api/v2/dlq", BROWSER, 404),
        ("GET", "/letters", {"accept": "application/json"}, 404),
        ("GET", "/letters", {}, 404),
        ("POST", "/letters", BROWSER, 404),
        ("GET", "/api/v1/dlq-changes", BROWSER, 405),
        ("GET", "/assets/index-older.js", BROWSER, 404),
        ("GET", "/assets/notes.txt", BROWSER, 404),
        ("GET", "/assets/..%2Findex.html", BROWSER, 404),
        ("GET", "/assets/%2Fetc%2Fpasswd.js", BROWSER, 404),
        ("GET", "/assets/.unseen.js", BROWSER, 404),
    ],
)
async def test_what_is_no_page_is_a_problem(
    house: House, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    answer = await house.client.request(method, path, headers=headers)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"


async def test_below_a_path_every_address_is_below_it(tmp_path: Path, built: Path) -> None:
    async with open_house(tmp_path, console_folder=built, root_path="/redrive") as house:
        page = await get(house, "/redrive/letters/1", **BROWSER)
        part = await get(house, "/redrive/assets/index-Ab1_-x.js")
        problem = await get(house, "/redrive/api/v1/nothing", **BROWSER)

    assert '<meta name="redrive-base" content="/redrive"' in page.text
    assert 'src="/redrive/assets/index-Ab1_-x.js"' in page.text
    assert 'href="/redrive/favicon.svg"' in page.text
    assert '"./' not in page.text
    assert part.text == SCRIPT
    assert problem.headers["content-type"] == "application/problem+json"


async def test_a_proxy_may_leave_its_part_of_the_path_or_take_it_away(tmp_path: Path, built: Path) -> None:
    """uvicorn puts the path in front of what it is asked for: left by a proxy, it stands there twice."""
    paths = ("/redrive/", "/redrive/redrive/", "/redrive/redrive/letters")
    async with open_house(tmp_path, console_folder=built, root_path="/redrive") as house:
        pages = [await get(house, path, **BROWSER) for path in paths]
        bare = await get(house, "/redrive/redrive", **BROWSER)
        part = await get(house, "/redrive/redrive/assets/index-Ab1_-x.js")
        api = await get(house, "/redrive/redrive/api/v1/session", **BROWSER)

    assert {each.text for each in pages} == {pages[0].text}
    assert 'content="/redrive"' in pages[0].text
    assert bare.headers["location"].endswith("redrive.test/redrive/")
    assert part.text == SCRIPT
    assert api.status_code == 401


async def test_a_path_cannot_write_into_the_page(tmp_path: Path, built: Path) -> None:
    async with open_house(tmp_path, console_folder=built, root_path='/"><script>x()</script>') as house:
        page = await get(house, "/", **BROWSER)

    assert "<script>x()" not in page.text


@pytest.mark.parametrize(("provider", "ways"), [(None, "local"), (object(), "local oidc")])
async def test_the_page_is_told_how_one_can_sign_in(house: House, provider: Any, ways: str) -> None:
    house.app.state.reception = replace(house.app.state.reception, provider=provider)

    assert f'<meta name="redrive-sign-in" content="{ways}"' in (await get(house, "/")).text


async def test_where_it_is_not_built_the_page_says_how_and_the_api_is_there(tmp_path: Path) -> None:
    async with open_house(tmp_path, console_folder=tmp_path / "nothing", root_path="/redrive") as house:
        page, deep = await get(house, "/redrive/", **BROWSER), await get(house, "/redrive/letters", **BROWSER)
        api, docs = await get(house, "/redrive/api/v1/session"), await get(house, "/redrive/docs")

    assert "make console" in page.text
    assert 'href="/redrive/docs"' in page.text
    assert deep.text == page.text
    assert "script" not in page.text
    assert [page.status_code, api.status_code, docs.status_code] == [200, 401, 200]


async def test_built_while_the_server_runs_it_is_there_at_once(tmp_path: Path, built: Path) -> None:
    async with open_house(tmp_path, console_folder=tmp_path / "later") as house:
        before = await get(house, "/")
        built.rename(tmp_path / "later")
        after = await get(house, "/")

    assert "make console" in before.text
    assert "redrive-base" in after.text
