"""[broker.kafka]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, InstanceOf

from redrive.secret_table import SecretTable
from redrive.section import Section
from redrive.setting_values import (
    BYTES,
    OptionalName,
    OptionalPositive,
    OptionalTimeout,
    Seconds,
    Timeout,
    size,
    unset,
)
from redrive.transports.kafka.address import OWN

if TYPE_CHECKING:
    from redrive.secret_table import Value

_A_TABLE = "should be a table of librdkafka's own settings, such as { sasl.mechanism = 'PLAIN' }, or 'none'"


def _client(value: Any) -> Any:
    if value is None or isinstance(value, SecretTable):
        return value or SecretTable()
    if not isinstance(value, Mapping):
        raise ValueError(_A_TABLE)  # noqa: TRY004  pydantic collects ValueErrors
    given = dict(_flat(value))
    if taken := sorted(OWN & given.keys()):
        raise ValueError(f"cannot set {taken[0]!r}: no promise would hold with another value")
    return SecretTable(given)


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Value]]:
    """TOML takes `sasl.password` for a table, and no variable can have a dot in its name."""
    for key, value in table.items():
        name = above + key.replace("_", ".")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, str | int | float):
            yield name, value
        else:
            raise ValueError(f"{name!r} should be a text, a number, true or false")  # noqa: TRY004  as above


OptionalSize = Annotated[Annotated[int, BeforeValidator(size), Field(gt=0)] | None, BeforeValidator(unset), BYTES]
ClientTable = Annotated[InstanceOf[SecretTable], BeforeValidator(_client), BeforeValidator(unset)]


class KafkaSettings(Section):
    """For `kafka://` and `kafkas://` alone."""

    group: OptionalName = None
    """The consumer group. None: the name in [app], else `redrive`; never the name in code, which not every command
    knows.
    """
    retry_topics: Literal["per-delay", "single", "blocking"] = "per-delay"
    """single: one topic for all delays, where those wait longest that are behind many others. blocking: none; a
    retry waits in memory, and its partition behind it, so that the order of a partition is kept.
    """
    declare: Literal["missing", "never"] = "missing"
    """never: what `redrive setup` has not made is not made."""
    partitions: OptionalPositive = None
    """Of queues that are made. None: 6. A number is also what `redrive setup` compares existing ones with."""
    replication: OptionalPositive = None
    """Of topics that are made. None: as the brokers have it by default."""
    retention: OptionalTimeout = None
    """Of retry and dead-letter topics that are made. None: as the brokers have it by default."""
    max_message_bytes: OptionalSize = None
    """Of queues that are made; topics beside them take a little more. None: as the brokers have it by default."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where a group begins that has never committed; retries are always read from their beginning."""
    connect_timeout: Timeout = 10.0
    publish_timeout: Timeout = 20.0
    """How long the brokers may take to confirm a message."""
    revoke_grace: Seconds = 5.0
    """How long handlers may finish when a partition goes to another process."""
    client: ClientTable = SecretTable()
    """Goes to librdkafka: SASL, TLS. What the driver's promises stand on cannot be set."""
