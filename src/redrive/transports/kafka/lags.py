"""How much lies in topics that a consumer group has not done yet."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin._listoffsets import OffsetSpec

from redrive.transports.kafka.client_errors import error_in, explained

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka.admin import AdminClient

Place = tuple[str, int]

_UNLED = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""A topic that was just made, or a partition that goes to another broker: its leader is there in a moment."""
_SOON = 0.05
_LATEST, _EARLIEST = OffsetSpec.latest(), OffsetSpec.earliest()  # type: ignore[no-untyped-call]


class Lags:
    def __init__(self, admin: AdminClient, *, within: float) -> None:
        self._admin = admin
        self._within = within

    async def of(self, group: str, topics: Mapping[str, int], known: Mapping[Place, int]) -> dict[Place, int]:
        """Records of each partition of these topics (with their numbers of partitions) that are behind the group's
        last commit, or behind what is `known` to be done.
        """
        places = [(topic, number) for topic, count in topics.items() for number in range(count)]
        if not places:
            return {}
        try:
            return await asyncio.to_thread(self._look_until_led, group, places, known)
        except KafkaException as raised:
            raise explained(raised) from None

    def _look_until_led(self, group: str, places: list[Place], known: Mapping[Place, int]) -> dict[Place, int]:
        deadline = time.monotonic() + self._within
        while True:
            try:
                return self._look(group, places, known)
            except KafkaException as raised:
                if error_in(raised).code() not in _UNLED or time.monotonic() > deadline:
                    raise
            time.sleep(_SOON)

    def _look(self, group: str, places: list[Place], known: Mapping[Place, int]) -> dict[Place, int]:
        latest = self._offsets(places, _LATEST)
        done = dict(known)
        if asked := [place for place in places if place not in done]:
            done |= self._committed(group, asked)
        if never := [place for place in places if place not in done]:
            done |= self._offsets(never, _EARLIEST)
        return {place: max(latest[place] - done[place], 0) for place in places}

    def _offsets(self, places: list[Place], which: OffsetSpec) -> dict[Place, int]:
        asked = {TopicPartition(*place): which for place in places}
        futures = self._admin.list_offsets(asked, request_timeout=self._within)
        return {(each.topic, each.partition): future.result().offset for each, future in futures.items()}

    def _committed(self, group: str, places: list[Place]) -> dict[Place, int]:
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(*place) for place in places])
        future = self._admin.list_consumer_group_offsets([wanted], request_timeout=self._within)[group]
        found = future.result().topic_partitions
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}
