"""`redrive users`: people who sign in with a password. Those of an identity provider are not listed here."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from redrive.accounts import User, grant_texts
from redrive.cli.grants import GrantOption, granted
from redrive.cli.interrupting import interruptible
from redrive.cli.invocation import at_desk
from redrive.cli.output import Column, Format, FormatOption, write_rows
from redrive.cli.reasons import ReasonOption
from redrive.desk import Desk
from redrive.errors import UsageError

app = typer.Typer(no_args_is_help=True, help="Users: add, list, password, grants, disable, enable.")

_COLUMNS = (
    Column("name", "USER"),
    Column("grants", "GRANTS", shrinks=True),
    Column("disabled", "DISABLED"),
    Column("created_at", "SINCE"),
    Column("created_by", "BY"),
)
_LONGEST_LINE = 4096

NameArgument = Annotated[str, typer.Argument(metavar="USER", help="The user's name.", show_default=False)]
StdinOption = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from the first line of stdin.")
]


def _password(*, from_stdin: bool) -> str:
    """Never from the command line: other users of the machine can see it, and the shell remembers it."""
    if from_stdin:
        return sys.stdin.readline(_LONGEST_LINE).rstrip("\r\n")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("nobody can be asked for the password here", remedy="give it by --password-stdin")
    with interruptible():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


@app.command("add")
def add(
    ctx: typer.Context,
    name: NameArgument,
    *,
    grant: GrantOption,
    password_stdin: StdinOption = False,
    reason: ReasonOption = None,
) -> None:
    """Add a user. The password is asked for, or read from stdin."""
    password = _password(from_stdin=password_stdin)

    async def work(actions: Desk) -> User:
        return await actions.add_user(name, password, granted(grant), reason=reason or "")

    user = at_desk(ctx, work)
    typer.echo(f"Added user {user.name}: {', '.join(grant_texts(user.grants))}.")


@app.command("list")
def list_(ctx: typer.Context, *, output: FormatOption = Format.TABLE) -> None:
    """List all users."""

    async def work(actions: Desk) -> list[User]:
        return await actions.users()

    write_rows([_row(each) for each in at_desk(ctx, work)], _COLUMNS, output)


def _row(user: User) -> dict[str, Any]:
    values = {column.key: getattr(user, column.key) for column in _COLUMNS}
    return {**values, "grants": grant_texts(user.grants)}


@app.command("password")
def password(
    ctx: typer.Context, name: NameArgument, *, password_stdin: StdinOption = False, reason: ReasonOption = None
) -> None:
    """Set a user's password. The user is signed out everywhere."""
    new = _password(from_stdin=password_stdin)

    async def work(actions: Desk) -> None:
        await actions.set_password(name, new, reason=reason or "")

    at_desk(ctx, work)
    typer.echo(f"Set the password of {name}; all sessions have ended.")


@app.command("grants")
def grants(ctx: typer.Context, name: NameArgument, *, grant: GrantOption, reason: ReasonOption = None) -> None:
    """Set what a user may do, in place of what it was."""
    user = _changed(ctx, lambda actions: actions.set_grants(name, granted(grant), reason=reason or ""))
    typer.echo(f"User {user.name} has: {', '.join(grant_texts(user.grants))}.")


@app.command("disable")
def disable(ctx: typer.Context, name: NameArgument, *, reason: ReasonOption = None) -> None:
    """Keep a user from signing in; all sessions end."""
    user = _changed(ctx, lambda actions: actions.disable_user(name, reason or ""))
    typer.echo(f"User {user.name} is disabled; all sessions have ended.")


@app.command("enable")
def enable(ctx: typer.Context, name: NameArgument, *, reason: ReasonOption = None) -> None:
    """Let a user sign in again."""
    user = _changed(ctx, lambda actions: actions.enable_user(name, reason or ""))
    typer.echo(f"User {user.name} can sign in.")


def _changed(ctx: typer.Context, change: Callable[[Desk], Awaitable[User]]) -> User:
    return at_desk(ctx, change)
