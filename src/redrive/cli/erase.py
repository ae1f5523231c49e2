"""`redrive erase`: what is kept about a person goes, if one asks for it and a second one agrees (LGPD)."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.cli.changing import DryRunOption, YesOption, confirm, progress
from redrive.cli.interrupting import interruptible
from redrive.cli.invocation import at_store, settings_of
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import Column, Format, FormatOption, note, write_rows
from redrive.cli.reasons import ReasonOption, given_reason
from redrive.cli.run_options import NameOption
from redrive.erasure import Erasure, Person
from redrive.errors import UsageError

if TYPE_CHECKING:
    from redrive.actions import Actions
    from redrive.erasure_actions import AboutPerson, Erased
    from redrive.upkeep.archive import Archive

app = typer.Typer(help="Erase what is kept about a person; a second one agrees.", no_args_is_help=True)

_COLUMNS = (
    Column("id", "ID"),
    Column("status", "STATUS"),
    Column("requested_by", "REQUESTED BY"),
    Column("requested_at", "AT"),
    Column("approved_by", "APPROVED BY"),
    Column("found", "FOUND", right=True),
    Column("erased", "ERASED", right=True),
    Column("reason", "REASON", shrinks=True),
)

SubjectOption = Annotated[
    str | None,
    typer.Option(
        "--subject",
        metavar="VALUE",
        help="What the person is known by: a CPF, an address. - reads it from stdin; else it is asked for.",
        show_default=False,
    ),
]
IdArgument = Annotated[str, typer.Argument(metavar="ERASURE", help="Its id, as `redrive erase list` shows it.")]


@app.command("request")
def request(
    ctx: typer.Context,
    *,
    subject: SubjectOption = None,
    reason: ReasonOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    name: NameOption = None,
) -> int:
    """Ask for the erasure of every letter that holds a value. Nothing is erased before somebody else agrees.

    The value itself is not kept, only keyed hashes of it; do not write it into the reason. Letters in the archives
    of this machine count too. With --dry-run: how many letters there are, by queue and status. Exit 3 if there are
    none.
    """
    person, archive = _person(subject), _archive(ctx)

    async def work(actions: Actions) -> int:
        if dry_run:
            found = await actions.about(person, archive)
            note(f"Would ask to erase {_counted(found)}. Nothing was changed.")
            return ExitCode.OK if found.number else ExitCode.NOTHING
        why = given_reason(reason)
        confirm("Ask for the erasure of everything about that person?", yes=yes)
        made = await actions.request_erasure(person, why, archive)
        typer.echo(made.id)
        note(f"Asked to erase {_letters(made.found)}. Somebody else: `redrive erase approve {made.id}`.")
        return ExitCode.OK

    return at_store(ctx, work, name=name)


@app.command("approve")
def approve(
    ctx: typer.Context,
    erasure: IdArgument,
    *,
    subject: SubjectOption = None,
    reason: ReasonOption = None,
    yes: YesOption = False,
    name: NameOption = None,
) -> int:
    """Agree to an erasure that somebody else has asked for, and carry it out. Nobody can bring the letters back.

    The same value has to be given. Archives of this machine that hold letters of the person are written anew
    without them, and so are their copies. Safe to kill and to repeat. Exit 4, and the erasure is not done, if
    letters are left that are being sent, or archives or copies that could not be read: they are named.
    """
    person, archive = _person(subject), _archive(ctx)

    async def work(actions: Actions) -> Erased:
        asked = await actions.erasure(erasure)
        found = f"{_letters(asked.found)} when it was asked for"
        confirm(f"Erase everything about that person ({found}), as {asked.requested_by} asks? For ever.", yes=yes)
        with progress("Erasing", asked.found) as advance:
            return await actions.approve_erasure(
                erasure, person, reason or "", archive=archive, on_progress=advance
            )

    done = at_store(ctx, work, name=name)
    typer.echo(f"Erased {_letters(done.erasure.erased)}.")
    for each, status in sorted(done.left.items()):
        complain(f"letter {each} is {status} and was left", "approve the erasure again when it was sent")
    for what, remedy in done.unreached:
        complain(what, f"{remedy}; then approve the erasure again")
    return ExitCode.OK if done.is_done else ExitCode.PARTLY


@app.command("reject")
def reject(
    ctx: typer.Context, erasure: IdArgument, *, reason: ReasonOption = None, name: NameOption = None
) -> None:
    """Refuse an erasure, or take it back, with a reason. Nothing is erased."""
    why = given_reason(reason)
    rejected = at_store(ctx, lambda actions: actions.reject_erasure(erasure, why), name=name)
    typer.echo(f"Rejected erasure {rejected.id}.")


@app.command("list")
def list_(ctx: typer.Context, *, output: FormatOption = Format.TABLE) -> None:
    """List erasures, the newest first: who asked, who agreed, how many letters are gone. Nothing about whom."""
    found = at_store(ctx, lambda actions: actions.erasures())
    write_rows([_row(each) for each in found], _COLUMNS, output)


def _row(erasure: Erasure) -> dict[str, Any]:
    told = {name: getattr(erasure, name) for name in erasure.__struct_fields__ if name != "subject"}
    return told | {"status": str(erasure.status)}


def _person(subject: str | None) -> Person:
    """Better not from the command itself, which others see and the shell remembers."""
    if subject is None and sys.stdin.isatty() and sys.stderr.isatty():
        with interruptible():
            subject = str(typer.prompt("What the person is known by", err=True, hide_input=True))
    if subject == "-":
        subject = sys.stdin.readline()
    if subject is None:
        raise UsageError("whose letters?", remedy="give --subject - and the value on stdin, or --subject VALUE")
    return Person(subject)


def _archive(ctx: typer.Context) -> Archive | None:
    from redrive.retention_wiring import archive_of  # noqa: PLC0415  settings are slow to import, --help is not

    return archive_of(settings_of(ctx))


def _counted(found: AboutPerson) -> str:
    numbers = Counter((letter.queue, str(letter.status)) for letter in found.letters)
    parts = [f"{queue} {status} {number}" for (queue, status), number in sorted(numbers.items())]
    if found.archived:
        parts.append(f"in archives {found.archived}")
    told = ", ".join(parts)
    return f"{_letters(found.number)}{f' ({told})' if parts else ''}"


def _letters(number: int) -> str:
    return f"{number} letter{'' if number == 1 else 's'}"
