"""One topic: every way in which the brokers may lose what is in it, or stop taking more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.duration import short
from redrive.finding import problem, warn
from redrive.transports.kafka.topics import RETENTION, SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.finding import Finding
    from redrive.transports.kafka.cluster_facts import TopicFacts

_ALTER = "kafka-configs.sh --alter --add-config"
_MIN_IN_SYNC = "min.insync.replicas"
_UNCLEAN = "unclean.leader.election.enable"
_SAFE = 2
WEEK = 7 * 86400.0


def examine_topic(topic: TopicFacts) -> Iterator[Finding]:
    """Whatever is in it."""
    yield from _state(topic)
    if topic.config is None:
        what = "its settings are not told to this user: what depends on them is not checked"
        yield warn("config", what, "allow this user to describe the settings of topics", queue=topic.name)
    yield from _replicated(topic)
    if (topic.config or {}).get(_UNCLEAN) == "true":
        what = "a broker that misses messages may become leader, and those are gone"
        yield problem("unclean-leader", what, f"{_ALTER} {_UNCLEAN}=false", queue=topic.name)


def examine_beside(topic: TopicFacts, home: TopicFacts | None) -> Iterator[Finding]:
    """A topic for retries or dead letters of `home`."""
    if "compact" in (topic.config or {}).get("cleanup.policy", ""):
        what = "is compacted: of messages with one key all but the last are deleted"
        yield problem("compacted", what, f"{_ALTER} cleanup.policy=delete", queue=topic.name)
    most = topic.number("retention.bytes")
    if most is not None and most >= 0:
        what = f"deletes its oldest messages beyond {most:,} bytes of a partition"
        yield problem("retention", what, f"{_ALTER} retention.bytes=-1", queue=topic.name)
    if home is not None:
        yield from _like_home(topic, home)


def examine_waiting(topic: TopicFacts, delay: float) -> Iterator[Finding]:
    """Messages wait in it for so long, in seconds."""
    kept = _kept(topic)
    if kept is not None and kept <= delay:
        what = f"messages wait in it for up to {short(delay)} and are deleted after {short(kept)}"
        yield problem("retention", what, f"{_ALTER} {RETENTION}={round(2000 * delay)} or more", queue=topic.name)


def examine_dead_letters(topic: TopicFacts, waiting: int | None) -> Iterator[Finding]:
    """`waiting`: those that nobody has collected, if nobody is there to do it."""
    kept = _kept(topic)
    if kept is not None and kept < WEEK:
        what = f"dead letters are deleted after {short(kept)}, whether anybody has seen them or not"
        yield warn("retention", what, f"{_ALTER} {RETENTION}={round(WEEK * 1000)} or more", queue=topic.name)
    if waiting:
        yield warn(
            "uncollected",
            f"dead letters wait ({waiting:,}), and nobody collects them",
            f"`redrive collect` keeps them in the store, `redrive reprocess --queue {topic.name}` puts them back",
            queue=topic.name,
        )


def _state(topic: TopicFacts) -> Iterator[Finding]:
    without = sum(each.leader < 0 for each in topic.partitions)
    if without:
        what = f"{_partitions(without)} no leader: nothing can be read or written there"
        yield problem("state", what, "start the brokers that have their copies", queue=topic.name)
    least = topic.number(_MIN_IN_SYNC) or 1
    short_of = sum(each.leader >= 0 and len(each.in_sync) < least for each in topic.partitions)
    if short_of:
        what = f"{_partitions(short_of)} fewer than {least} copies in sync: nothing can be written there"
        yield problem("state", what, "start the brokers that have the others", queue=topic.name)
    behind = sum(len(each.in_sync) < len(each.replicas) for each in topic.partitions)
    if behind and not (without or short_of):
        what = f"{_partitions(behind)} copies that are not in sync"
        yield warn("state", what, "see that the brokers that have them run and keep up", queue=topic.name)


def _replicated(topic: TopicFacts) -> Iterator[Finding]:
    copies, least = topic.replication, topic.number(_MIN_IN_SYNC)
    if copies < _SAFE:
        what = "has one copy of each message: gone with the disk of its broker"
        yield warn("replication", what, "three copies: kafka-reassign-partitions.sh", queue=topic.name)
    elif least is not None and least < _SAFE:
        what = f"{_MIN_IN_SYNC} is {least}: what one broker alone has counts as written"
        yield warn("min-insync", what, f"{_ALTER} {_MIN_IN_SYNC}=2", queue=topic.name)
    elif least is not None and least >= copies:
        what = f"{_MIN_IN_SYNC} is {least} of {copies} copies: nothing can be written while one broker is away"
        yield warn("min-insync", what, f"{_ALTER} {_MIN_IN_SYNC}=2, with three copies", queue=topic.name)


def _like_home(topic: TopicFacts, home: TopicFacts) -> Iterator[Finding]:
    own, largest = topic.number(SIZE), home.number(SIZE)
    if own is not None and largest is not None and own < largest:
        what = f"takes messages of {own:,} bytes at most, its queue {home.name} of {largest:,}"
        yield problem("size", what, f"{_ALTER} {SIZE}={largest} or more", queue=topic.name)
    if len(topic.partitions) != len(home.partitions):
        what = f"has {len(topic.partitions)} partitions, its queue {home.name} {len(home.partitions)}"
        yield warn(
            "partitions",
            f"{what}: messages do not keep their partition, nor the order within it",
            "kafka-topics.sh --alter adds partitions where there are fewer",
            queue=topic.name,
        )


def _kept(topic: TopicFacts) -> float | None:
    """Seconds; None: for ever, or not told."""
    milliseconds = topic.number(RETENTION)
    return None if milliseconds is None or milliseconds < 0 else milliseconds / 1000


def _partitions(count: int) -> str:
    return "1 partition has" if count == 1 else f"{count} partitions have"
