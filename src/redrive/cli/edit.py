"""`redrive edit`: correct a payload; the original is kept as revision 0."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import UNSET
from msgspec.structs import replace

from redrive.cli.changing import DryRunOption, YesOption, confirm
from redrive.cli.edit_options import SCHEMA_HELP, schema_of
from redrive.cli.editor import Draft
from redrive.cli.escaping import escape
from redrive.cli.given_file import check_stdin_once, read
from redrive.cli.invocation import at_desk
from redrive.cli.json_draft import check_json, draft_of, in_the_style_of, is_json
from redrive.cli.option_sets import taking
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.reasons import ReasonOption, given_reason
from redrive.cli.running import sent_back
from redrive.dead_letter import Status
from redrive.desk import Desk
from redrive.errors import RedriveError, Refused, TransitionRefused, UsageError
from redrive.splice import with_payload

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter
    from redrive.message import Message

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One field for each option."""

    body: Annotated[bool, typer.Option("--body", help="Edit the whole body, not only the payload.")] = False
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Take the new bytes from FILE, JSON or not (- is stdin).",
            show_default=False,
        ),
    ] = None
    schema: Annotated[
        Path | None, typer.Option("--schema", metavar="FILE", help=SCHEMA_HELP, show_default=False)
    ] = None
    undo: Annotated[
        bool, typer.Option("--undo", help="Take the last edit back; once more, the one before it.")
    ] = False
    original: Annotated[bool, typer.Option("--original", help="Take all edits back.")] = False
    reason: ReasonOption = None
    retry: Annotated[bool, typer.Option("--retry", help="Send the letter back afterwards.")] = False
    dry_run: DryRunOption = False
    yes: YesOption = False

    @property
    def goes_back(self) -> bool:
        return self.undo or self.original

    def check(self) -> None:
        if self.undo and self.original:
            raise UsageError("--undo and --original exclude each other", remedy="give one of them")
        if self.goes_back and (self.body or self.source is not None):
            raise UsageError(
                "what is taken back is not edited at the same time", remedy="leave out --body and --from"
            )
        check_stdin_once(each for each in (self.source, self.schema) if each is not None)


@app.command("edit")
@taking(_Asked, "asked")
def edit(
    ctx: typer.Context,
    letter_id: Annotated[str, typer.Argument(metavar="ID", help="The letter's id, or the beginning of it.")],
    *,
    asked: _Asked,
) -> int:
    """Correct a letter's payload in $VISUAL or $EDITOR, or from a file. The original is kept as revision 0.

    Of an envelope of ours only `data` changes, every other byte stays. Until the letter is sent, --undo and
    --original take edits back.
    """
    asked.check()
    schema = "" if asked.schema is None else schema_of(asked.schema)

    async def work(actions: Desk) -> int:
        letter = await actions.reveal(letter_id, asked.reason or "to edit it")
        if letter.status is not Status.PENDING:
            raise TransitionRefused(letter.id, "edit", letter.status)
        editing = _Editing(actions, letter, asked, schema)
        return await (editing.back() if asked.goes_back else editing.on())

    return at_desk(ctx, work, tells=True)


@dataclass(frozen=True)
class _Editing:
    actions: Desk
    letter: DeadLetter
    asked: _Asked
    schema: str

    async def on(self) -> int:
        """A new payload, or a new body."""
        before = self.letter.message.body if self.asked.body else self.letter.message.payload
        after = self._edited(before) if self.asked.source is None else self._read(self.asked.source, before)
        if after == before:
            typer.echo("Unchanged: nothing was done.")
            return ExitCode.OK
        reason = self._agreed(self._with(after), "")
        if reason is None:
            return ExitCode.OK
        part = (after, UNSET) if self.asked.body else (UNSET, after)
        number = await self.actions.revise(
            self.letter.id, base=self.letter.revision, reason=reason, body=part[0], payload=part[1]
        )
        return await self._saved(number)

    async def back(self) -> int:
        """What the letter held before its last edit, or before all."""
        to = 0 if self.asked.original else _before_last(self.letter)
        message = self.letter.revisions[to].message
        if _held(message) == _held(self.letter.message):
            raise Refused(
                f"letter {self.letter.id} is as it came: there is no edit to take back",
                remedy=f"`redrive show {self.letter.id}` tells its history",
            )
        self._check_fits(message, "leave --schema out if it is to be taken back all the same")
        reason = self._agreed(message, f" (back to revision {to})")
        if reason is None:
            return ExitCode.OK
        told = f"back to revision {to}: {reason}"
        return await self._saved(
            await self.actions.revert(self.letter.id, to=to, base=self.letter.revision, reason=told)
        )

    def _with(self, after: bytes) -> Message:
        message = self.letter.message
        return replace(message, body=after) if self.asked.body else with_payload(message, after)

    def _read(self, source: Path, before: bytes | None) -> bytes:
        after = read(source)
        if not self.asked.body and is_json(before):
            check_json(after, remedy="correct the file; --body takes any bytes")
        edited = self._with(after)
        self._check_fits(edited, "correct the file, or leave --schema out")
        return (edited.body if self.asked.body else edited.payload) or b""

    def _edited(self, before: bytes | None) -> bytes:
        """In the person's editor. A text that cannot be used stays in its file, so that no work is lost."""
        if before is None or not is_json(before):
            raise Refused(
                "this is not JSON, and an editor could change bytes that nobody sees",
                remedy="`redrive show ID --payload --reveal REASON > FILE` writes it: edit it, use --from FILE",
            )
        pretty = not self.asked.body
        shown = draft_of(before) if pretty else before
        draft = Draft(self.letter.id, shown)
        text = _typed(draft)
        kept = f"your text is kept: correct {draft.path} and use --from"
        check_json(text, remedy=kept)
        if text.rstrip(b"\n") == shown.rstrip(b"\n"):
            after = before
        else:
            after = in_the_style_of(before, text) if pretty else text
            self._check_fits(self._with(after), kept)
        draft.close()
        return after

    def _check_fits(self, edited: Message, remedy: str) -> None:
        from redrive.edit_schema import check_by  # noqa: PLC0415  not needed for --help

        misfits = check_by(self.schema).misfits(edited) if self.schema else []
        for each in misfits:
            complain(f"does not fit the schema: {each}")
        if misfits:
            raise Refused(f"letter {self.letter.id} would not fit the schema: nothing was changed", remedy=remedy)

    def _agreed(self, edited: Message, how: str) -> str | None:
        """Why, if the person agrees; None if nothing is to be done."""
        number = self.letter.revision + 1
        if self.asked.dry_run:
            _print_diff(self.letter.message, edited)
            typer.echo(f"Would save revision {number} of letter {self.letter.id}{how}. Nothing was changed.")
            return None
        reason = given_reason(self.asked.reason)
        confirm(f"Save revision {number} of letter {self.letter.id}{how}?", yes=self.asked.yes)
        return reason

    async def _saved(self, number: int) -> int:
        typer.echo(f"Saved revision {number} of letter {self.letter.id}.")
        return await sent_back(self.actions, self.letter.id) if self.asked.retry else ExitCode.OK


def _before_last(letter: DeadLetter) -> int:
    """The revision before the one in which what it holds now stood first. So what was taken back itself is no edit
    that the next undo would take back.
    """
    held = [_held(revision.message) for revision in letter.revisions]
    return max(held.index(held[-1]) - 1, 0)


def _held(message: Message) -> tuple[object, ...]:
    return message.body, message.headers, message.key


def _print_diff(before: Message, after: Message) -> None:
    from redrive.edit_diff import diff  # noqa: PLC0415  only for --dry-run

    for each in diff(before, after):
        typer.echo(f"  {escape(each.line())}")


def _typed(draft: Draft) -> bytes:
    try:
        return draft.edit()
    except RedriveError:
        draft.close()
        raise
