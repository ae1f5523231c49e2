"""Schemathesis, which nobody here wrote, asks everything that our OpenAPI offers, with the token of every role.

No answer is a 5xx, none differs from its schema or has a status that is not documented, and nothing that breaks
the schema is taken. `REDRIVE_API_CASES` says how many cases in all (`make chaos`: 50,000), at least 3,000.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive.access import Role
from support.amounts import API_CASES
from support.serving import Served, served

CASES = API_CASES
NOT_CHECKED = ("positive_data_acceptance", "ignored_auth")
"""A filter, a cursor or a duration cannot be described by a schema; who is let in is in test_api_access.py."""
OPERATIONS = 60
"""About."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("api"), letters=20) as started:
        yield started


def asked(server: Served, role: Role, *how: str) -> tuple[int, str]:
    """How many cases, and everything that was said."""
    command = [
        *(str(Path(sys.executable).parent / "schemathesis"), "run", f"{server.url}/api/v1/openapi.json"),
        *("-H", f"Authorization: Bearer {server.tokens[role]}", "--workers", "1", "--no-color", *how),
        *("--exclude-checks", ",".join(NOT_CHECKED), "--suppress-health-check", "all"),
    ]
    hooks = {"SCHEMATHESIS_HOOKS": "support.schemathesis_hooks", "PYTHONPATH": str(Path(__file__).parents[1])}
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=server.folder, env=os.environ | hooks
    )
    found = re.search(r"^\s*([\d,]+) generated", ended.stdout, re.MULTILINE)
    assert ended.returncode == 0, ended.stdout[-20_000:]
    assert found is not None
    print(f"{role}: {found[1]} cases")  # noqa: T201  seen with -rP: how much a long run has asked
    return int(found[1].replace(",", "")), ended.stdout


@pytest.mark.timeout(300 + CASES // 5)
def test_every_case_for_an_administrator_is_answered_as_documented(server: Served) -> None:
    number, _ = asked(server, Role.ADMIN, "--phases", "coverage")
    assert number >= 2500

    if CASES:
        examples = str(max(1, (CASES - number) // OPERATIONS // len(Role)))
        asked(server, Role.ADMIN, "--phases", "fuzzing,stateful", "--max-examples", examples)


@pytest.mark.timeout(300 + CASES // 5)
@pytest.mark.parametrize("role", [each for each in Role if each is not Role.ADMIN], ids=str)
def test_every_other_role_is_answered_as_documented(server: Served, role: Role) -> None:
    examples = max(1, CASES // OPERATIONS // len(Role))

    number, _ = asked(server, role, "--phases", "fuzzing", "--max-examples", str(examples))

    assert number >= 70
    assert "Traceback" not in server.said
