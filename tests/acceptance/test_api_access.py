"""TH9: every route, every method and every role, as OpenAPI itself lists them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from redrive.access import PERMISSIONS, Permission, Role
from support.api_house import House, open_house

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SOMEBODYS = "01890000-0000-7000-8000-000000000000"
PUBLIC = {
    *("/livez", "/readyz", "/healthz"),
    "/metrics",  # for whoever has its token, if there is one: test_metrics.py
    *(f"/api/v1/session{each}" for each in ("", "/oidc", "/oidc/callback")),
    "/api/v1/about",  # for everybody who is signed in: test_environment.py
}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        yield opened


def routes(house: House) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and what OpenAPI says about each."""
    paths = house.app.openapi()["paths"].items()
    return [(method.upper(), path, told) for path, each in paths for method, told in each.items()]


def at(path: str) -> str:
    for name in ("letter_id", "run_id", "group_id", "token_id", "name"):
        path = path.replace(f"{{{name}}}", SOMEBODYS)
    return path.replace("{field}", "queue")


async def test_every_route_declares_a_permission_or_is_known_to_be_public(house: House) -> None:
    undeclared = {path for _, path, told in routes(house) if "x-permission" not in told}

    assert undeclared <= PUBLIC
    assert {told["x-permission"] for _, _, told in routes(house) if "x-permission" in told} <= set(Permission)


@pytest.mark.parametrize("role", [None, *Role], ids=str)
async def test_a_role_reaches_what_it_may_and_nothing_else(house: House, role: Role | None) -> None:
    allowed = set() if role is None else PERMISSIONS[role]
    roles = () if role is None else (role,)
    wrong = []
    for method, path, told in routes(house):
        if path in PUBLIC:
            continue
        body: dict[str, Any] = {} if method == "GET" else {"json": {}}
        got = (await house.ask(method, at(path).removeprefix("/api/v1"), *roles, **body)).status_code
        expected = 401 if role is None else 403
        if (got == expected) is (told["x-permission"] in allowed) or got >= 500:
            wrong.append((method, path, got))

    assert wrong == []


async def test_a_method_that_a_path_does_not_have_is_refused_for_everybody(house: House) -> None:
    """`preview` is where a run's id stands too, and is none."""
    known = {(method, path) for method, path, _ in routes(house)}
    for path in {path for _, path, _ in routes(house)} - PUBLIC - {"/api/v1/runs/preview"}:
        for method in METHODS:
            if (method, path) not in known:
                answer = await house.ask(method, at(path).removeprefix("/api/v1"), Role.ADMIN)
                assert answer.status_code in {404, 405}, (method, path)


async def test_roles_of_one_token_add_up(house: House) -> None:
    letter_id = await house.letter()
    one = await house.ask("DELETE", f"/dlq/{letter_id}", Role.VIEWER)
    both = await house.ask("DELETE", f"/dlq/{letter_id}", Role.VIEWER, Role.OPERATOR)

    assert (one.status_code, both.status_code) == (403, 204)


async def test_a_token_in_the_url_is_refused_whoever_it_belongs_to(house: House) -> None:
    token = await house.token(Role.ADMIN)

    for query in (f"token={token}", f"access_token={token}", f"q={token}", "api_key=x"):
        answer = await house.client.get(f"/api/v1/dlq?{query}")
        assert answer.status_code == 400, query
        assert token not in answer.text


async def test_a_server_that_only_shows_changes_nothing(tmp_path: Path) -> None:
    async with open_house(tmp_path, read_only=True) as house:
        letter_id = await house.letter()

        shown = await house.ask("GET", f"/dlq/{letter_id}", Role.ADMIN)
        dropped = await house.ask("DELETE", f"/dlq/{letter_id}", Role.ADMIN)

        assert (shown.status_code, dropped.status_code) == (200, 409)
        letter = await house.store.get(letter_id)
        assert letter is not None
        assert letter.status == "PENDING"
