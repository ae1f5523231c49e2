"""Which of the facts that a letter's row repeats from its message are hidden by rules of names and places."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from redrive.message import Message

if TYPE_CHECKING:
    from redrive.privacy.masking import Masker

EVENT_TYPE, SOURCE_ID, CORRELATION_ID = "event_type", "source_id", "correlation_id"
_SPELLED = {
    EVENT_TYPE: ("event_type", "eventType", "type"),
    SOURCE_ID: ("source_id", "sourceId"),
    CORRELATION_ID: ("correlation_id", "correlationId"),
}
_SHOWN = "x"


def hidden_facts(masker: Masker) -> frozenset[str]:
    """Asked of a message that has all of them, in every spelling: a fact that is hidden in one is hidden."""
    facts = {name: _SHOWN for names in _SPELLED.values() for name in names}
    asked = Message.create(id="", queue="", sent_at=datetime(1970, 1, 1, tzinfo=UTC), data=facts, metadata=facts)
    shown = masker.message(asked)
    return frozenset(fact for fact, names in _SPELLED.items() if not _is_shown(shown, names))


def _is_shown(message: Message, names: tuple[str, ...]) -> bool:
    told: tuple[Any, ...] = (message.data, message.metadata)
    return all(each.get(name) == _SHOWN for each in told for name in names)
