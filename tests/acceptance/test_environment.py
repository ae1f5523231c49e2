"""TH27, as people meet it: settings of one environment at the store of another, and what pages are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redrive.access import Role
from redrive.dead_letter import Status
from support.api_house import open_house
from support.dead_letters import dead
from support.desk import Desk

REFUSED = "this store belongs to environment 'production', the settings say 'staging'"
SHOP = """
from redrive import App

app = App("shop")

@app.handler("orders")
async def charge(data: dict) -> None: ...
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A store of production, and somebody whose settings say staging."""
    (tmp_path / "shop.py").write_text(SHOP)
    desk = Desk(tmp_path)
    says(desk, "production")
    [letter_id] = desk.record(dead())
    assert desk.redrive("discard", letter_id, "--reason", "a test", "--yes").code == 0
    assert desk.redrive("restore", letter_id, "--reason", "a test", "--yes").code == 0
    says(desk, "staging")
    return desk


def says(desk: Desk, environment: str) -> None:
    (desk.folder / "redrive.toml").write_text(f'[app]\nenvironment = "{environment}"\n')


@pytest.mark.parametrize(
    "command",
    [
        ("work", "shop:app", "--drain"),
        ("engine",),
        ("serve", "--port", "0"),
        ("collect", "orders_dlq", "--once"),
        ("retry", "--queue", "orders", "--yes"),
        ("list",),
    ],
    ids=lambda command: command[0],
)
def test_whoever_is_of_another_environment_is_refused(desk: Desk, command: tuple[str, ...]) -> None:
    ended = desk.process(*command)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert REFUSED in ended.stderr
    assert "app.environment" in ended.stderr


def test_the_store_is_given_to_another_environment_for_a_reason(desk: Desk) -> None:
    told = desk.redrive("db", "environment")
    without = desk.redrive("db", "environment", "staging")
    renamed = desk.redrive("db", "environment", "staging", "--reason", "a copy for tests")

    assert (told.code, told.out) == (0, "production\n")
    assert without.code == 2
    assert renamed.out == "production -> staging\n"
    letter = json.loads(desk.redrive("list", "-o", "json").out)[0]
    assert letter["status"] == Status.PENDING
    row = json.loads(desk.redrive("audit", "list", "-o", "json", "--limit", "1").out)[0]
    assert (row["what"], row["before"], row["after"]) == ("environment", "production", "staging")
    assert row["reason"] == "a copy for tests"


async def test_a_page_is_told_where_it_is_by_any_role_and_nobody_else(tmp_path: Path) -> None:
    async with open_house(tmp_path, read_only=True) as house:
        unnamed = (await house.ask("GET", "/about", Role.VIEWER)).json()
        house.store.belong_to("production")
        await house.letter()
        answers = {role: await house.ask("GET", "/about", role) for role in Role}
        nobody = await house.ask("GET", "/about")

    assert (unnamed["environment"], unnamed["production"]) == ("", False)
    assert {each.status_code for each in answers.values()} == {200}
    told = answers[Role.INGEST].json()
    assert (told["environment"], told["production"], told["read_only"]) == ("production", True, True)
    assert told["features"] == {"oidc": False, "local_users": True}
    assert told["version"]
    assert nobody.status_code == 401
