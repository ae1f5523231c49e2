"""`redrive tokens` and `redrive users`: by a person at the machine that holds the store."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from redrive.account_actions import AccountActions
from redrive.actions import Actions
from redrive.cli import users
from redrive.clock import SystemClock
from redrive.identity.passwords import Passwords
from redrive.identity.tokens import Tokens, parse
from redrive.stores.sqlite import SqliteStore
from support.desk import Desk

RIGHT = "correct horse battery staple"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def asked(desk: Desk, question: Callable[[SqliteStore], Awaitable[Any]]) -> Any:
    async def ask() -> Any:
        store = SqliteStore(desk.store_url)
        try:
            return await question(store)
        finally:
            await store.close()

    return asyncio.run(ask())


def known(desk: Desk, text: str) -> Any:
    return asked(desk, lambda store: Tokens(store, SystemClock()).identify(text))


def signed_in(desk: Desk, name: str, password: str) -> Any:
    return asked(desk, lambda store: Passwords(store).check(name, password))


def rows(desk: Desk, family: str) -> Any:
    return json.loads(desk.redrive(family, "list", "-o", "json").out)


def test_the_desk_has_accounts() -> None:
    assert issubclass(Actions, AccountActions)


def test_a_token_is_written_once_alone_on_stdout(desk: Desk) -> None:
    made = desk.redrive("tokens", "create", "ci", "-g", "operator:orders", "-g", "viewer", "--expires", "30d")

    text = made.out.strip()
    shown = parse(text)
    assert made.code == 0
    assert shown is not None
    assert text not in made.err
    assert shown.id in made.err
    assert (known(desk, text)).name.startswith("token:ci of ")
    listed = desk.redrive("tokens", "list").out
    assert shown.id in listed
    assert shown.secret not in listed
    [row] = rows(desk, "tokens")
    assert (row["id"], row["grants"], row["state"]) == (shown.id, ["operator:orders", "viewer"], "live")
    assert shown.secret not in str(row)


def test_a_token_is_revoked_if_somebody_says_yes(desk: Desk) -> None:
    text = desk.redrive("tokens", "create", "ci", "--grant", "viewer").out.strip()
    shown = parse(text)
    assert shown is not None

    assert desk.redrive("tokens", "revoke", shown.id).code == 5
    assert known(desk, text) is not None
    assert desk.redrive("tokens", "revoke", shown.id, "--yes", "--reason", "leaked").code == 0
    assert known(desk, text) is None
    assert rows(desk, "tokens")[0]["state"] == "revoked"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["tokens", "create", "ci"], 2),
        (["tokens", "create", "ci", "-g", "root"], 2),
        (["tokens", "create", "ci", "-g", "viewer", "--expires", "soon"], 2),
        (["tokens", "create", "ci", "-g", "viewer", "--expires", "10y"], 2),
        (["tokens", "create", "ci", "-g", "viewer", "--expires", "400d"], 2),
        (["tokens", "create", " ", "-g", "viewer"], 2),
        (["tokens", "revoke", "abc", "-y"], 3),
        (["users", "add", "eve", "-g", "viewer"], 2),
        (["users", "add", "eve", "-g", "viewer", "--password", RIGHT], 2),
        (["users", "add", "eve", "-g", "viewer", RIGHT], 2),
        (["users", "disable", "eve"], 3),
    ],
)
def test_what_cannot_be_says_so_in_one_line(desk: Desk, arguments: list[str], code: int) -> None:
    done = desk.redrive(*arguments)
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err


def test_a_user_comes_in_by_the_password_of_stdin(desk: Desk) -> None:
    added = desk.redrive("users", "add", "Eve", "-g", "operator", "--password-stdin", stdin=RIGHT + "\n")

    assert added.code == 0
    assert RIGHT not in added.out + added.err
    assert (signed_in(desk, "eve", RIGHT)).name == "eve"
    [row] = rows(desk, "users")
    assert (row["name"], row["grants"], row["disabled"]) == ("eve", ["operator"], False)
    assert "argon2" not in str(row)


def test_a_users_password_grants_and_access_are_changed(desk: Desk) -> None:
    desk.redrive("users", "add", "eve", "-g", "operator", "--password-stdin", stdin=RIGHT)

    assert desk.redrive("users", "password", "eve", "--password-stdin", stdin="another long password").code == 0
    assert signed_in(desk, "eve", RIGHT) is None
    assert desk.redrive("users", "grants", "eve", "-g", "viewer").code == 0
    assert rows(desk, "users")[0]["grants"] == ["viewer"]
    assert desk.redrive("users", "disable", "eve", "-r", "left").code == 0
    assert signed_in(desk, "eve", "another long password") is None
    assert desk.redrive("users", "enable", "eve").code == 0
    assert signed_in(desk, "eve", "another long password") is not None


def test_a_person_is_asked_for_the_password_twice_and_it_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def prompt(text: str, **how: Any) -> str:
        asked.append({"text": text, **how})
        return RIGHT

    monkeypatch.setattr("typer.prompt", prompt)
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)

    assert users._password(from_stdin=False) == RIGHT
    assert asked == [{"text": "Password", "hide_input": True, "confirmation_prompt": True, "err": True}]


def test_a_weak_password_is_not_quoted(desk: Desk) -> None:
    done = desk.redrive("users", "add", "eve", "-g", "viewer", "--password-stdin", stdin="hunter2\n")
    assert done.code == 2
    assert "hunter2" not in done.err
