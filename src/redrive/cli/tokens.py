"""`redrive tokens`: what programs show to come in."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from redrive.account_actions import MadeToken
from redrive.accounts import ApiToken, grant_texts
from redrive.cli.changing import YesOption, confirm
from redrive.cli.grants import GrantOption, granted
from redrive.cli.invocation import at_desk
from redrive.cli.output import Column, Format, FormatOption, note, write_rows
from redrive.cli.reasons import ReasonOption
from redrive.clock import SystemClock
from redrive.desk import Desk
from redrive.duration import seconds
from redrive.errors import UsageError

app = typer.Typer(no_args_is_help=True, help="API tokens: make, list, revoke.")

_SHOWN = (
    Column("id", "TOKEN"),
    Column("name", "NAME", shrinks=True),
    Column("grants", "GRANTS", shrinks=True),
    Column("state", "STATE"),
    Column("expires_at", "UNTIL"),
    Column("last_used_at", "LAST USED"),
    Column("created_by", "BY"),
)
_WRITTEN = tuple(Column(key, key) for key in (*ApiToken.__struct_fields__, "state"))


@app.command("create")
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for.", show_default=False)],
    *,
    grant: GrantOption,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="DURATION", help="How long it holds, such as 30d.", show_default=False),
    ] = None,
    reason: ReasonOption = None,
) -> None:
    """Make a token. It is written to stdout, once: nobody can show it again."""
    lasts = None if expires is None else _duration(expires)

    async def work(actions: Desk) -> MadeToken:
        return await actions.create_token(name, granted(grant), lasts=lasts, reason=reason or "")

    made = at_desk(ctx, work)
    sys.stdout.write(made.text + "\n")
    note(
        f"Token {made.token.id} holds until {made.token.expires_at:%Y-%m-%d %H:%M} UTC. Keep it: it is shown once."
    )


def _duration(text: str) -> timedelta:
    try:
        return timedelta(seconds=seconds(text))
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is no duration", remedy="write it like 30d or 12h") from None


@app.command("list")
def list_(ctx: typer.Context, *, output: FormatOption = Format.TABLE) -> None:
    """List all tokens, those that have ended included."""

    async def work(actions: Desk) -> list[ApiToken]:
        return await actions.tokens()

    now = SystemClock().now()
    rows = [_row(each, now) for each in at_desk(ctx, work)]
    write_rows(rows, _SHOWN if output is Format.TABLE else _WRITTEN, output)


def _row(token: ApiToken, now: datetime) -> dict[str, Any]:
    values = {name: getattr(token, name) for name in ApiToken.__struct_fields__}
    return {**values, "grants": grant_texts(token.grants), "state": _state(token, now)}


def _state(token: ApiToken, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "live" if token.is_live(now) else "expired"


@app.command("revoke")
def revoke(
    ctx: typer.Context,
    token: Annotated[
        str, typer.Argument(metavar="TOKEN", help="Its id, as `tokens list` shows it.", show_default=False)
    ],
    *,
    reason: ReasonOption = None,
    yes: YesOption = False,
) -> None:
    """End a token at once and for good."""

    async def work(actions: Desk) -> ApiToken:
        confirm(f"Revoke token {token}?", yes=yes)
        return await actions.revoke_token(token, reason or "")

    revoked = at_desk(ctx, work)
    typer.echo(f"Token {revoked.id} is revoked since {revoked.revoked_at:%Y-%m-%d %H:%M} UTC.")
