"""`redrive erase`: what is kept about a person goes, if one asks for it and a second one agrees (LGPD)."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.cli.changing import DryRunOption, YesOption, confirm, progress
from redrive.cli.complaints import Complaints
from redrive.cli.interrupting import interruptible
from redrive.cli.invocation import at_store, settings_of
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import Column, Format, FormatOption, note, write_rows
from redrive.cli.reasons import ReasonOption, given_reason
from redrive.cli.run_options import NameOption
from redrive.erasure import Erasure, Person
from redrive.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.actions import Actions
    from redrive.dead_letter import DeadLetter
    from redrive.erasure_actions import Erased
    from redrive.settings import Settings

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
) -> None:
    """Ask for the erasure of every letter that holds a value. Nothing is erased before somebody else agrees.

    The value itself is not kept, only keyed hashes of it; do not write it into the reason. With --dry-run: how
    many letters there are, by queue and status. Exit 3 if there are none.
    """
    person = _person(subject)

    async def work(actions: Actions) -> None:
        if dry_run:
            note(f"Would ask to erase {_counted(await actions.letters_about(person))}. Nothing was changed.")
            return
        why = given_reason(reason)
        confirm("Ask for the erasure of everything about that person?", yes=yes)
        made = await actions.request_erasure(person, why)
        typer.echo(made.id)
        note(f"Asked to erase {_letters(made.found)}. Somebody else: `redrive erase approve {made.id}`.")

    at_store(ctx, work, name=name)


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

    The same value has to be given. Safe to kill and to repeat. Exit 4 if letters are left that are being sent, or
    if archives hold letters of that person: archives are never changed, and are named.
    """
    person, settings = _person(subject), settings_of(ctx)

    async def work(actions: Actions) -> Erased:
        asked = await actions.erasure(erasure)
        found = await actions.letters_about(person)
        confirm(f"Erase {_counted(found)}, as {asked.requested_by} asks for? For ever.", yes=yes)
        with progress("Erasing", len(found)) as advance:
            return await actions.approve_erasure(erasure, person, reason or "", on_progress=advance)

    done = at_store(ctx, work, name=name)
    typer.echo(f"Erased {_letters(done.erasure.erased)}.")
    for each, status in sorted(done.left.items()):
        complain(f"letter {each} is {status} and was left", "approve the erasure again when it was sent")
    reached = _name_archives(settings, person)
    return ExitCode.OK if reached and not done.left else ExitCode.PARTLY


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


def _name_archives(settings: Settings, person: Person) -> bool:
    """Whether no archive holds anything of the person, as far as it can be read."""
    from redrive.encryption_wiring import file_keys  # noqa: PLC0415  settings are slow to import, --help is not
    from redrive.privacy_wiring import maskers_of  # noqa: PLC0415  as above
    from redrive.upkeep.archive import Archive  # noqa: PLC0415  as above
    from redrive.upkeep.archive_search import letters_in  # noqa: PLC0415  as above

    folder, complaints, holding = settings.retention.archive, Complaints(), Counter["Path"]()
    masks = maskers_of(settings)
    for path in [] if folder is None else Archive(folder).files():
        found = letters_in(path, file_keys(settings), on_bad=complaints.tell)
        holding[path] = sum(person.is_in(letter, masks) for letter in found)
    for path, number in holding.items():
        if number:
            complain(
                f"the archive {path} holds {_letters(number)} of that person, which {_are(number)} not erased",
                "archives are never changed: delete the file, or keep it until its time",
            )
    return not complaints.number and not any(holding.values())


def _counted(found: list[DeadLetter]) -> str:
    numbers = Counter((letter.queue, str(letter.status)) for letter in found)
    parts = ", ".join(f"{queue} {status} {number}" for (queue, status), number in sorted(numbers.items()))
    return f"{_letters(len(found))}{f' ({parts})' if parts else ''}"


def _letters(number: int) -> str:
    return f"{number} letter{'' if number == 1 else 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
