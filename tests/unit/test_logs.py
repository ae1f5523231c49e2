from __future__ import annotations

import ast
import asyncio
import json
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import structlog

import redrive
from redrive.api.guards import Guards
from redrive.telemetry.logs import configure_logs
from redrive.transports.rabbitmq.line import Line
from support.traced import Traced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

OBJECT = object()


@pytest.fixture(autouse=True)
def afterwards_as_before() -> Iterator[None]:
    resort = logging.lastResort
    yield
    structlog.reset_defaults()
    logging.lastResort = resort


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


@pytest.mark.parametrize("told", ["two\nlines", "\x1b[31mred", "\u202eturned round", "back\rspaced", "\x9b2J"])
def test_for_people_too_an_event_is_one_line_of_what_can_be_printed(
    told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(style="console")
    structlog.get_logger("redrive.test").warning("something happened", message_id=told)
    line = capsys.readouterr().err.removesuffix("\n")
    assert "something happened" in line
    assert line.isprintable()


async def test_every_line_of_a_request_bears_its_id_and_no_other_line_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs(style="json")
    log = structlog.get_logger("redrive.test")

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        log.info("asked", path=scope["path"])
        await asyncio.sleep(0)
        log.info("answered", path=scope["path"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    transport = httpx2.ASGITransport(app=Guards(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://redrive.test") as client:
        asking = [client.get(f"/{name}", headers={"x-request-id": name}) for name in ("one", "two")]
        answers = await asyncio.gather(*asking)
    log.info("afterwards")

    assert [answer.headers["x-request-id"] for answer in answers] == ["one", "two"]
    *lines, last = _lines(capsys)
    assert len(lines) == 4
    assert [line["path"] for line in lines] == [f"/{line['request_id']}" for line in lines]
    assert "request_id" not in last


def test_a_line_within_a_span_bears_its_ids_and_one_outside_bears_none(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(style="json")
    log, traced = structlog.get_logger("redrive.test"), Traced()
    log.info("before")
    with traced.provider.get_tracer("test").start_as_current_span("step") as span:
        log.info("within")
    log.info("after")

    before, within, after = _lines(capsys)
    there = span.get_span_context()
    assert (within["trace_id"], within["span_id"]) == (f"{there.trace_id:032x}", f"{there.span_id:016x}")
    assert not {"trace_id", "span_id"} & (before.keys() | after.keys())


async def test_what_is_logged_of_a_connection_is_not_about_whoever_opened_it() -> None:
    seen: list[dict[str, Any]] = []

    async def connect() -> Any:
        seen.append(structlog.contextvars.get_contextvars())

    with structlog.contextvars.bound_contextvars(run_id="17"):
        await Line(connect).connection()
    assert seen == [{}]


def test_what_other_libraries_log_is_one_line_of_ours_without_the_text_of_their_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs(style="json")
    logger = logging.getLogger("another.library")
    handlers, logging.root.handlers = logging.root.handlers, []  # pytest's own
    try:
        try:
            int("canary")
        except ValueError:
            logger.exception("it went\nwrong: %s", 17)
        logger.info("not of interest")
    finally:
        logging.root.handlers = handlers

    [line] = _lines(capsys)
    assert (line["event"], line["level"], line["logger"]) == ("it went\nwrong: 17", "error", "another.library")
    assert line["error"] == "ValueError"
    assert "canary" not in json.dumps(line)


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


# The page about logs

_LEVELS = {"debug", "info", "warning", "error", "critical"}


def keys_of_the_source() -> dict[str, str]:
    """Every key that some line is given by its name, and where."""
    found: dict[str, str] = {}
    for path in Path(redrive.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and _logs(call.func):
                found |= {each.arg: f"{path.name}:{call.lineno}" for each in call.keywords if each.arg is not None}
    return found


def _logs(called: ast.expr) -> bool:
    if isinstance(called, ast.IfExp):
        return _logs(called.body)
    return (
        isinstance(called, ast.Attribute) and called.attr in _LEVELS and ast.unparse(called.value).endswith("log")
    )


def test_every_key_of_a_line_is_told_and_means_one_thing() -> None:
    page = (Path(__file__).parents[2] / "docs" / "logs-and-traces.md").read_text("utf-8")
    told = {key for line in page.splitlines() if line.startswith("|") for key in re.findall(r"`(\w+)`", line)}
    found = keys_of_the_source()
    assert {key: place for key, place in found.items() if key not in told} == {}
    assert "type" not in found, "say whose type it is: error_type or message_type"
