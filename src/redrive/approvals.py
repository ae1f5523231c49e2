"""Which runs need a second person, and who that may be.

A name that somebody only said of themselves (`--as ann`) is recorded as that: `ann (said by root)`. Names are
compared without what is in the brackets, so nobody becomes a second person by saying their own name.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from redrive.errors import UsageError
from redrive.run import Approval

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from redrive.run import RunPlan

_SAID_BY = " (said by "
_LONGEST_NAME = 100


class ApprovalRules(msgspec.Struct, frozen=True, kw_only=True):
    """Any rule that fits asks for an approval."""

    more_than: int | None = None
    """Letters."""
    queues: frozenset[str] = frozenset()
    """Letters of these queues, or sent to them."""
    edits: bool = False
    """Every run that changes messages."""
    rules: bool = False
    """Whether the runs of automatic rules are asked about as well."""
    expires_after: float = 86400.0
    """Seconds."""


def approval_for(
    plan: RunPlan, *, count: int, queues: Collection[str], rules: ApprovalRules, now: datetime
) -> Approval | None:
    """What the run needs before its first effect; None: nothing. `queues` are those that its letters come from
    and go to, `count` is how many letters were shown.
    """
    why = "; ".join(_reasons(plan, count, queues, rules))
    if not why:
        return None
    expires_at = now + timedelta(seconds=rules.expires_after)
    return Approval(digest=plan.digest(count), expires_at=expires_at, why=why)


def _reasons(plan: RunPlan, count: int, queues: Collection[str], rules: ApprovalRules) -> Iterator[str]:
    if rules.more_than is not None and count > rules.more_than:
        yield f"{count} letters are more than {rules.more_than}"
    if guarded := sorted(rules.queues.intersection(queues)):
        yield f"of or to {', '.join(guarded)}"
    if rules.edits and plan.edit:
        yield "messages are edited"


def said_name(name: str, user: str) -> str:
    """How a person is recorded who says to be `name` and is `user` to the operating system."""
    told = name.strip()
    if not told or len(told) > _LONGEST_NAME or not told.isprintable() or "(" in told:
        raise UsageError(
            "--as needs a name",
            remedy=f"give a plain name, at most {_LONGEST_NAME} characters and without brackets",
        )
    return told if told == user else f"{told}{_SAID_BY}{user})"


def same_person(one: str, other: str) -> bool:
    return _bare(one) == _bare(other)


def _bare(name: str) -> str:
    return name.partition(_SAID_BY)[0].strip().casefold()
