"""`redrive groups`: dead letters by cause."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from redrive.cli.ages import age
from redrive.cli.filters import QueueOption
from redrive.cli.invocation import at_desk
from redrive.cli.outcome import ExitCode
from redrive.cli.output import Column, Format, FormatOption, note, write_rows
from redrive.clock import SystemClock
from redrive.dead_letter import FailureGroup

app = typer.Typer()

_SHOWN = (
    Column("short_id", "GROUP"),
    Column("pending", "PENDING", right=True),
    Column("total", "TOTAL", right=True),
    Column("queue", "QUEUE"),
    Column("handler", "HANDLER"),
    Column("title", "CAUSE", shrinks=True),
    Column("last", "LAST SEEN", right=True),
)
_WRITTEN = tuple(Column(key, key) for key in FailureGroup.__struct_fields__)
_SHORT = 12


@app.command("groups")
def groups(
    ctx: typer.Context,
    *,
    queue: QueueOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="At most this many.")] = 50,
    output: FormatOption = Format.TABLE,
) -> int:
    """List failures by cause, those with the most pending letters first.

    The letters of one: redrive list --group GROUP
    """
    found = at_desk(ctx, lambda actions: actions.groups(queue=queue, limit=limit))
    if output is Format.TABLE and not found:
        note("No failures." if queue is None else f"No failures of {queue}.")
    else:
        rows = map(_row if output is Format.TABLE else msgspec.structs.asdict, found)
        write_rows(rows, _SHOWN if output is Format.TABLE else _WRITTEN, output)
    return ExitCode.NOTHING if queue is not None and not found else ExitCode.OK


def _row(group: FailureGroup) -> dict[str, Any]:
    last = f"{age(group.last_seen, SystemClock().now())} ago"
    return {**msgspec.structs.asdict(group), "short_id": group.id[:_SHORT], "last": last}
