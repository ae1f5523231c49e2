"""`redrive send QUEUE [DATA]`: puts messages into a queue and prints their ids."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import typer

from redrive.cli.changing import progress
from redrive.cli.escaping import escape
from redrive.cli.invocation import settings_of
from redrive.clock import SystemClock, new_id
from redrive.duration import seconds
from redrive.errors import UsageError
from redrive.message import Headers, Message

if TYPE_CHECKING:
    from redrive.settings import Settings

app = typer.Typer()

_AT_ONCE = 100
_LONGEST_NAME = 255


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """What every message of one command has in common."""

    queue: str
    body: bytes
    raw: bool
    source: str
    headers: Headers
    metadata: dict[str, Any]
    key: bytes | None

    def message(self) -> Message:
        now, new = SystemClock().now(), new_id()
        if self.raw:
            return Message(
                id=new, queue=self.queue, body=self.body, sent_at=now, headers=self.headers, key=self.key
            )
        return Message.create(
            id=new,
            sent_at=now,
            queue=self.queue,
            data=msgspec.Raw(self.body),  # as it was written: numbers keep their digits
            source=self.source,
            metadata=self.metadata,
            headers=self.headers,
            key=self.key,
        )


@app.command("send")
def send(
    ctx: typer.Context,
    *,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="Its name.")],
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="JSON text; '-' or nothing reads stdin.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the data here.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Send the bytes as they are, without our envelope.")] = False,
    header: Annotated[list[str] | None, typer.Option("--header", "-H", metavar="K=V", help="Repeatable.")] = None,
    metadata: Annotated[list[str] | None, typer.Option("--metadata", metavar="K=V", help="Repeatable.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="The message's key, as text.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Who sends it.")] = None,
    delay: Annotated[str, typer.Option("--delay", help="Not before: 5s, 10m, 2h.")] = "0s",
    count: Annotated[int, typer.Option("--count", min=1, help="Send it this often, each with its own id.")] = 1,
) -> None:
    """Send a message to a queue and print its id.

    redrive send orders '{"order_id": 123}' --source checkout --metadata priority=high
    """
    wait = _wait(delay)
    settings = settings_of(ctx)
    body = _read(data, file)
    parcel = Parcel(
        queue=_queue(queue),
        body=body if raw else _json(body),
        raw=raw,
        source=source if source is not None else settings.app.name or "redrive send",
        headers=tuple(_pairs("--header", header)),
        metadata=dict(_pairs("--metadata", metadata)),
        key=None if key is None else key.encode("utf-8", "surrogateescape"),
    )
    asyncio.run(_send(settings, parcel, count=count, delay=wait))


async def _send(settings: Settings, parcel: Parcel, *, count: int, delay: float) -> None:
    from redrive.wiring import producer  # noqa: PLC0415  not needed for --help

    async with producer(settings) as transport:
        with progress("Sending", count if count > _AT_ONCE else None) as advance:
            for start in range(0, count, _AT_ONCE):
                messages = [parcel.message() for _ in range(min(_AT_ONCE, count - start))]
                sending = (transport.send(message, delay=delay) for message in messages)
                # Together, so that they share commits; each one's id is printed if and only if it was sent.
                _tell(messages, await asyncio.gather(*sending, return_exceptions=True))
                advance(len(messages))


def _tell(messages: Sequence[Message], results: Sequence[BaseException | None]) -> None:
    for message, result in zip(messages, results, strict=True):
        if result is None:
            typer.echo(message.id)
    for result in results:
        if result is not None:
            raise result


def _read(data: str | None, file: Path | None) -> bytes:
    if file is not None:
        if data is not None:
            raise UsageError("both DATA and --file are given", remedy="give one of the two")
        return _read_file(file)
    if data is not None and data != "-":
        return data.encode("utf-8", "surrogateescape")  # the bytes that were typed
    if data is None and sys.stdin.isatty():
        raise UsageError("there is no DATA", remedy="""such as: redrive send QUEUE '{"order_id": 123}'""")
    return sys.stdin.buffer.read()


def _read_file(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}", remedy="name a readable file") from None


def _json(body: bytes) -> bytes:
    """The same bytes, if they are JSON; what is wrong is told without repeating them."""
    remedy = "correct it, or send the bytes as they are with --raw"
    try:
        json.loads(body, parse_constant=_refuse_constant)
        msgspec.json.decode(body)  # what handlers read with: half a surrogate pair is not JSON to it
    except UnicodeDecodeError:
        raise UsageError("the data is not JSON: it is not UTF-8", remedy=remedy) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"the data is not JSON: {error.msg} ({place})", remedy=remedy) from None
    except (ValueError, RecursionError, msgspec.DecodeError) as error:
        raise UsageError(f"the data is not JSON that can be sent: {error}", remedy=remedy) from None
    return body.strip()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _queue(name: str) -> str:
    if not name.strip() or name != name.strip() or escape(name) != name or len(name) > _LONGEST_NAME:
        raise UsageError(
            f"{name[:_LONGEST_NAME]!r} cannot be the name of a queue",
            remedy=f"at most {_LONGEST_NAME} visible characters, no space at its ends",
        )
    return name


def _pairs(option: str, given: Sequence[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for each in given or ():
        name, equals, value = each.partition("=")
        if not (equals and name):
            raise UsageError(f"{option} {each!r} is no pair", remedy=f"write {option} name=value")
        pairs.append((name, value))
    return pairs


def _wait(delay: str) -> float:
    try:
        return seconds(delay)
    except ValueError as error:
        raise UsageError(f"--delay: {error}") from None
