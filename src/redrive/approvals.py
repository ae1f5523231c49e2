"""Which runs need a second person, and who that may be.

A name that somebody only said of themselves (`--as ann`) is recorded as that: `ann (said by root)`. Both are
compared, the name and the account of the operating system: nobody becomes a second person by saying a name, their
own or another one.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from redrive.errors import UsageError
from redrive.run import Approval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.run import RunPlan

_SAID_BY = " (said by "
_TOKEN, _OF = "token:", " of "
_LONGEST_NAME = 100


class ApprovalRules(msgspec.Struct, frozen=True, kw_only=True):
    """Any rule that fits asks for an approval."""

    more_than: int | None = None
    """Letters."""
    queues: frozenset[str] = frozenset()
    """Letters of these queues, or sent to them."""
    edits: bool = False
    """Every run that changes messages, or takes letters that were edited before."""
    quarantined: bool = False
    """Every run that takes letters out of quarantine."""
    rules: bool = False
    """Whether the runs of automatic rules are asked about as well."""
    expires_after: float = 86400.0
    """Seconds."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to say about the letters of a plan, as whoever asks for the run was shown it."""

    count: int
    queues: Collection[str]
    """Those that the letters come from and go to."""
    edited: int = 0
    """Letters that were edited before, by hand or by another run."""


def approval_for(plan: RunPlan, shown: Shown, *, rules: ApprovalRules, now: datetime) -> Approval | None:
    """What the run needs before its first effect; None: nothing."""
    why = "; ".join(_reasons(plan, shown, rules))
    if not why:
        return None
    expires_at = now + timedelta(seconds=rules.expires_after)
    return Approval(digest=plan.digest(shown.count), expires_at=expires_at, why=why)


def _reasons(plan: RunPlan, shown: Shown, rules: ApprovalRules) -> Iterator[str]:
    if rules.more_than is not None and shown.count > rules.more_than:
        yield f"{shown.count} letters are more than {rules.more_than}"
    if guarded := sorted(rules.queues.intersection(shown.queues)):
        yield f"of or to {', '.join(guarded)}"
    if rules.edits and plan.edit:
        yield "messages are edited"
    if rules.edits and shown.edited:
        yield f"{shown.edited} letter{' was' if shown.edited == 1 else 's were'} edited before"
    if rules.quarantined and plan.quarantined:
        yield "letters are taken out of quarantine"


def said_name(name: str, user: str) -> str:
    """How a person is recorded who says to be `name` and is `user` to the operating system."""
    told = name.strip()
    if not told or len(told) > _LONGEST_NAME or not told.isprintable() or "(" in told:
        raise UsageError(
            "--as needs a name",
            remedy=f"give a plain name, at most {_LONGEST_NAME} characters and without brackets",
        )
    return told if told == user else f"{told}{_SAID_BY}{user})"


def token_name(name: str, owner: str) -> str:
    """How somebody is recorded who shows a token that `owner` made."""
    return f"{_TOKEN}{name}{_OF}{owner}"


def same_person(one: str, other: str) -> bool:
    """A token is whoever made it, too. Two tokens that one person made are two: they may be given away."""
    names, others = _lineage(one), _lineage(other)
    return not names[0].isdisjoint(set().union(*others)) or not others[0].isdisjoint(set().union(*names))


def _lineage(name: str) -> list[set[str]]:
    """Who it is, and if it is a token, whoever made it; each by the name they gave and by their account."""
    names = name.split(_OF) if name.startswith(_TOKEN) else [name]
    return [{part.strip().casefold() for part in each.removesuffix(")").split(_SAID_BY)} for each in names]
