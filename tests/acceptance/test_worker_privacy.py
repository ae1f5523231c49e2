"""What is in a message never reaches a log, whatever becomes of the message and however logs are written."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pytest
import structlog
from pydantic import BaseModel, ConfigDict, Field

from redrive import App, DeadLetter, Message, Permanent, Retry, Transient, faults
from redrive.telemetry.logs import configure_logs
from redrive.testing import bench_for
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CANARY = "canary"
"""In every value and every unknown name of every message here, and in nothing else."""
SECRETS = {
    "name": "Ana canary",
    "mail": "ana.canary@example.com",
    "quoted": 'it\'s a "canary" of ours',
    CANARY: 1,
    "list": [{"nested": "canary"}],
}


class Size(Enum):
    SMALL = "small"


@dataclass
class Order:
    number: int


@dataclass
class Parcel:
    size: Size


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    number: int = 0


class Payment(BaseModel):
    model_config = ConfigDict(extra="forbid")
    amount: int


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Home(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    prices: dict[str, int] = {}


UNDECODABLE: dict[str, tuple[Any, Any]] = {
    "dataclass": (Order, {"number": "canary"}),
    "enum": (Parcel, {"size": "it's a canary"}),
    "unknown-field": (Strict, {"number": 1, "canary": 2}),
    "pydantic": (Payment, {"amount": "canary"}),
    "pydantic-unknown-field": (Payment, {"amount": 1, "canary": 2}),
    "pydantic-tag": (Home, {"pet": {"kind": "it's a canary"}}),
    "pydantic-key": (Home, {"pet": {"kind": "cat"}, "prices": {"canary": "x"}}),
    "text": (int, "canary"),
}


@pytest.fixture(params=["json", "console", "the library's default"])
def logs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Everything that is logged."""
    told = io.StringIO()
    if request.param == "the library's default":
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(file=told))
    else:
        monkeypatch.setattr(sys, "stderr", told)
        configure_logs(level="debug", style=request.param)
        monkeypatch.undo()
    yield told
    structlog.reset_defaults()
    faults.arm("")


def shop() -> App:
    app = App("shop", retry=Retry(2, "5s"))

    @app.handler("succeeds")
    async def succeed(_data: dict[str, Any]) -> None:
        pass

    @app.handler("retried")
    def retry(data: dict[str, Any]) -> None:
        raise Transient(f"cannot reach {data['mail']!r}")

    @app.handler("refused")
    async def refuse(message: Message) -> None:
        raise Permanent(f"no customer {message.data['name']!r} in {message!r}")

    @refuse.on_dead_letter
    def tell(letter: DeadLetter) -> None:
        secret = letter.message.data["name"]
        raise RuntimeError(f"cannot tell anybody about {secret}")

    @app.handler("unquoted")
    async def refuse_plainly(data: dict[str, Any]) -> None:
        raise ValueError(f"unknown customer {data['name']} of ours")

    @app.handler("missing-key")
    async def look_up(data: dict[str, Any]) -> None:
        _ = {}[data["quoted"]]

    for name, (annotation, _) in UNDECODABLE.items():
        _asks_for(app, name, annotation)
    return app


def _asks_for(app: App, queue: str, annotation: Any) -> None:
    def handler(_data: Any) -> None:
        pass

    handler.__annotations__ = {"_data": annotation}
    app.handler(queue, name=f"handle {queue}")(handler)


async def test_no_log_line_holds_anything_of_a_message(logs: io.StringIO) -> None:
    app = shop()
    async with bench_for(app) as bench:
        for queue in ("succeeds", "retried", "refused", "unquoted", "missing-key"):
            await bench.send(queue, SECRETS, metadata={"m": CANARY}, headers=(("h", CANARY),), key=b"canary")
        for queue, (_, data) in UNDECODABLE.items():
            await bench.send(queue, data)
        for queue in ("retried", "dataclass", "pydantic", "text"):
            await bench.send_foreign(queue, b'{"canary": \xff')
        await bench.run_until_quiet()

        assert len(bench.letters) == 4 + len(UNDECODABLE) + 4

    told = logs.getvalue()
    assert told.count("message sent to dead letter queue") == 4 + len(UNDECODABLE) + 4
    assert "retry scheduled" in told
    assert "a dead-letter hook failed" in told
    assert CANARY not in told


async def test_not_even_a_failure_of_our_own_shows_the_message(logs: io.StringIO, tmp_path: Path) -> None:
    app = shop()
    async with workshop(app, tmp_path) as here:
        faults.arm("worker.before_ack=raise")
        await here.send("succeeds", SECRETS)
        await here.send("refused", SECRETS)
        await until(lambda: logs.getvalue().count("not settled, will come again") >= 2)
        faults.arm("")
        await here.stop()

    told = logs.getvalue()
    assert "FaultInjected" in told
    assert CANARY not in told


@pytest.mark.parametrize("name", UNDECODABLE)
async def test_a_letter_of_what_does_not_decode_says_where_without_repeating_what(name: str) -> None:
    annotation, data = UNDECODABLE[name]
    app = App("shop")
    _asks_for(app, "orders", annotation)
    async with bench_for(app) as bench:
        await bench.send("orders", data)
        await bench.run_until_quiet()

        letter = bench.assert_dead_lettered("orders", type="Undecodable", count=1)
        assert CANARY not in letter.text
        assert letter.text
