"""What the settings say about Kafka, in the words of its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redrive.transports.kafka.topics import TopicPlan

if TYPE_CHECKING:
    from redrive.settings import Settings

_GROUP = "redrive"
_OPTIONS = ("retry_topics", "declare", "start", "connect_timeout", "publish_timeout", "revoke_grace")


def group(settings: Settings) -> str:
    """The same for all who have these settings, whether they load the app or not: a redriven message is for the
    group of whoever sends it.
    """
    return settings.broker.kafka.group or settings.app.name or _GROUP


def is_group_named(settings: Settings) -> bool:
    return bool(settings.broker.kafka.group or settings.app.name)


def topic_plan(settings: Settings) -> TopicPlan:
    kafka = settings.broker.kafka
    usual = TopicPlan()
    return TopicPlan(
        partitions=kafka.partitions or usual.partitions,
        replication=kafka.replication or usual.replication,
        max_message_bytes=kafka.max_message_bytes,
        retention=kafka.retention,
    )


def transport_options(settings: Settings) -> dict[str, Any]:
    kafka = settings.broker.kafka
    return {
        **{name: getattr(kafka, name) for name in _OPTIONS},
        "names": settings.broker.names,
        "group": group(settings),
        "plan": topic_plan(settings),
        "client": kafka.client.reveal(),
    }
