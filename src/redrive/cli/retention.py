"""`redrive retention`: old settled letters leave the store, archived and checked before they are purged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.actions import Actions, Retained, Retention
from redrive.cli.changing import DryRunOption, LimitOption, YesOption, confirm, progress
from redrive.cli.filters import duration
from redrive.cli.invocation import at_store, settings_of
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import Column, Format, FormatOption, note, write_rows
from redrive.duration import short
from redrive.errors import NotFound, RedriveError
from redrive.keeping import SETTLED, EndedCount, KeepRules
from redrive.upkeep.archive import Archive

if TYPE_CHECKING:
    from redrive.privacy.encryption.file_keys import FileKeys
    from redrive.upkeep.archive_manifest import Manifest

_DUE = (
    Column("queue", "QUEUE", shrinks=True),
    Column("status", "STATUS"),
    Column("kept", "KEPT", right=True),
    Column("letters", "LETTERS", right=True),
    Column("bytes", "BYTES", right=True),
)

app = typer.Typer(help="Take old settled letters out of the store.", no_args_is_help=True)


@app.callback()
def retention() -> None:
    """Keep the store small: what is settled and old goes into archives."""


@app.command("run")
def run(
    ctx: typer.Context,
    *,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep",
            metavar="DURATION",
            help="Keep what is younger, of any queue and status; default: as the settings say.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", metavar="N", help="Purge at most N per second; default: retention.rate.", show_default=False
        ),
    ] = None,
    limit: LimitOption = None,
    clock_is_right: Annotated[
        bool,
        typer.Option("--clock-is-right", help="Go ahead though the clock may have jumped: it is right."),
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: FormatOption = Format.TABLE,
) -> int:
    """Archive RESOLVED and DISCARDED letters that are older than [retention] and their queue say, check the
    archive, purge them. With --dry-run: how many there are, by queue and status, and the bytes of their bodies.

    What is PENDING, REDRIVING, REDRIVEN or QUARANTINED stays, however old it is. Safe to kill and to repeat.
    """
    # Settings are slow to import, --help is not.
    from redrive.retention_wiring import archive_of, keep_rules  # noqa: PLC0415

    given = settings_of(ctx)
    settings, archive = given.retention, archive_of(given)
    rules = keep_rules(given) if keep is None else KeepRules.alike(duration(keep, "--keep"))

    async def work(actions: Actions) -> int:
        retention = await actions.retention(archive)
        due = await retention.due(rules, sizes=dry_run)
        found = sum(each.letters for each in due)
        number = found if limit is None else min(found, limit)
        if dry_run and (due or output is not Format.TABLE):
            write_rows([_row(each, rules) for each in due], _DUE, output)
        if not number:
            note(f"Nothing to do: no RESOLVED or DISCARDED letter is {_older(rules)}.")
            return ExitCode.OK
        what = _counted(number, rules, settings.archive)
        if dry_run:
            note(f"Would {what}. Nothing was changed.")
            return ExitCode.OK
        confirm(f"{what[0].upper()}{what[1:]}?", yes=yes)
        pace = {"batch": settings.batch, "rate": rate or settings.rate, "at_most": limit}
        return await _run(retention, rules, number, clock_is_right=clock_is_right, **pace)

    return at_store(ctx, work)


@app.command("verify")
def verify(
    ctx: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...", help="Archives; default: all in retention.archive.", show_default=False
        ),
    ] = None,
) -> int:
    """Read archives from beginning to end and say whether each could be imported. Without names: whether they are
    those that were written, too, and whether one is missing. Nothing is changed.

    Exit 6 if one is damaged, changed or missing; exit 2 if one is sealed with a key that is not set here.
    """
    from redrive.encryption_wiring import file_keys  # noqa: PLC0415  as above

    settings = settings_of(ctx)
    keys, folder = file_keys(settings), settings.retention.archive
    if files or folder is None:
        codes = [_verify(path, keys) for path in files or ()]
    else:
        codes = _verify_all(Archive(folder), keys)
    if not codes:
        typer.echo("There are no archives.")
    return max(codes, default=ExitCode.OK)


@app.command("forget")
def forget(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `redrive retention verify` says it.")],
    *,
    yes: YesOption = False,
) -> None:
    """Say that an archive was taken away on purpose, so that `redrive retention verify` does not miss it."""
    folder = settings_of(ctx).retention.archive
    archive = None if folder is None else Archive(folder)
    if archive is None or name not in archive.manifest.entries():
        raise NotFound(f"no archive {name} is missed", remedy="`redrive retention verify` names those that are")
    confirm(f"Forget the archive {name}?", yes=yes)
    with archive.alone():
        archive.forget(name)
    typer.echo(f"Forgot {name}.")


def _verify_all(archive: Archive, keys: FileKeys) -> list[int]:
    from redrive.upkeep.archive_checking import missing_from  # noqa: PLC0415  as above

    codes = [_verify(path, keys, archive.manifest) for path in archive.files()]
    for each in missing_from(archive):
        complain(
            f"the archive {each.name} with {_letters(each.letters)} is missing",
            "bring it back from a copy; if it was taken away on purpose: `redrive retention forget NAME`",
        )
        codes.append(ExitCode.UNREACHABLE)
    return codes


def _verify(path: Path, keys: FileKeys, manifest: Manifest | None = None) -> int:
    from redrive.upkeep.archive_checking import check_archive  # noqa: PLC0415  as above

    try:
        found = check_archive(path, keys, manifest)
    except RedriveError as error:
        complain(str(error), error.remedy)
        return error.exit_code
    sealed = "" if found.kek_id is None else f", sealed with the key {found.kek_id}"
    unknown = "" if found.is_noted else ", not in the manifest: an earlier version wrote it"
    typer.echo(f"ok: {path}: {_letters(found.letters)}{sealed}{unknown}")
    return ExitCode.OK


async def _run(retention: Retention, rules: KeepRules, number: int, **given: Any) -> int:
    try:
        with progress("Archiving and purging", number) as advance:
            done = await retention.run(rules, on_progress=advance, **given)
    except RedriveError as error:
        if not retention.done.purged:
            raise
        complain(str(error), error.remedy)
        _tell(retention.done)
        return ExitCode.PARTLY
    _tell(done)
    return ExitCode.OK


def _tell(done: Retained) -> None:
    into = f", archived in {done.files} file{'' if done.files == 1 else 's'}" if done.files else ""
    typer.echo(f"Purged {_letters(done.purged)}{into}.")
    if done.left:
        note(f"{_letters(done.left)} stayed: changed meanwhile, or too large to be archived.")


def _row(due: EndedCount, rules: KeepRules) -> dict[str, Any]:
    keep = rules.of(due.queue, due.status)
    told = {"queue": due.queue, "status": str(due.status), "kept": short(keep), "keep_seconds": keep}
    return told | {"letters": due.letters, "bytes": due.bytes}


def _counted(number: int, rules: KeepRules, archive: Path | None) -> str:
    older = f"{_letters(number)} {_older(rules)}"
    if archive is None:
        return f"purge {older} for ever, without an archive"
    return f"archive {older} into {archive} and purge them"


def _older(rules: KeepRules) -> str:
    spans = {keep.of(status) for keep in (rules.otherwise, *rules.queues.values()) for status in SETTLED}
    if len(spans) > 1:
        return "older than the settings keep its queue and status"
    return f"older than {short(min(spans))}"


def _letters(number: int) -> str:
    return f"{number} letter{'' if number == 1 else 's'}"
