"""What a request for a run has to say, and whether two are one: a script that asks again, because it got no
answer, asks for the same run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from redrive.errors import Refused, UsageError
from redrive.search_terms import Field, FieldTerm, Filter

if TYPE_CHECKING:
    from redrive.letter_query import LetterQuery
    from redrive.run import Run, RunPlan
    from redrive.search_terms import Term

LONGEST_KEY = 200
_MOMENTS = frozenset({Field.CREATED, Field.CHANGED})


def check_key(key: str) -> None:
    if not key.strip() or len(key) > LONGEST_KEY or not key.isprintable():
        raise UsageError(
            "that is no key of a request", remedy=f"give a text of at most {LONGEST_KEY} characters on one line"
        )


def check_reason(plan: RunPlan) -> None:
    """Whoever takes letters out of quarantine says why (T15)."""
    if plan.quarantined and not plan.reason.strip():
        raise UsageError(
            "letters are not taken out of quarantine without a reason",
            remedy="say why with --reason: the history of each letter keeps it",
        )


def check_same(run: Run, plan: RunPlan) -> None:
    """Refused if the run was made for another request than this plan's."""
    if _request(run.plan) != _request(plan):
        raise Refused(
            f"run {run.id} was made by the same key, of other letters, for another target or with another edit",
            remedy=f"give another key; `redrive runs show {run.id}` tells what that run is",
        )


def _request(plan: RunPlan) -> str:
    """What was asked for, without what the moment of asking and the rules for the number put into the plan."""
    return replace(plan, selection=_timeless(plan.selection), at_most=None).digest(0)


def _timeless(selection: LetterQuery) -> LetterQuery:
    where = Filter(tuple(_without_moments(term) for term in selection.where.terms))
    return replace(selection, where=where, created_before=None, created_after=None)


def _without_moments(term: Term) -> Term:
    """`age:>2d` is a moment by the time it is read, and another one every time."""
    is_moment = isinstance(term, FieldTerm) and term.field in _MOMENTS
    return replace(term, values=()) if is_moment else term
