"""docs/api.md says what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import cast

import msgspec

from redrive.api.app import PREFIX, create_app
from redrive.api.door import Door
from redrive.api.guards import MAX_BODY
from redrive.api.metrics import Told
from redrive.api.problems import Problem
from redrive.api.run_wire import RunRequest
from redrive.api.sign_in import Reception
from redrive.server_settings import ServerSettings

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()


def routes() -> set[tuple[str, str]]:
    app = create_app(cast("Door", None), reception=cast("Reception", None), checks={}, told=cast("Told", None))
    paths = app.openapi()["paths"].items()
    return {(method.upper(), path.removeprefix(PREFIX)) for path, each in paths for method in each}


def test_its_routes_are_there() -> None:
    known = {(method, re.sub(r"\{\w+\}", "{id}", path)) for method, path in routes()}
    named = {(method, path) for method, path in re.findall(r"`(GET|POST|PUT|DELETE) (/[^`?]*)`", PAGE)}
    asked = {re.sub("/01890f1c", "/{id}", path) for path in re.findall(r"\$API(/[\w/-]+)", PAGE)}

    assert named
    assert named <= known
    assert asked <= {path for _, path in known}


def test_its_problem_is_one() -> None:
    [block] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    told = msgspec.convert(json.loads(block), Problem)

    assert set(json.loads(block)) == set(Problem.__struct_fields__)
    assert told.error == "TransitionRefused"


def test_its_run_can_be_asked_for() -> None:
    [body] = re.findall(r"-d '(\{\"selection\": .*\"rate\".*\})'", PAGE)

    assert msgspec.json.decode(body, type=RunRequest).rate == 20


def test_its_numbers_are_those_of_the_code() -> None:
    server = ServerSettings()

    assert f"{server.host}:{server.port}" in PAGE
    assert MAX_BODY == 1024 * 1024
