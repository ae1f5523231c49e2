"""A message on its way to the SDK. `ServiceBusMessage` has setters and only data for a body; an annotated one has
all kinds of bodies and types, and no setters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageProperties

if TYPE_CHECKING:
    from datetime import datetime

PARTITION_KEY = "x-opt-partition-key"
_SCHEDULED = "x-opt-scheduled-enqueue-time"
_LONGEST_ID = 128


class Outgoing:
    """`properties`: the application's."""

    def __init__(self, annotated: AmqpAnnotatedMessage) -> None:
        self.annotated = annotated
        self._own = annotated.properties or AmqpMessageProperties()
        annotated.properties = self._own

    @classmethod
    def of_bytes(cls, body: bytes) -> Outgoing:
        return cls(AmqpAnnotatedMessage(data_body=body))

    @property
    def message_id(self) -> Any:
        return self._own.message_id

    @message_id.setter
    def message_id(self, value: str) -> None:
        if len(value) > _LONGEST_ID:
            raise ValueError(f"the id of a message has at most {_LONGEST_ID} characters")
        self._own.message_id = value

    @property
    def session(self) -> Any:
        return self._own.group_id

    @session.setter
    def session(self, value: str) -> None:
        self._own.group_id = value

    @property
    def partition_key(self) -> Any:
        return (self.annotated.annotations or {}).get(PARTITION_KEY.encode())

    @partition_key.setter
    def partition_key(self, value: str | None) -> None:
        if value is not None:
            self._annotate(PARTITION_KEY, value)

    @property
    def properties(self) -> dict[Any, Any]:
        return self.annotated.application_properties or {}

    @properties.setter
    def properties(self, value: dict[str | bytes, Any]) -> None:
        self.annotated.application_properties = value

    def schedule(self, due: datetime) -> None:
        """It must have an id."""
        self._annotate(_SCHEDULED, due)

    def _annotate(self, name: str, value: Any) -> None:
        annotations: dict[Any, Any] = self.annotated.annotations or {}
        annotations[name.encode()] = value  # as the SDK itself looks for them
        self.annotated.annotations = annotations
