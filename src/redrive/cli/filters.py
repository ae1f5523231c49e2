"""The filters of `list` and `export`, each an option that must match."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from redrive.dead_letter import Status
from redrive.duration import seconds
from redrive.errors import UsageError

QueueOption = Annotated[str | None, typer.Option("--queue", "-q", help="Of this queue.", show_default=False)]
StatusOption = Annotated[
    Status | None,
    typer.Option("--status", "-s", help="In this status.", case_sensitive=False, show_default=False),
]
TypeOption = Annotated[
    str | None,
    typer.Option("--type", help="With this exception type, its full name or last part.", show_default=False),
]
HandlerOption = Annotated[str | None, typer.Option("--handler", help="Of this handler.", show_default=False)]
GroupOption = Annotated[
    str | None, typer.Option("--group", "-g", help="Of this group (see `redrive groups`).", show_default=False)
]
OlderOption = Annotated[
    str | None,
    typer.Option("--older-than", metavar="DURATION", help="Recorded longer ago: 2d, 12h.", show_default=False),
]
NewerOption = Annotated[
    str | None,
    typer.Option("--newer-than", metavar="DURATION", help="Recorded since: 30m, 1h.", show_default=False),
]


def duration(text: str, option: str) -> float:
    """Seconds. UsageError names the option."""
    try:
        return seconds(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def moment(text: str | None, option: str, now: datetime) -> datetime | None:
    """The moment so long ago; the beginning of time if that is too long."""
    if text is None:
        return None
    try:
        return now - timedelta(seconds=duration(text, option))
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
