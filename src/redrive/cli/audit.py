"""`redrive audit`: the ledger of what people and rules did: listed, verified, exported, signed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.actions import Actions
from redrive.cli.changing import progress
from redrive.cli.filters import moment
from redrive.cli.invocation import at_desk, at_store, settings_of
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import Column, Format, FormatOption, json_text, note, write_rows
from redrive.clock import SystemClock
from redrive.desk import Desk
from redrive.errors import UsageError
from redrive.ledger import LedgerQuery

if TYPE_CHECKING:
    from redrive.ledger import LedgerEntry, LedgerKey
    from redrive.ledger_checking import Verified
    from redrive.settings import Settings

app = typer.Typer(help="Read the audit trail, verify it, export it.", no_args_is_help=True)

_SHOWN = (
    Column("seq", "ROW", right=True),
    Column("at", "AT"),
    Column("who", "WHO"),
    Column("allowed", "ALLOWED"),
    Column("what", "WHAT"),
    Column("kind", "OF"),
    Column("count", "NUMBER", right=True),
    Column("ids", "IDS", shrinks=True),
    Column("before", "BEFORE", shrinks=True),
    Column("after", "AFTER", shrinks=True),
    Column("reason", "REASON", shrinks=True),
)
_WRITTEN = tuple(
    Column(key, key)
    for key in (
        *("seq", "at", "who", "token", "allowed", "what", "kind", "count", "ids", "digest"),
        *("before", "after", "reason", "request_id", "key_id", "previous", "mac"),
    )
)

WhoOption = Annotated[
    str | None, typer.Option("--who", help="By this person, rule or engine.", show_default=False)
]
WhatOption = Annotated[
    str | None, typer.Option("--what", help="Such as resolved, purged, approved.", show_default=False)
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="DURATION", help="How far back: 7d, 12h.", show_default=False)
]
DenialsOption = Annotated[bool, typer.Option("--denials", help="Only what was not allowed.")]
KeyFilesOption = Annotated[
    list[Path] | None,
    typer.Option("--key-file", metavar="FILE", help="A further key, such as the one before.", show_default=False),
]
FilesOption = Annotated[
    list[Path] | None,
    typer.Option("--checkpoints", metavar="FILE", help="A further file of checkpoints.", show_default=False),
]


@app.command("list")
def list_(
    ctx: typer.Context,
    *,
    who: WhoOption = None,
    what: WhatOption = None,
    since: SinceOption = None,
    denials: DenialsOption = False,
    before: Annotated[
        int | None,
        typer.Option("--before", min=1, metavar="ROW", help="Rows before that one.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="At most this many.")] = 50,
    output: FormatOption = Format.TABLE,
) -> int:
    """List what people and rules did, and what was denied, newest first. Exit 3 if there is nothing."""
    query = _query(who, what, since, denials=denials, before=before, limit=limit)
    found = at_desk(ctx, lambda actions: actions.ledger(query))
    write_rows(map(_row, found), _SHOWN if output is Format.TABLE else _WRITTEN, output)
    if len(found) == limit and output is Format.TABLE:
        note(f"There may be more: add --before {found[-1].seq}.")
    return ExitCode.OK if found else ExitCode.NOTHING


@app.command("export")
def export(
    ctx: typer.Context,
    *,
    who: WhoOption = None,
    what: WhatOption = None,
    since: SinceOption = None,
    denials: DenialsOption = False,
    after: Annotated[
        int, typer.Option("--after", min=0, metavar="ROW", help="Rows after that one: go on where it ended.")
    ] = 0,
) -> int:
    """Write rows in their order as JSON lines with the field names of the Elastic Common Schema."""
    from redrive.ledger_ecs import ecs  # noqa: PLC0415  only those who export load it

    query = _query(who, what, since, denials=denials, after=after)

    async def work(actions: Desk) -> int:
        count = 0
        async for entry in actions.whole_ledger(query):
            sys.stdout.write(json_text(ecs(entry)) + "\n")
            count += 1
        return count

    count = at_desk(ctx, work)
    note(f"Exported {_rows(count)}.")
    return ExitCode.OK if count else ExitCode.NOTHING


@app.command("verify")
def verify(
    ctx: typer.Context,
    *,
    key_file: KeyFilesOption = None,
    checkpoints: FilesOption = None,
    checkpoint: Annotated[
        bool, typer.Option("--checkpoint", help="If all is well, sign a checkpoint at the end.")
    ] = False,
) -> int:
    """Find rows that were edited, taken out, moved or added, an end that was cut off, a chain that was built anew.

    Exit 0 if the ledger is what was written, else 1 with each finding.
    """
    settings = settings_of(ctx)
    keys, files = _keys(settings, key_file or []), _files(settings, checkpoints or [])

    async def work(actions: Actions) -> Verified:
        with progress("Verifying", await actions.ledger_length()) as advance:
            done = await actions.verify_ledger(keys, files, on_progress=advance)
        if checkpoint and done.sound:
            await actions.sign_checkpoint(_own_key(settings), _file(settings))
        return done

    done = at_store(ctx, work)
    for finding in done.findings:
        complain(f"{finding.fault}: {finding.text}")
    if done.faults:
        complain(
            f"{_counted(done.faults, 'finding')} in {_rows(done.rows)}", "keep a copy of store and checkpoints"
        )
        return ExitCode.FAILED
    typer.echo(f"ok: {_rows(done.rows)}, {_counted(done.checkpoints, 'checkpoint')}")
    if done.rows and not done.checkpoints:
        note("There is no checkpoint: whoever holds the key could have built it anew. `redrive audit checkpoint`")
    return ExitCode.OK


@app.command("checkpoint")
def checkpoint(
    ctx: typer.Context,
    *,
    public_key: Annotated[
        bool, typer.Option("--public-key", help="Write the public key of checkpoints (PEM), sign nothing.")
    ] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Even if rows are not as they were written.")] = False,
) -> None:
    """Sign the ledger as it is now: a line in the file of [audit] checkpoints. Copy that file elsewhere."""
    settings = settings_of(ctx)
    key, file = _own_key(settings), _file(settings)
    if public_key:
        from redrive.ledger_checkpoints import public_pem  # noqa: PLC0415  only those who sign load it

        sys.stdout.write(public_pem(key))
        return
    made = at_store(ctx, lambda actions: actions.sign_checkpoint(key, file, anyway=anyway))
    typer.echo("Nothing to sign: nothing happened." if made is None else f"Signed row {made.seq} in {file}.")


def _query(who: str | None, what: str | None, since: str | None, *, denials: bool, **place: Any) -> LedgerQuery:
    begin = moment(since, "--since", SystemClock().now())
    return LedgerQuery(who=who, what=what, since=begin, allowed=False if denials else None, **place)


def _row(entry: LedgerEntry) -> dict[str, Any]:
    names = [name for name in entry.__struct_fields__ if name != "subject"]
    subject = entry.subject
    told = {"kind": subject.kind, "ids": list(subject.ids), "count": subject.count, "digest": subject.digest}
    return {name: getattr(entry, name) for name in names} | told


def _keys(settings: Settings, further: list[Path]) -> list[LedgerKey]:
    """Those there are: whoever only looks makes none."""
    from redrive.ledger_keys import key_in  # noqa: PLC0415  only those who verify load it

    given = list(map(key_in, further))
    if settings.audit.key is None and not settings.audit.key_path.exists():
        note(f"There is no key in {settings.audit.key_path}.")
        return given
    return [_own_key(settings), *given]


def _own_key(settings: Settings) -> LedgerKey:
    from redrive.wiring import ledger_key  # noqa: PLC0415  as above

    return ledger_key(settings)


def _files(settings: Settings, further: list[Path]) -> list[Path]:
    return [each for each in (settings.audit.checkpoints, *further) if each is not None]


def _file(settings: Settings) -> Path:
    if settings.audit.checkpoints is None:
        raise UsageError("there is no file for checkpoints", remedy="name one in [audit] checkpoints")
    return settings.audit.checkpoints


def _rows(number: int) -> str:
    return _counted(number, "row")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
