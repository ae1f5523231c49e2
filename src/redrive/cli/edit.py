"""`redrive edit`: correct a payload; the original is kept as revision 0."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from msgspec import UNSET

from redrive.actions import Actions
from redrive.cli.changing import DryRunOption, YesOption, confirm
from redrive.cli.editor import Draft
from redrive.cli.invocation import at_desk
from redrive.cli.json_draft import check_json, draft_of, in_the_style_of, is_json
from redrive.cli.outcome import ExitCode
from redrive.cli.reasons import ReasonOption, given_reason
from redrive.cli.running import sent_back
from redrive.dead_letter import Status
from redrive.errors import RedriveError, Refused, TransitionRefused, UsageError

app = typer.Typer()


@app.command("edit")
def edit(
    ctx: typer.Context,
    letter_id: Annotated[str, typer.Argument(metavar="ID", help="The letter's id, or the beginning of it.")],
    *,
    body: Annotated[bool, typer.Option("--body", help="Edit the whole body, not only the payload.")] = False,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Take the new bytes from FILE (- is stdin).", show_default=False
        ),
    ] = None,
    reason: ReasonOption = None,
    retry: Annotated[bool, typer.Option("--retry", help="Send the letter back afterwards.")] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> int:
    """Correct a letter's payload in $VISUAL or $EDITOR, or from a file. The original is kept as revision 0.

    Of an envelope of ours only `data` changes, every other byte stays.
    """

    async def work(actions: Actions) -> int:
        letter = await actions.letter(letter_id)
        if letter.status is not Status.PENDING:
            raise TransitionRefused(letter.id, "edit", letter.status)
        before = letter.message.body if body else letter.message.payload
        after = _edited(before, letter.id, pretty=not body) if source is None else _read(source)
        if source is not None and not body and is_json(before):
            check_json(after, remedy="correct the file; --body takes any bytes")
        if after == before:
            typer.echo("Unchanged: nothing was done.")
            return ExitCode.OK
        if dry_run:
            typer.echo(f"Would save revision {letter.revision + 1} of letter {letter.id}. Nothing was changed.")
            return ExitCode.OK
        why = given_reason(reason)
        confirm(f"Save revision {letter.revision + 1} of letter {letter.id}?", yes=yes)
        part = (after, UNSET) if body else (UNSET, after)
        number = await actions.revise(letter.id, base=letter.revision, reason=why, body=part[0], payload=part[1])
        typer.echo(f"Saved revision {number} of letter {letter.id}.")
        return await sent_back(actions, letter.id) if retry else ExitCode.OK

    return at_desk(ctx, work, tells=True)


def _read(source: Path) -> bytes:
    if str(source) == "-":
        return sys.stdin.buffer.read()
    try:
        return source.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {source}: {error.strerror}", remedy="check the file's name") from None


def _edited(before: bytes | None, name: str, *, pretty: bool) -> bytes:
    if before is None or not is_json(before):
        raise Refused(
            "this is not JSON, and an editor could change bytes that nobody sees",
            remedy="write it to a file with `redrive show ID --payload`, change it, and use --from FILE",
        )
    shown = draft_of(before) if pretty else before
    after = _typed(Draft(name, shown))
    if after.rstrip(b"\n") == shown.rstrip(b"\n"):
        return before
    return in_the_style_of(before, after) if pretty else after


def _typed(draft: Draft) -> bytes:
    """What the person made of it. A text that is not JSON stays in its file, so that no work is lost."""
    try:
        after = draft.edit()
    except RedriveError:
        draft.close()
        raise
    check_json(after, remedy=f"your text is kept: correct {draft.path} and use --from")
    draft.close()
    return after
