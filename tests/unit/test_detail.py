"""The log in detail: a line for each step of each message, in development and not in production (S2)."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from redrive import App, Message, Retry
from redrive.configuration import load
from redrive.telemetry.detail import Detail
from redrive.telemetry.logs import configure_logs
from redrive.wiring import followers
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = Path(__file__).parents[2] / "redrive.example.toml"


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    configure_logs(level="debug", style="json")
    monkeypatch.undo()
    yield told
    structlog.reset_defaults()


@pytest.mark.parametrize(("profile", "detailed"), [("development", True), ("production", False)])
async def test_messages_are_followed_in_the_log_of_development_and_not_of_production(
    profile: str, *, detailed: bool
) -> None:
    settings = load(config=EXAMPLE, profile=profile, environ={}).settings
    async with followers(settings) as spans:
        assert isinstance(spans, Detail) == detailed
        assert (spans is None) != detailed


async def test_each_step_of_a_message_has_its_line(logged: io.StringIO, tmp_path: Path) -> None:
    app, seen = App("shop", retry=Retry(2, "10ms")), []

    @app.handler("orders", name="charge")
    async def charge(message: Message) -> None:
        seen.append(message.id)
        if len(seen) == 1:
            raise TimeoutError("canary")

    async with workshop(app, tmp_path, spans=Detail()) as shop:
        sent = await app.send("orders", {"canary": "canary"})
        await until(lambda: logged.getvalue().count("message settled") == 2)
        await shop.stop()

    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    mine = [line for line in lines if line.get("message_id") == sent.id]
    assert [line["event"] for line in mine] == [
        *(
            "message received",
            "handler ended",
            "message put back for a retry",
            "retry scheduled",
            "message settled",
        ),
        *("message received", "handler ended", "message settled"),
    ]
    ended = [line for line in mine if line["event"] == "handler ended"]
    assert [(line["attempt"], line.get("error"), line["level"]) for line in ended] == [
        (1, "TimeoutError", "debug"),
        (2, None, "debug"),
    ]
    assert _keys(ended[1]) >= {"queue", "handler", "seconds", "timestamp"}
    assert "canary" not in logged.getvalue()


def _keys(line: dict[str, Any]) -> set[str]:
    return set(line)
