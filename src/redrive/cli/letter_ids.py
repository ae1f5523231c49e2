"""The ids of letters as people and pipes give them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import typer

from redrive.errors import NotFound, UsageError

_IDS = typer.Argument(
    metavar="ID",
    help="Ids, or beginnings of ids as `list` shows them; - reads one per line from stdin.",
    show_default=False,
)
IdsArgument = Annotated[list[str], _IDS]
OptionalIds = Annotated[list[str] | None, _IDS]

_SHORTEST_SHOWN = 18
"""The first 13 characters of a letter's id are its millisecond; the next five tell processes apart."""


def given_ids(arguments: Sequence[str]) -> list[str]:
    """The ids of the arguments, `-` replaced by what stdin holds. NotFound if that leaves none."""
    ids = [each for argument in arguments for each in (_from_stdin() if argument == "-" else [argument])]
    if not ids:
        raise NotFound("no ids on standard input", remedy="the command before the pipe matched nothing")
    return ids


def _from_stdin() -> Iterator[str]:
    for number, line in enumerate(sys.stdin, start=1):
        if line.strip():
            yield _id_of_line(line.strip(), number)


def _id_of_line(line: str, number: int) -> str:
    """A bare id, a JSON text (`jq .id`), or an object with an `id` (`list --output jsonl`)."""
    if line[0] not in '{"':
        return line
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if isinstance(found, dict):
        found = found.get("id")
    if not isinstance(found, str) or not found:
        raise UsageError(f"line {number} of standard input holds no id", remedy="give one id per line")
    return found


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """For each id a beginning that fits no other of them, all of one length."""
    whole = list(ids)
    longest = max(map(len, whole), default=0)
    for length in range(_SHORTEST_SHOWN, longest):
        shown = {each: each[:length] for each in whole if each[length - 1] != "-"}
        if len(set(shown.values())) == len(whole):
            return shown
    return {each: each for each in whole}
