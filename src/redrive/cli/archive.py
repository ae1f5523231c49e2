"""`redrive archive`: looks into the archives of `redrive retention`, and brings letters back from there."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.actions import Actions, Importer
from redrive.cli.ages import age
from redrive.cli.changing import DryRunOption, LimitOption, YesOption, confirm, progress
from redrive.cli.complaints import Complaints
from redrive.cli.filters import WhereOption, filter_of
from redrive.cli.importing import archives_of, erased_too
from redrive.cli.invocation import at_store, settings_of
from redrive.cli.letter_ids import OptionalIds, given_ids, short_ids
from redrive.cli.letter_record import SUMMARY, error_line, summary, whole_record
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import Column, Format, FormatOption, note, write_rows
from redrive.clock import SystemClock
from redrive.errors import RedriveError, UsageError
from redrive.upkeep.archive import Archive
from redrive.upkeep.archive_search import ArchiveSearch, InArchive, Wanted

if TYPE_CHECKING:
    from redrive.settings import Settings

app = typer.Typer(help="Look into archives, and bring letters back.", no_args_is_help=True)

_SHOWN = (
    Column("short_id", "ID"),
    Column("status", "STATUS"),
    Column("queue", "QUEUE"),
    Column("error", "ERROR", shrinks=True),
    Column("age", "SETTLED", right=True),
    Column("name", "FILE", shrinks=True),
)
_WRITTEN = (*(Column(key, key) for key in SUMMARY), Column("file", "file"))
_SHORTEST_ID, _FULL_ID = 8, 36

FromOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        metavar="PATH",
        help="An archive, or a folder of them; default: all in retention.archive.",
        show_default=False,
    ),
]


@app.callback()
def archive() -> None:
    """What has left the store lies in archives: find it there, bring it back."""


@app.command("search")
def search(
    ctx: typer.Context,
    where: Annotated[
        str, typer.Argument(metavar="FILTER", help="In the filter language, such as 'queue:orders age:>200d'.")
    ] = "",
    *,
    sources: FromOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most this many.")] = 50,
    whole: Annotated[
        bool, typer.Option("--whole", help="With message, attempts, revisions and history (json and jsonl only).")
    ] = False,
    output: FormatOption = Format.TABLE,
) -> int:
    """Find letters in archives, without the store; the newest archive first. Sealed ones need their keys.

    What is personal or secret is masked. Exit 3 if nothing matched, 4 if something could not be read.
    """
    if whole and output not in (Format.JSON, Format.JSONL):
        raise UsageError("--whole does not fit into a table", remedy="add --output json or --output jsonl")
    settings, complaints = settings_of(ctx), Complaints()
    wanted = Wanted(where=filter_of(where or None, SystemClock().now()))
    found = _Found(settings, wanted, _paths(settings, sources))
    if output is Format.TABLE:
        with closing(found.letters(complaints)) as letters:
            rows = list(_rows(settings, islice(letters, limit), whole=whole))
        shown = short_ids(row["id"] for row in rows)
        write_rows([row | {"short_id": shown[row["id"]]} for row in rows], _SHOWN, output)
    else:  # line by line, and among lines on the same terminal a bar would only be in the way
        with closing(found.letters(complaints, bar=not sys.stdout.isatty())) as letters:
            write_rows(_rows(settings, islice(letters, limit), whole=whole), _WRITTEN, output)
    if found.number == limit:
        note(f"The first {limit} are shown; --limit gives more.")
    return _exit_code(found.number, complaints)


@app.command("restore")
def restore(
    ctx: typer.Context,
    ids: OptionalIds = None,
    *,
    where: WhereOption = None,
    sources: FromOption = None,
    limit: LimitOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> int:
    """Bring letters back from archives into the store, by their ids or by a filter: as they were, byte for byte.

    What is in the store already, by its id or its identity, stays as it is. The archives stay too. A letter comes
    back settled as it was; `redrive restore` makes it pending. Exit 3 if nothing matched, 4 if something could not
    be read or found.
    """
    if not ids and where is None:
        raise UsageError(
            "which letters?",
            remedy="name ids, or give --where; `redrive import FOLDER` brings back whole archives",
        )
    settings, complaints = settings_of(ctx), Complaints()
    wanted = Wanted(_beginnings(ids), filter_of(where, SystemClock().now()))
    found = _Found(settings, wanted, _paths(settings, sources))
    if dry_run:
        with closing(found.letters(complaints)) as letters:
            for _ in islice(letters, limit):
                pass
        note(f"Would restore {_letters(found.number)}, those that are not there yet. Nothing was changed.")
        return found.told(complaints)

    async def work(actions: Actions) -> int:
        confirm(f"Restore letters from {_letters(len(found.paths), 'archive')}?", yes=yes)
        importer = await actions.importer()
        with closing(found.letters(complaints)) as letters:
            return await _restore(importer, islice(letters, limit), found, complaints)

    return at_store(ctx, work)


class _Found:
    """What is looked for in which files, and how much of it was found so far."""

    def __init__(self, settings: Settings, wanted: Wanted, paths: Sequence[Path]) -> None:
        self._settings = settings
        self._wanted = wanted
        self._missing = set(wanted.ids)
        self.paths = paths
        self.number = 0

    def letters(self, complaints: Complaints, *, bar: bool = True) -> Generator[InArchive]:
        from redrive.encryption_wiring import file_keys  # noqa: PLC0415  settings are slow to import, --help is not

        keys = file_keys(self._settings)
        size = sum(path.stat().st_size for path in self.paths)
        with progress("Reading archives", size) if bar else nullcontext(lambda _more: None) as advance:
            search = ArchiveSearch(self._wanted, keys, on_bad=complaints.tell, on_bytes=advance)
            for each in search.letters(self.paths):
                self.number += 1
                self._missing -= {beginning for beginning in self._missing if each.letter.id.startswith(beginning)}
                yield each
                if self._has_all:
                    return

    @property
    def _has_all(self) -> bool:
        """Every letter that was named by its whole id was met, so that no older archive need be read."""
        return (
            bool(self._wanted.ids)
            and not self._missing
            and all(len(each) == _FULL_ID for each in self._wanted.ids)
        )

    def told(self, complaints: Complaints) -> int:
        """The exit code; ids that no archive has are named."""
        for beginning in sorted(self._missing):
            complain(f"no archive that was read has a letter {beginning}")
        code = _exit_code(self.number, complaints)
        return ExitCode.PARTLY if self._missing and code == ExitCode.OK else code


async def _restore(importer: Importer, letters: Iterable[InArchive], found: _Found, complaints: Complaints) -> int:
    try:
        for each in letters:
            await importer.add(each.letter, source=str(each.path))
        await importer.finish()
    except RedriveError as error:
        if not importer.done.new:
            raise
        complain(str(error), error.remedy)
        _tell(importer)
        return ExitCode.PARTLY
    _tell(importer)
    return found.told(complaints)


def _rows(settings: Settings, found: Iterable[InArchive], *, whole: bool) -> Iterator[dict[str, Any]]:
    from redrive.privacy_wiring import maskers_of  # noqa: PLC0415  settings are slow to import, --help is not

    masks, now = maskers_of(settings), SystemClock().now()
    for path, letter in found:
        shown = masks.for_queue(letter.queue).letter(letter)
        if whole:
            yield whole_record(shown) | {"file": str(path)}
        else:
            seen = {"error": error_line(shown), "age": age(letter.changed_at, now), "name": path.name}
            yield summary(shown) | {"file": str(path)} | seen


def _paths(settings: Settings, named: list[Path] | None) -> list[Path]:
    folder = settings.retention.archive
    if named:
        return archives_of(str(path) for path in named)
    if folder is None:
        raise UsageError("no folder of archives is set", remedy="name archives with --from")
    return Archive(folder).files()


def _beginnings(ids: list[str] | None) -> tuple[str, ...]:
    given = tuple(each.strip().lower() for each in given_ids(ids or ())) if ids else ()
    short = [each for each in given if len(each) < _SHORTEST_ID]
    if short:
        raise UsageError(
            f"{short[0]!r} is too short for a letter's id", remedy=f"give at least {_SHORTEST_ID} characters of it"
        )
    return given


def _exit_code(number: int, complaints: Complaints) -> int:
    if complaints.number:
        return ExitCode.PARTLY if number else ExitCode.FAILED
    return ExitCode.OK if number else ExitCode.NOTHING


def _tell(importer: Importer) -> None:
    done = importer.done
    typer.echo(f"Restored {_letters(done.new)}; {done.known} were there already{erased_too(done)}.")


def _letters(number: int, what: str = "letter") -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
