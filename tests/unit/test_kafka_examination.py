"""What is told of a cluster, and at which level: nothing is asked of a broker here."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.finding import FindingLevel
from redrive.transports.kafka.cluster_facts import ClusterFacts, PartitionFacts, TopicFacts
from redrive.transports.kafka.examination import ExaminedQueue, Looked, examine

SAFE = {
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "retention.ms": str(7 * 86_400_000),
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "max.message.bytes": "1000000",
}
QUEUE = ExaminedQueue(name="orders", dead="orders_dlq", retries={"orders_retry": 0, "orders_retry_1h": 3600})


def topic(name: str, *partitions: PartitionFacts, **config: str) -> TopicFacts:
    told = {**SAFE, **{key.replace("_", "."): value for key, value in config.items()}}
    return TopicFacts(name=name, partitions=partitions or (PartitionFacts(),), config=told)


def told(*topics: TopicFacts, missing: tuple[str, ...] = (), **looked: Any) -> set[tuple[str, str, str | None]]:
    """What is not fine, with everything else as it should be."""
    names = ("orders", "orders_retry", "orders_retry_1h", "orders_dlq")
    there = {name: topic(name) for name in names if name not in missing} | {each.name: each for each in topics}
    facts = ClusterFacts(cluster="c", topics=there, brokers=looked.pop("brokers", frozenset({1, 2, 3})))
    found = examine(Looked(facts=facts, queues=(QUEUE,), **looked))
    assert all(each.remedy for each in found if each.level is not FindingLevel.OK)
    return {(each.level, each.check, each.queue) for each in found if each.level is not FindingLevel.OK}


def test_a_cluster_as_it_should_be_has_nothing_to_tell() -> None:
    assert told() == set()


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        (
            topic("orders", PartitionFacts(replicas=(1,), in_sync=(1,))),
            {("warn", "replication"), ("problem", "state")},
        ),
        (topic("orders", min_insync_replicas="1"), {("warn", "min-insync")}),
        (topic("orders", min_insync_replicas="3"), {("warn", "min-insync")}),
        (topic("orders", unclean_leader_election_enable="true"), {("problem", "unclean-leader")}),
        (topic("orders", PartitionFacts(leader=-1, in_sync=())), {("problem", "state")}),
        (topic("orders", PartitionFacts(in_sync=(1, 2))), {("warn", "state")}),
        (topic("orders", PartitionFacts(in_sync=(1,))), {("problem", "state")}),
        (topic("orders", retention_ms="1000", cleanup_policy="compact"), set()),  # a queue's own affair
        (topic("orders_retry_1h", retention_ms="3600000"), {("problem", "retention")}),
        (topic("orders_retry_1h", retention_ms="3600001"), set()),
        (topic("orders_retry_1h", retention_ms="-1"), set()),
        (topic("orders_dlq", retention_ms=str(7 * 86_400_000 - 1)), {("warn", "retention")}),
        (topic("orders_dlq", retention_bytes="1000000"), {("problem", "retention")}),
        (topic("orders_dlq", cleanup_policy="compact,delete"), {("problem", "compacted")}),
        (topic("orders_dlq", max_message_bytes="999999"), {("problem", "size")}),
        (topic("orders_dlq", max_message_bytes="1000001"), set()),
        (topic("orders_retry", PartitionFacts(), PartitionFacts()), {("warn", "partitions")}),
        (TopicFacts(name="orders_dlq"), {("warn", "config")}),
    ],
)
def test_what_is_not_as_it_should_be_is_told(changed: TopicFacts, found: set[tuple[str, str]]) -> None:
    assert told(changed) == {(*each, changed.name) for each in found}


def test_of_several_retry_topics_it_is_told_once() -> None:
    both = (topic(name, min_insync_replicas="1") for name in QUEUE.retries)
    assert told(*both) == {("warn", "min-insync", "orders_retry*")}


def test_a_broker_that_is_away_is_told() -> None:
    assert told(brokers=frozenset({1, 3})) == {("warn", "brokers", None)}


def test_missing_topics_are_told_where_nobody_makes_them() -> None:
    gone = ("orders", "orders_retry", "orders_retry_1h", "orders_dlq")
    assert told(missing=gone) == {("problem", "topic", "orders")}
    assert told(missing=gone, declares=False) == {
        ("problem", "topic", "orders"),
        ("problem", "topic", "orders_retry"),
        ("problem", "topic", "orders_dlq"),
    }


def test_dead_letters_that_nobody_collects_are_told() -> None:
    assert told(uncollected={"orders_dlq": 3}) == {("warn", "uncollected", "orders_dlq")}
    assert told(uncollected={"orders_dlq": 0}) == set()
