"""`redrive config check` and `redrive config show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from redrive.cli.invocation import invocation_of
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import Column, Format, FormatOption, note, write_rows
from redrive.secret_table import SecretTable
from redrive.secret_text import SecretText
from redrive.secret_url import SecretUrl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.configuration import Configuration, Inspection

app = typer.Typer(help="Check the settings, or show where each comes from.", no_args_is_help=True)

_COLUMNS = (
    Column("key", "SETTING"),
    Column("value", "VALUE", style="cyan", shrinks=True),
    Column("origin", "FROM", style="dim", shrinks=True),
)


@app.command("check")
def check(ctx: typer.Context) -> int:
    """Say which settings are used, and everything that is wrong with them."""
    from redrive.configuration import inspect  # noqa: PLC0415  pydantic is slow to import, --help is not

    given = invocation_of(ctx)
    inspection = inspect(config=given.config, profile=given.profile)
    for problem in inspection.problems:
        complain(str(problem), problem.remedy)
    if inspection.problems:
        return ExitCode.USAGE
    typer.echo(f"ok: {_sources(inspection)}")
    return ExitCode.OK


@app.command("show")
def show(ctx: typer.Context, output: FormatOption = Format.TABLE) -> None:
    """Show every setting in effect and where it comes from. Passwords are hidden.

    A queue has rows of its own for what differs from the general settings.
    """
    configuration = invocation_of(ctx).configuration()
    if output is Format.TABLE:
        note(_sources(configuration))
    write_rows(_rows(configuration, written=output is not Format.JSON), _COLUMNS, output)


def _sources(found: Inspection | Configuration) -> str:
    file = "no settings file, defaults" if found.file is None else str(found.file)
    return f"{file}, profile {found.profile}" if found.profile else file


def _rows(configuration: Configuration, *, written: bool) -> Iterator[dict[str, Any]]:
    from redrive.configuration.tree import leaves, table_of, text_of  # noqa: PLC0415  as above

    for key, field, value in leaves(configuration.settings):
        if table_of(key) is not None and not configuration.is_set(key):
            continue
        shown = text_of(field, value) if written else _plain(value)
        yield {"key": ".".join(key), "value": shown, "origin": configuration.origin(key)}


def _plain(value: Any) -> Any:
    if isinstance(value, SecretTable | SecretText | SecretUrl | Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
