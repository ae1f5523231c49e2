"""What librdkafka says, in our words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from redrive.errors import ConfigurationError, PublishRefused, Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from redrive.errors import RedriveError

_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
_FORBIDDEN = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.INVALID_RECORD,
        KafkaError.POLICY_VIOLATION,
        KafkaError.TOPIC_EXCEPTION,
    }
)
IMPOSSIBLE = frozenset(
    {
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_REQUEST,
        KafkaError.POLICY_VIOLATION,
    }
)
"""A topic cannot be made as it was asked for, however often."""
MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})  # noqa: SLF001  librdkafka's own codes begin so


def error_in(raised: KafkaException) -> KafkaError:
    found: KafkaError = raised.args[0]
    return found


def not_published(error: KafkaError, topic: str) -> RedriveError:
    """Why a record is not where it should be, as far as anybody knows."""
    said = f"{error.str()} ({error.name()})"
    if error.code() in _TOO_LARGE:
        return PublishRefused(
            f"the record is more than topic {topic!r} takes: {said}",
            permanent=True,
            remedy="raise max.message.bytes of the topic",
        )
    if error.code() in _FORBIDDEN:
        return PublishRefused(
            f"the broker refused a record for topic {topic!r}: {said}",
            permanent=True,
            remedy="give this client's user the right to write there, or send to another topic",
        )
    if error.code() in MISSING:
        return PublishRefused(
            f"there is no topic {topic!r}: {said}", permanent=True, remedy="make it: redrive setup"
        )
    return away(said)


def away(said: object) -> Unreachable:
    return Unreachable(
        f"the Kafka brokers do not answer: {said}",
        remedy="start them, or correct broker.url; work goes on by itself",
    )


def no_records(error: KafkaError) -> Unreachable | None:
    """Why nothing comes, if that is for longer than librdkafka's next try: somebody has to do something."""
    said = f"{error.str()} ({error.name()})"
    if error.code() in _FORBIDDEN:
        return Unreachable(
            f"the Kafka brokers refuse us: {said}",
            remedy="give this client's user the right to read the topics and the group; work goes on by itself",
        )
    return away(said) if error.code() == KafkaError._ALL_BROKERS_DOWN else None  # noqa: SLF001  as above


def is_fatal(error: KafkaError) -> bool:
    """Whether the client that says so does nothing any more."""
    return bool(error.fatal() or error.code() == KafkaError._FATAL)  # noqa: SLF001  as above


def of_settings(raised: KafkaException, told: Iterable[str]) -> ConfigurationError:
    """Why there is no client. librdkafka quotes the value that it cannot use, which may be a secret: of what it
    says only the names of settings are `told`.
    """
    said = error_in(raised).str()
    name = next((each for each in sorted(told, key=len, reverse=True) if each in said), "")
    about = f"{name!r} in [broker.kafka.client]" if name else "what is in [broker.kafka.client]"
    return ConfigurationError(
        f"librdkafka cannot use {about}",
        remedy="see librdkafka's CONFIGURATION.md for what it takes, and whether files that are named are there",
    )


_IN_CLIENT = "in [broker.kafka.client]"
_REMEDIES = {
    KafkaError._AUTHENTICATION: f"correct user and password in broker.url, or sasl.mechanism {_IN_CLIENT}",  # noqa: SLF001  as above
    KafkaError._SSL: f"name who has signed their certificates: ssl.ca.location {_IN_CLIENT}",  # noqa: SLF001
    # They were reached, and ended the connection without a word.
    KafkaError._ALL_BROKERS_DOWN: "start them; for TLS write kafkas:// in broker.url, for SASL user:password@",  # noqa: SLF001
}


def explained(raised: KafkaException) -> RedriveError:
    error = error_in(raised)
    if (remedy := _REMEDIES.get(error.code())) is not None:
        said = f"{error.str()} ({error.name()})"
        return Unreachable(f"the Kafka brokers do not answer: {said}", remedy=f"{remedy}; work goes on by itself")
    if error.code() in _FORBIDDEN:
        return PublishRefused(
            f"the broker refuses us: {error.str()} ({error.name()})",
            permanent=True,
            remedy="give this client's user the right to do that",
        )
    return away(f"{error.str()} ({error.name()})")
