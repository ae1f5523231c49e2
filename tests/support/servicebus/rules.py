"""The rules of topics in the place of the administration over HTTP, which the emulator does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from redrive.transports.servicebus.topics import Rule


class TopicRules:
    def __init__(self, topics: Mapping[str, Mapping[str, Collection[Rule]]]) -> None:
        self._topics = topics

    async def rules(self, topic: str) -> Mapping[str, Collection[Rule]] | None:
        return self._topics.get(topic)
