"""`redrive keys`: the keys of encryption at rest. Their ids are shown, never the keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.cli.invocation import settings_of
from redrive.cli.output import Column, Format, FormatOption, note, write_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.settings import Settings

app = typer.Typer(help="Keys of encryption at rest: make, list.", no_args_is_help=True)

_COLUMNS = (Column("id", "KEY"), Column("use", "USE"), Column("place", "FROM", shrinks=True))


@app.command("new")
def new(
    ctx: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Where; default: encryption.key_path.", show_default=False),
    ] = None,
) -> None:
    """Make a random key in a new file that only you may read. A file that is there is never overwritten."""
    from redrive.key_sources import make_key  # noqa: PLC0415  slow to import, --help is not

    encryption = settings_of(ctx).encryption
    place = path or encryption.key_path
    made = make_key(place)
    typer.echo(made.id)
    note(f"The key {made.id} is in {place}. Keep a copy elsewhere: without it, nothing it seals can be read.")
    if place != encryption.key_path:
        note("To use it, name the file in encryption.key_path, and the one before in encryption.old_keys.")
    elif not encryption.enabled:
        note("To use it, set encryption.enabled.")


@app.command("list")
def list_(ctx: typer.Context, *, output: FormatOption = Format.TABLE) -> None:
    """List the keys that are set, by their ids. The first one seals, all of them open."""
    write_rows(_rows(settings_of(ctx)), _COLUMNS, output)


def _rows(settings: Settings) -> Iterator[dict[str, Any]]:
    from redrive.encryption_wiring import keys_by_place  # noqa: PLC0415  as above

    for number, (place, key) in enumerate(keys_by_place(settings)):
        use = "seals and opens" if settings.encryption.enabled and not number else "opens"
        yield {"id": key.id, "use": use, "place": place}
