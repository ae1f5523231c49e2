"""What a cluster tells of itself, as plain values."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from redrive.transports.kafka.topics import SIZE, USUAL_SIZE, Topic


class PartitionFacts(msgspec.Struct, frozen=True, kw_only=True):
    leader: int = 1
    """-1: none."""
    replicas: tuple[int, ...] = (1, 2, 3)
    """Brokers that should have it."""
    in_sync: tuple[int, ...] = (1, 2, 3)
    """Those that have all of it."""


class TopicFacts(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    partitions: tuple[PartitionFacts, ...] = (PartitionFacts(),)
    config: Mapping[str, str] | None = None
    """None: not asked for, or not for this user."""

    @property
    def replication(self) -> int:
        """Of the partition with the fewest copies."""
        return min(len(each.replicas) for each in self.partitions)

    def number(self, setting: str) -> int | None:
        """None if it is not told."""
        told = (self.config or {}).get(setting, "")
        return int(told) if told.removeprefix("-").isdecimal() else None

    @property
    def as_topic(self) -> Topic:
        return Topic(self.name, len(self.partitions), self.number(SIZE) or USUAL_SIZE)


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    cluster: str = ""
    brokers: frozenset[int] = frozenset({1, 2, 3})
    """Those that are there."""
    topics: Mapping[str, TopicFacts] = {}
