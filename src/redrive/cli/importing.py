"""`redrive import`: letters from archives, exports and other systems."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from redrive.actions import Actions, Importer
from redrive.cli.changing import DryRunOption, YesOption, confirm, progress
from redrive.cli.complaints import Complaints
from redrive.cli.invocation import at_store, settings_of
from redrive.cli.outcome import ExitCode, complain
from redrive.errors import RedriveError, UsageError
from redrive.imports import Bad, read
from redrive.upkeep.archive import Archive, newest_first

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter, Entry
    from redrive.importing import Imported
    from redrive.privacy.encryption.file_keys import FileKeys

app = typer.Typer()

_STDIN = "-"


class ImportFormat(StrEnum):
    ARCHIVE = "archive"
    EXPORT = "export"
    LARAVEL = "laravel"
    ENVELOPE = "envelope"
    JSONL = "jsonl"


@app.command("import")
def import_letters(
    ctx: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Files, folders of archives, or - for stdin; gzip is fine.", show_default=False
        ),
    ],
    *,
    format_: Annotated[
        ImportFormat | None,
        typer.Option("--format", "-f", help="What they are; else the first row tells.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Read at most this many.", show_default=False)
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> int:
    """Take in letters: archives of `retention run`, what `export` wrote, Laravel's failed_jobs, JSON lines.

    What is in the store already, by its id or its identity, is left as it is. Archives and exports keep ids,
    statuses and history; other letters are PENDING. A row that cannot be read is told and the others come in:
    exit 4.
    """
    sources = [str(path) for path in archives_of(files)]
    reading = _Reading(None if format_ is None else str(format_), limit, _keys(ctx))
    if dry_run:
        return _preview(reading, sources)

    async def work(actions: Actions) -> int:
        confirm(f"Import letters from {_named(sources)}?", yes=yes)
        return await _import(await actions.importer(), reading, sources)

    return at_store(ctx, work)


def _preview(reading: _Reading, sources: list[str]) -> int:
    for source in sources:
        for _ in reading.letters(source):
            pass
    typer.echo(f"Would import {_letters(reading.found)}, those that are not there yet. Nothing was changed.")
    return reading.exit_code()


async def _import(importer: Importer, reading: _Reading, sources: list[str]) -> int:
    try:
        with progress("Importing", reading.limit) as advance:
            for source in sources:
                for letter in reading.letters(source):
                    await importer.add(letter, source=source)
                    advance(1)
            await importer.finish()
    except RedriveError as error:
        if not importer.done.new:
            raise
        complain(str(error), error.remedy)
        _tell(importer, reading)
        return ExitCode.PARTLY
    _tell(importer, reading)
    return reading.exit_code()


class _Reading:
    """The rows of all sources, as far as the limit; what cannot be read is told with its file and line."""

    def __init__(self, format_: str | None, limit: int | None, keys: FileKeys) -> None:
        self._format = format_
        self._keys = keys
        self.limit = limit
        self.found = 0
        self._complaints = Complaints()

    def letters(self, source: str) -> Iterator[Entry | DeadLetter]:
        with _opened(source) as stream:
            for each in read(stream, format=self._format, keys=self._keys):
                if self.limit is not None and self.found >= self.limit:
                    return
                if isinstance(each, Bad):
                    self._complaints.tell(source, each)
                else:
                    self.found += 1
                    yield each.letter

    @property
    def refused(self) -> int:
        return self._complaints.number

    def exit_code(self) -> int:
        if self.refused:
            return ExitCode.PARTLY if self.found else ExitCode.FAILED
        return ExitCode.OK if self.found else ExitCode.NOTHING


def _keys(ctx: typer.Context) -> FileKeys:
    """What opens sealed archives."""
    from redrive.encryption_wiring import file_keys  # noqa: PLC0415  settings are slow to import, --help is not

    return file_keys(settings_of(ctx))


def archives_of(given: Iterable[str]) -> list[Path]:
    """The files that are named, and those of folders, archives newest first: of a letter that was archived twice,
    the newer one counts.
    """
    found: list[Path] = []
    for name in given:
        path = Path(name)
        if name == _STDIN or path.is_file():
            found.append(path)
        elif path.is_dir():
            found += Archive(path).files()
        else:
            raise UsageError(f"there is no file {name}", remedy="name files, folders of archives, or - for stdin")
    return newest_first(found)


def _opened(source: str) -> AbstractContextManager[BinaryIO]:
    if source == _STDIN:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(source).open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {source}: {error.strerror}") from None


def _named(sources: list[str]) -> str:
    if len(sources) > 1:
        return f"{len(sources)} files"
    return "standard input" if sources == [_STDIN] else "".join(sources) or "no file"


def _tell(importer: Importer, reading: _Reading) -> None:
    done = importer.done
    refused = f", {reading.refused} could not be read" if reading.refused else ""
    typer.echo(f"Imported {_letters(done.new)}; {done.known} were there already{erased_too(done)}{refused}.")


def erased_too(done: Imported) -> str:
    """What is not taken in again is no letter that was there."""
    if not done.erased:
        return ""
    return f", {done.erased} {'was erased and stays' if done.erased == 1 else 'were erased and stay'} so"


def _letters(number: int) -> str:
    return f"{number} letter{'' if number == 1 else 's'}"
