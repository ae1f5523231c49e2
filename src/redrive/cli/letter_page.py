"""One letter as a page for a person: every text in it comes from strangers and is escaped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from redrive import kafka_origin, sqs_origin
from redrive.cli.ages import age
from redrive.cli.escaping import escape, escape_block
from redrive.cli.letter_record import correlation_of, error_line, plain
from redrive.cli.output import cell, console
from redrive.cli.payload_view import payload_view

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter, Happening, Revision
    from redrive.failure import Failure, Host

_LABEL_WIDTH = 14


def print_letter(letter: DeadLetter, now: datetime) -> None:
    from rich.text import Text  # noqa: PLC0415  not needed for JSON

    out = console()
    for style, line in page(letter, now):
        out.print(Text(line, style=style), soft_wrap=True)


def page(letter: DeadLetter, now: datetime) -> Iterator[tuple[str, str]]:
    """Style and text of each part of the page, from top to bottom."""
    yield "bold", f"Letter {letter.id}  {letter.status}{f' ({escape(letter.how)})' if letter.how else ''}"
    for label, value in _facts(letter, now):
        yield "", f"  {label:<{_LABEL_WIDTH}}{cell(value)}"
    if letter.unreadable is None:
        yield from section(_payload_title(letter), payload_view(letter.message.payload))
    else:
        yield from section(f"Payload ({letter.unreadable})", letter.unreadable.explained)
    if letter.message.headers:
        lines = (f"{escape(name)}: {cell(plain(value))}" for name, value in letter.message.headers)
        yield from section("Headers", "\n".join(lines))
    for generation, failure in zip(letter.generations, letter.failures, strict=True):
        yield from section(_attempt_title(generation, failure), escape_block(failure.trace))
    if letter.revision:
        yield from section("Revisions", "\n".join(map(_revision_line, letter.revisions)))
    if letter.history:
        yield from section("History", "\n".join(map(history_line, letter.history)))


def _facts(letter: DeadLetter, now: datetime) -> Iterator[tuple[str, object]]:
    message = letter.message
    yield "error", error_line(letter)
    yield "kind", letter.kind
    yield "queue", letter.queue
    yield "handler", letter.handler
    yield "group", letter.group_id
    yield "attempts", f"{letter.attempts} (deliveries: {letter.deliveries}, generation: {letter.generation})"
    yield (
        "recorded",
        f"{cell(letter.created_at)} ({age(letter.created_at, now)} ago)",
    )
    yield "first attempt", letter.first_attempt_at
    yield "last attempt", letter.last_attempt_at
    yield "message", message.id
    yield "sent", f"{cell(message.sent_at)}{f' by {message.source}' if message.source else ''}"
    if (in_kafka := kafka_origin.origin_of(message)) is not None:
        yield "came from", f"Kafka {in_kafka}"
    if (on_sqs := sqs_origin.origin_of(message)) is not None:
        yield "came from", f"SQS {on_sqs}"
    if (correlation := correlation_of(letter)) is not None:
        yield "correlation", correlation
    if message.key is not None:
        yield "key", plain(message.key) if not message.key.isascii() else message.key.decode("ascii")
    if letter.blocked_by is not None:
        yield "blocked by", f"{letter.blocked_by}, an earlier letter of the same key"
    if message.metadata:
        yield "metadata", message.metadata
    yield "identity", letter.identity


def _payload_title(letter: DeadLetter) -> str:
    size = len(letter.message.payload or b"")
    edited = f", revision {letter.revision}" if letter.revision else ""
    return f"Payload ({size} byte{'' if size == 1 else 's'}{edited})"


def _attempt_title(generation: int, failure: Failure) -> str:
    where = _where(failure.host)
    life = f" of generation {generation}" if generation > 1 else ""
    title = f"Attempt {failure.attempt}{life}, {cell(failure.at)}, {failure.kind}, {failure.handler}"
    return escape(f"{title}, {where}" if where else title)


def _where(host: Host) -> str:
    app = " ".join(filter(None, (host.app, host.app_version)))
    process = f"process {host.process}" if host.process else ""
    return ", ".join(filter(None, (host.name and f"on {host.name}", process, app, host.environment)))


def _revision_line(revision: Revision) -> str:
    what = "original" if revision.number == 0 else f"by {revision.by}"
    why = f": {revision.reason}" if revision.reason else ""
    return escape(
        f"{revision.number}  {cell(revision.at)}  {what}, {len(revision.message.body or b'')} bytes{why}"
    )


def history_line(happening: Happening) -> str:
    moved = happening.before and happening.before != happening.after
    change = f"{happening.before} -> {happening.after}" if moved else happening.after
    why = f": {happening.reason}" if happening.reason else ""
    return escape(f"{cell(happening.at)}  {happening.what}  {change}  by {happening.by}{why}")


def section(title: str, text: str) -> Iterator[tuple[str, str]]:
    yield "", ""
    yield "bold", title
    yield "", "\n".join(f"  {line}" for line in text.split("\n"))
