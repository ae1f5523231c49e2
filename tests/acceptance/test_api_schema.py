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

import httpx2
import pytest

from redrive.access import Role
from support.serving import Served, served

CASES = int(os.environ.get("REDRIVE_API_CASES") or 0)
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


@pytest.mark.parametrize("number", ["12", "2.2250738585e-313", "-5.489724174871199e-70", "1.e-5"])
@pytest.mark.parametrize(
    "asked_for", ["overview?until", "overview/groups?since", "dlq?created_after", "audit?since"]
)
def test_a_number_is_no_moment(server: Served, asked_for: str, number: str) -> None:
    allowed = {"authorization": f"Bearer {server.token}"}

    refused = httpx2.get(f"{server.url}/api/v1/{asked_for}={number}", headers=allowed)
    taken = httpx2.get(f"{server.url}/api/v1/{asked_for}=2026-05-17T12:00:00Z", headers=allowed)

    assert (refused.status_code, taken.status_code) == (422, 200)


def test_one_value_of_a_list_in_a_url_is_a_list_of_one(server: Served) -> None:
    """So it breaks no schema, which support/schemathesis_hooks.py has to tell Schemathesis."""
    allowed = {"authorization": f"Bearer {server.token}"}
    told = httpx2.get(f"{server.url}/api/v1/openapi.json").json()["paths"]["/api/v1/queues"]["get"]["parameters"]

    none = httpx2.get(f"{server.url}/api/v1/stats/count?ids=false", headers=allowed)

    assert (none.status_code, none.json()["number"]) == (200, 0)
    assert next(each["schema"]["type"] for each in told if each["name"] == "queue") == "array"
