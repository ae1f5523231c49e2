"""docs/access.md says what the code does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from redrive.access import PERMISSIONS, Permission, Role
from redrive.access_settings import AccessSettings
from redrive.accounts import grant_of, grant_texts
from redrive.cli import tokens, users
from redrive.identity import bootstrap, failures, passwords, sign_ins
from redrive.identity.claims import ALGORITHMS, SKEW
from redrive.identity.oidc import ASKED_EVERY, KEPT_FOR
from redrive.outgoing import PORTS
from redrive.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "access.md").read_text()
FLAT = " ".join(PAGE.split())


def test_the_table_of_roles_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE)
    assert [(role, re.findall(r"`([^`]+)`", cells)) for role, cells in rows] == [
        (role, [each for each in Permission if each in PERMISSIONS[role]]) for role in Role
    ]


def test_its_grants_can_be_granted() -> None:
    [block] = re.findall(r"```grant\n(.*?)```", PAGE, re.DOTALL)
    assert [grant_texts([grant_of(line)]) for line in block.split()] == [[line] for line in block.split()]


def test_its_settings_can_be_set() -> None:
    [block] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    settings = Settings.model_validate(tomllib.loads(block))
    assert settings.oidc.issuer == "https://idp.example.org/realms/main"
    assert len(settings.oidc.role_map) == 3


def test_its_numbers_are_those_of_the_code() -> None:
    access = AccessSettings()
    assert (access.token_age, access.session, access.session_idle) == (90 * 86400, 12 * 3600, 3600)
    assert f"at least {passwords.SHORTEST} characters" in FLAT
    assert bootstrap.HOLDS_FOR.total_seconds() == 15 * 60
    assert sign_ins.HOLDS_FOR.total_seconds() == 10 * 60
    assert f"({failures.PER_ADDRESS.failures} a minute" in FLAT
    assert f"({failures.PER_NAME.failures} a minute" in FLAT
    assert f"differ by {SKEW} seconds" in FLAT
    assert f"every {ASKED_EVERY:g} seconds" in FLAT
    assert KEPT_FOR == 3600
    assert {443, 8443} == PORTS


def test_it_names_every_algorithm() -> None:
    assert all(name in PAGE for name in ALGORITHMS)


def test_its_commands_exist() -> None:
    made = {
        f"{family} {command.name}"
        for family, app in (("tokens", tokens.app), ("users", users.app))
        for command in app.registered_commands
    }
    named = set(re.findall(r"\b((?:tokens|users) [a-z]+)\b", PAGE))
    assert made <= named
