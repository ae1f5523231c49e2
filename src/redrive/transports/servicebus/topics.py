"""Who would get a message that goes to a topic, marked for one of its subscriptions.

Nothing can be sent to one subscription alone. A message that a consumer of somebody else's shall have once more
goes to the topic with the application property `ONLY`. Others do not get it if each has a rule that leaves it out,
`"x-redrive-subscription" IS NULL OR "x-redrive-subscription" = 'mail'`: SQL in general is not read here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ONLY = "x-redrive-subscription"
_NAME = rf'(?:user\.)?["\[]?{re.escape(ONLY)}["\]]?'
_ONLY_MARKED = re.compile(rf"\(?\s*{_NAME}\s+IS\s+NULL\s+OR\s+{_NAME}\s*=\s*'((?:[^']|'')*)'\s*\)?", re.IGNORECASE)
_CONSTANT = {"1=1": True, "TRUE": True, "1=0": False, "FALSE": False}


class Rule(msgspec.Struct, frozen=True):
    """One of a subscription's. It gets what any of them lets through."""

    sql: str = ""
    """Empty: it is a correlation filter."""
    properties: dict[str, Any] = {}
    """What a correlation filter wants of the application properties."""
    more: bool = False
    """The correlation filter wants something of the message's own properties too."""


class Topics(Protocol):
    async def rules(self, topic: str) -> Mapping[str, Collection[Rule]] | None:
        """Of each subscription; None: we may not ask, or there is no such topic."""
        ...


def gets(rules: Collection[Rule], subscription: str) -> bool | None:
    """Whether these rules let through what is marked for a subscription; None: it depends on the message."""
    answers = [_lets_through(rule, subscription) for rule in rules]
    if True in answers:
        return True
    return None if None in answers else False


def _lets_through(rule: Rule, subscription: str) -> bool | None:
    if not rule.sql:
        wanted = rule.properties.get(ONLY)
        if wanted is not None and wanted != subscription:
            return False
        return None if rule.more or set(rule.properties) - {ONLY} else True
    constant = _CONSTANT.get(rule.sql.replace(" ", "").upper())
    if constant is not None:
        return constant
    marked = _ONLY_MARKED.fullmatch(rule.sql.strip())
    return None if marked is None else marked[1].replace("''", "'") == subscription
