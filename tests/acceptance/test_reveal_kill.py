"""A reveal, or an unmasked export, is written down before it is shown: whoever pulls the plug has seen nothing
that the ledger does not tell. Points `reveal.` and `export.` of `redrive.faults`.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from redrive.cli.invocation import actor
from support.dead_letters import dead, foreign
from support.desk import Desk

CPF = "529.982.247-25"
WHY = "a customer called"
WAYS = {
    "reveal.noted": ("revealed", ("show", "ID", "--reveal", WHY)),
    "export.noted": ("exported unmasked", ("export", "--unmasked", WHY)),
}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def letter_id(desk: Desk) -> str:
    [recorded] = desk.record(dead(message=foreign(b'{"cpf": "' + CPF.encode() + b'"}')))
    assert desk.redrive("audit", "list").code == 3
    return recorded


def told(desk: Desk) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(desk.redrive("audit", "list", "-o", "json").out or "[]")
    return rows


@pytest.mark.parametrize("point", WAYS)
def test_killed_before_it_is_shown_it_stands_in_the_ledger(desk: Desk, letter_id: str, point: str) -> None:
    what, command = WAYS[point]
    asked = [letter_id if each == "ID" else each for each in command]

    killed = desk.process(*asked, faults=f"{point}=kill9")

    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout == ""
    [row] = told(desk)
    assert (row["what"], row["who"], row["reason"]) == (what, actor(), WHY)
    assert desk.redrive("audit", "verify").code == 0
    assert CPF in desk.process(*asked).stdout  # it would have been shown


@pytest.mark.parametrize("point", WAYS)
def test_killed_before_it_stands_in_the_ledger_nothing_is_shown(desk: Desk, letter_id: str, point: str) -> None:
    asked = [letter_id if each == "ID" else each for each in WAYS[point][1]]

    killed = desk.process(*asked, faults="store.before_commit=kill9")

    assert killed.returncode == -signal.SIGKILL
    assert (killed.stdout, told(desk)) == ("", [])
