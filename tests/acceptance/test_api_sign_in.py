"""Sessions of browsers: how they begin and end, and that no other page can use them (TH10, TH11, TH14)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

import httpx2
import pytest

from redrive.access import Role
from redrive.identity.bootstrap import Bootstrap
from support.api_house import House, open_house

PASSWORD = "a long enough password"  # noqa: S105  of nobody
OWN = {"sec-fetch-site": "same-origin"}
JSON, FORMS = "application/json", ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
FOREIGN = [
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "none"},
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://redrive.test.evil.example"},
    {"origin": "http://redrive.test:8080"},
    {"sec-fetch-site": "cross-site", "origin": "http://redrive.test"},
]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        yield opened


async def signed_in(house: House, **headers: str) -> httpx2.Response:
    grants = [{"role": "operator"}]
    await house.ask("POST", "/users", Role.ADMIN, json={"name": "eve", "password": PASSWORD, "grants": grants})
    return await house.client.post(
        "/api/v1/session", json={"user": "eve", "password": PASSWORD}, headers={**OWN, **headers}
    )


async def test_a_user_signs_in_works_and_signs_out(house: House) -> None:
    letter_id = await house.letter()
    begun = await signed_in(house)
    assert begun.status_code == 204
    cookie = begun.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie

    me = await house.client.get("/api/v1/session")
    dropped = await house.client.delete(f"/api/v1/dlq/{letter_id}", headers=OWN)
    ended = await house.client.delete("/api/v1/session", headers=OWN)
    after = await house.client.get("/api/v1/session")

    assert me.json()["name"] == "eve"
    assert "letters:decide" in me.json()["permissions"]
    assert [dropped.status_code, ended.status_code, after.status_code] == [204, 204, 401]
    letter = await house.store.get(letter_id)
    assert letter is not None
    assert letter.history[-1].by == "eve"


async def test_over_https_the_cookie_is_bound_to_this_host(house: House) -> None:
    house.client.base_url = httpx2.URL("https://redrive.test")
    begun = await signed_in(house)

    cookie = begun.headers["set-cookie"]
    assert cookie.startswith("__Host-redrive=")
    assert "Secure" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie


async def test_no_other_page_changes_anything_with_somebodys_session(house: House) -> None:
    letter_id = await house.letter()
    await signed_in(house)

    for headers, kind in product(FOREIGN, (JSON, *FORMS)):
        for method, path in (("DELETE", ""), ("PUT", "/resolve"), ("POST", "/retry"), ("POST", "/restore")):
            sent = await house.client.request(
                method, f"/api/v1/dlq/{letter_id}{path}", headers={**headers, "content-type": kind}, content=b"{}"
            )
            assert sent.status_code == 403, (headers, kind, method, path)
    letter = await house.store.get(letter_id)
    assert letter is not None
    assert len(letter.history) == 1


async def test_what_a_form_can_send_is_refused_even_from_our_own_page(house: House) -> None:
    letter_id = await house.letter()
    await signed_in(house)

    for kind in (*FORMS, ""):
        sent = await house.client.post(
            f"/api/v1/dlq/{letter_id}/restore", headers={**OWN, "content-type": kind}, content=b'{"reason": "x"}'
        )
        assert sent.status_code == 403, kind


async def test_a_bearer_token_is_judged_alone_whatever_cookie_comes_along(house: House) -> None:
    letter_id = await house.letter()
    await signed_in(house)

    sent = await house.ask("DELETE", f"/dlq/{letter_id}", Role.VIEWER, headers=OWN)

    assert sent.status_code == 403


async def test_wrong_passwords_have_one_answer_and_then_a_wait(house: House) -> None:
    await signed_in(house)
    house.client.cookies.clear()
    answers = []
    for name in ("eve", "nobody") * 20:
        given = {"user": name, "password": "wrong wrong wrong"}
        answers.append(await house.client.post("/api/v1/session", json=given, headers=OWN))

    refused = [each for each in answers if each.status_code == 401]
    assert len({each.json()["detail"] for each in refused}) == 1
    waits = [each for each in answers if each.status_code == 429]
    assert waits
    assert int(waits[0].headers["retry-after"]) > 0


async def test_the_first_starts_code_lets_one_in_once(house: House) -> None:
    code = await Bootstrap(house.store, house.clock).code()

    first = await house.client.post("/api/v1/session", json={"code": code}, headers=OWN)
    me = (await house.client.get("/api/v1/session")).json()
    house.client.cookies.clear()
    second = await house.client.post("/api/v1/session", json={"code": code}, headers=OWN)

    assert (first.status_code, second.status_code) == (204, 401)
    assert me["grants"][0]["role"] == "admin"


async def test_without_a_provider_signing_in_by_one_is_not_there(house: House) -> None:
    assert (await house.client.get("/api/v1/session/oidc")).status_code == 404
