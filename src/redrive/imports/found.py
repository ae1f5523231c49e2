"""What a file gave: a letter, or what is wrong with a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from redrive.message import cut

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter, Entry

_REASON_BUDGET = 300


class Found(NamedTuple):
    line: int
    letter: Entry | DeadLetter


class Bad(NamedTuple):
    line: int
    why: str


def refusal(line: int, error: Exception) -> Bad:
    return Bad(line, cut(str(error) or type(error).__name__, _REASON_BUDGET))
