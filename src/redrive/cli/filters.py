"""Which letters: the options that `list` and `export` share. Every one that is given must match."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from redrive.cli.filter_pointer import pointer
from redrive.cli.option_sets import taking
from redrive.dead_letter import Status
from redrive.duration import seconds
from redrive.errors import FilterError, UsageError
from redrive.letter_query import LetterQuery
from redrive.search import Filter, parse

WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where",
        "-w",
        metavar="FILTER",
        help="Matching this filter, such as 'queue:orders age:>2d -handler:refund'.",
        show_default=False,
    ),
]
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


@dataclass(frozen=True, kw_only=True)
class LetterSelection:
    """One field for each option of a command that is `selecting`."""

    where: WhereOption = None
    queue: QueueOption = None
    status: StatusOption = None
    type: TypeOption = None
    handler: HandlerOption = None
    group: GroupOption = None
    older_than: OlderOption = None
    newer_than: NewerOption = None

    def query(self, now: datetime) -> LetterQuery:
        """UsageError names the option, or the column of the filter, that cannot be read."""
        return LetterQuery(
            where=filter_of(self.where, now),
            queue=self.queue,
            status=self.status,
            type=self.type,
            handler=self.handler,
            group=self.group,
            created_before=moment(self.older_than, "--older-than", now),
            created_after=moment(self.newer_than, "--newer-than", now),
        )


selecting = taking(LetterSelection, "selection")
"""The command with the options of a LetterSelection in place of its parameter `selection`."""


def filter_of(text: str | None, now: datetime) -> Filter:
    """UsageError names the column that cannot be read."""
    if text is None:
        return Filter()
    try:
        return parse(text, now=now)
    except FilterError as error:
        if sys.stderr.isatty():
            sys.stderr.write(pointer(text, error.column))
        raise


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
