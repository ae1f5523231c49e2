"""The management API's JSON as facts. Total: whatever is missing or of another type is None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from redrive.transports.rabbitmq.broker_facts import (
    BindingFacts,
    ConnectionFacts,
    ConsumerFacts,
    ExchangeFacts,
    NodeFacts,
    OverviewFacts,
    PermissionFacts,
    QueueFacts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


def overview(value: Mapping[str, Any]) -> OverviewFacts:
    return OverviewFacts(
        version=_of(str, value, "rabbitmq_version") or _of(str, value, "product_version"),
        cluster=_of(str, value, "cluster_name"),
    )


def queue(value: Mapping[str, Any]) -> QueueFacts:
    arguments, statistics = _table(value, "arguments"), _table(value, "message_stats")
    return QueueFacts(
        name=_text(value, "name"),
        type=_of(str, value, "type") or _of(str, arguments, "x-queue-type"),
        durable=_of(bool, value, "durable"),
        auto_delete=_of(bool, value, "auto_delete"),
        exclusive=_of(bool, value, "exclusive"),
        arguments=arguments,
        policy=_table(value, "effective_policy_definition"),
        messages=_number(value, "messages"),
        ready=_number(value, "messages_ready"),
        unacked=_number(value, "messages_unacknowledged"),
        held=_number(value, "messages_dlx"),
        consumers=_number(value, "consumers"),
        incoming=_rate(statistics, "publish"),
        outgoing=_rate(statistics, "deliver_get"),
        acked=_rate(statistics, "ack"),
        memory=_number(value, "memory"),
        bytes=_number(value, "message_bytes"),
        state=_of(str, value, "state"),
        delivery_limit=_number(value, "delivery_limit"),
    )


def exchange(value: Mapping[str, Any]) -> ExchangeFacts:
    return ExchangeFacts(
        name=_text(value, "name"),
        type=_of(str, value, "type"),
        alternate=_of(str, _table(value, "arguments"), "alternate-exchange"),
        has_policy=bool(_of(str, value, "policy")),
    )


def binding(value: Mapping[str, Any]) -> BindingFacts:
    return BindingFacts(
        source=_text(value, "source"),
        destination=_text(value, "destination"),
        to_queue=_text(value, "destination_type") != "exchange",
        key=_text(value, "routing_key"),
    )


def node(value: Mapping[str, Any]) -> NodeFacts:
    return NodeFacts(
        name=_text(value, "name"),
        running=_of(bool, value, "running"),
        memory_alarm=_of(bool, value, "mem_alarm"),
        disk_alarm=_of(bool, value, "disk_free_alarm"),
    )


def permission(value: Mapping[str, Any]) -> PermissionFacts:
    kinds = ("vhost", "configure", "write", "read")
    return PermissionFacts(**{kind: _text(value, kind) for kind in kinds})


def connection(value: Mapping[str, Any]) -> ConnectionFacts:
    return ConnectionFacts(name=_text(value, "name"), state=_of(str, value, "state"), user=_of(str, value, "user"))


def consumer(value: Mapping[str, Any]) -> ConsumerFacts:
    return ConsumerFacts(
        queue=_text(_table(value, "queue"), "name"),
        tag=_of(str, value, "consumer_tag"),
        prefetch=_number(value, "prefetch_count"),
        active=_of(bool, value, "active"),
    )


def _of(kind: type[T], value: Mapping[str, Any], key: str) -> T | None:
    found = value.get(key)
    return found if isinstance(found, kind) else None


def _text(value: Mapping[str, Any], key: str) -> str:
    return _of(str, value, key) or ""


def _number(value: Mapping[str, Any], key: str) -> int | None:
    found = _of(int, value, key)
    return None if isinstance(found, bool) else found


def _table(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return _of(dict, value, key) or {}  # an empty table is told as an empty list, by some versions


def _rate(statistics: Mapping[str, Any], name: str) -> float | None:
    found = _table(statistics, f"{name}_details").get("rate")
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None
