"""`redrive keys`: the keys of encryption at rest. Their ids are shown, never the keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.cli.changing import DryRunOption, YesOption, confirm, progress
from redrive.cli.invocation import at_store, settings_of
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import Column, Format, FormatOption, note, write_rows
from redrive.cli.reasons import ReasonOption, given_reason
from redrive.errors import Unreachable, UsageError
from redrive.letter_query import LetterQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.actions import Actions
    from redrive.privacy.encryption.rotation import Rotated
    from redrive.settings import Settings

app = typer.Typer(help="Keys of encryption at rest: make, list, rotate, shred, reencrypt.", no_args_is_help=True)

_COLUMNS = (
    Column("id", "KEY"),
    Column("use", "USE"),
    Column("wraps", "DATA KEYS", right=True),
    Column("place", "FROM", shrinks=True),
)


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
    """List keys by their ids: those that are set, of which the first one seals and all open, and how many data
    keys of the store each of them wraps. A key that is missing here is listed too.
    """
    settings = settings_of(ctx)
    write_rows(_rows(settings, _usage(ctx)), _COLUMNS, output)


def _usage(ctx: typer.Context) -> Mapping[str, int]:
    async def work(actions: Actions) -> Mapping[str, int]:
        return await actions.key_usage()

    try:
        return at_store(ctx, work)
    except Unreachable as away:  # the keys themselves can be listed all the same
        note(f"Which data keys of the store they wrap is not known: {away}.")
        return {}


def _rows(settings: Settings, wraps: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    from redrive.encryption_wiring import keys_by_place  # noqa: PLC0415  as above

    found = keys_by_place(settings)
    for number, (place, key) in enumerate(found):
        use = "seals and opens" if settings.encryption.enabled and not number else "opens"
        yield {"id": key.id, "use": use, "wraps": wraps.get(key.id, 0), "place": place}
    known = {key.id for _, key in found}
    for kek_id, number in wraps.items():
        if kek_id not in known:
            yield {"id": kek_id, "use": "missing", "wraps": number, "place": ""}


@app.command("rotate")
def rotate(ctx: typer.Context, *, reason: ReasonOption = None) -> int:
    """Wrap every data key of the store with the current key, while everything goes on.

    What the data keys seal stays as it is, so this is quick. Once no key but the current one is in use (`redrive
    keys list`), older ones are needed for archives alone. Safe to kill and to repeat.
    """

    async def work(actions: Actions) -> Rotated:
        with progress("Wrapping data keys", None) as advance:
            return await actions.rotate_keys(reason or "", on_progress=advance)

    done = at_store(ctx, work)
    typer.echo(f"Wrapped {_counted(done.rewrapped, 'data key')} again.")
    if done.left:
        left = ", ".join(done.left)
        complain(
            f"data keys of {left} are left as they were: the key is not here, or they are damaged",
            "name the file of that key in encryption.old_keys, and rotate again",
        )
        return ExitCode.PARTLY
    return ExitCode.OK


@app.command("shred")
def shred(
    ctx: typer.Context,
    *,
    first: Annotated[str, typer.Option("--from", metavar="DAY", help="The first day in UTC: 2026-03-01.")],
    last: Annotated[str, typer.Option("--to", metavar="DAY", help="The last day, included.")],
    queue: Annotated[
        str | None, typer.Option("--queue", help="Of this queue; else name --all-queues.", show_default=False)
    ] = None,
    all_queues: Annotated[bool, typer.Option("--all-queues", help="Of every queue.")] = False,
    reason: ReasonOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Destroy the data keys of letters that were recorded on these days. What they held is gone for good.

    The letters stay in lists and statistics, with masked texts, and are shown as shredded. Nothing of them can be
    read, sent or found by its content any more, here and in every copy of the database that lacks the data keys.
    Other processes forget them within five minutes. Archives have keys of their own.
    """
    if (queue is None) != all_queues:
        raise UsageError("of which queue?", remedy="name one with --queue, or all of them with --all-queues")
    days, why = (_day(first), _day(last)), given_reason(reason)

    async def work(actions: Actions) -> None:
        number = await actions.count_of_days(queue, *days)
        what = f"{_counted(number, 'letter')} of {'all queues' if queue is None else queue}, {first} to {last}"
        if dry_run:
            typer.echo(f"Would shred {what}. Nothing was changed.")
            return
        confirm(f"Shred {what}? Nobody can bring them back.", yes=yes)
        gone = await actions.shred(queue, *days, why)
        typer.echo(f"Destroyed {_counted(gone, 'data key')}: {what}.")
        if number and not gone:
            note("Those letters are not sealed, or were shredded before.")

    at_store(ctx, work)


@app.command("reencrypt")
def reencrypt(
    ctx: typer.Context,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="All letters, by new data keys; else those that are plain.")
    ] = False,
) -> None:
    """Seal what is plain in the store: letters from before encryption was on. `redrive serve` does it by itself.

    With --all, everything is sealed anew by new data keys, for the case that somebody has got hold of a data key.
    Safe to kill and to repeat, while everything goes on.
    """
    if not settings_of(ctx).encryption.enabled:
        raise UsageError("encryption is off, so nothing is sealed", remedy="set encryption.enabled")

    async def work(actions: Actions) -> int:
        total = (await actions.count(LetterQuery())).number
        with progress("Sealing", total) as advance:
            return await actions.reseal(everything=everything, on_progress=advance)

    typer.echo(f"Sealed {_counted(at_store(ctx, work), 'letter')}.")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no day", remedy="write it as 2026-03-01") from None


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
