from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from redrive.telemetry.logs import configure_logs

if TYPE_CHECKING:
    from collections.abc import Iterator

OBJECT = object()


@pytest.fixture(autouse=True)
def afterwards_as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("plain", "plain"),
        (17, 17),
        ("ünï", "ünï"),
        ("\x7f\x1b[31m\u202e", "\x7f\x1b[31m\u202e"),
        ("\ud800", "\ud800"),
        (OBJECT, repr(OBJECT)),
        ({1: "a"}, {"1": "a"}),
    ],
    ids=["plain", "number", "letters", "control", "surrogate", "object", "keys"],
)
def test_a_line_is_json_and_nothing_but_printable_ascii(
    value: Any, told: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(style="json")
    structlog.get_logger("redrive.test").warning("something happened", value=value)
    line = capsys.readouterr().err.removesuffix("\n")
    assert all(" " <= character <= "~" for character in line)
    assert json.loads(line)["value"] == told
