"""What SQS tells of a queue, and of a queue that is to be made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from redrive.transports.sqs.fifo import is_fifo

LARGEST = 2**20
_DAY = 86_400
LONGEST_RETENTION = 14 * _DAY
_USUAL_RETENTION = 4 * _DAY
_USUAL_SIZE = 262_144
SIZE, RETENTION, POLICY = "MaximumMessageSize", "MessageRetentionPeriod", "RedrivePolicy"
_FIFO = {"FifoQueue": "true", "ContentBasedDeduplication": "false"}
"""Two messages of the same content are two messages."""


class DeadLetterRule(msgspec.Struct, frozen=True):
    """After so many receptions SQS itself moves a message there."""

    target: str
    """A queue's ARN."""
    most: int

    @property
    def queue(self) -> str:
        return self.target.rpartition(":")[2]

    @property
    def attributes(self) -> dict[str, str]:
        """As SQS reads them."""
        return {POLICY: json.dumps({"deadLetterTargetArn": self.target, "maxReceiveCount": str(self.most)})}

    def __str__(self) -> str:
        return f"{self.queue} after {self.most} receptions"


class QueueFacts(msgspec.Struct, frozen=True):
    name: str
    url: str
    told: Mapping[str, str]

    @property
    def arn(self) -> str:
        return self.told.get("QueueArn", self.url)

    @property
    def max_bytes(self) -> int:
        return min(self._number(SIZE, _USUAL_SIZE), LARGEST)

    @property
    def retention(self) -> int:
        """Seconds after which SQS deletes a message, counted from when it was first sent."""
        return self._number(RETENTION, _USUAL_RETENTION)

    @property
    def is_fifo(self) -> bool:
        return self.told.get("FifoQueue") == "true"

    @property
    def rule(self) -> DeadLetterRule | None:
        try:
            read: Any = json.loads(self.told.get(POLICY, ""))
            return DeadLetterRule(str(read["deadLetterTargetArn"]), int(read["maxReceiveCount"]))
        except (ValueError, KeyError, TypeError):
            return None

    def count(self, which: str) -> int:
        """About so many messages that are visible (""), `Delayed` or `NotVisible`."""
        return self._number(f"ApproximateNumberOfMessages{which}", 0)

    def _number(self, name: str, usual: int) -> int:
        text = self.told.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else usual


class QueueSpec(msgspec.Struct, frozen=True):
    name: str
    rule: DeadLetterRule | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """As people read them. SQS deletes what is older than the retention, whether or not anybody saw it: here
        as late as it can.
        """
        usual: dict[str, Any] = {SIZE: LARGEST, RETENTION: LONGEST_RETENTION}
        if is_fifo(self.name):
            usual |= _FIFO
        return usual if self.rule is None else {**usual, POLICY: str(self.rule)}

    @property
    def attributes(self) -> dict[str, str]:
        """As SQS reads them."""
        told = {name: str(value) for name, value in self.arguments.items()}
        return told if self.rule is None else told | self.rule.attributes


class RouteSpec(msgspec.Struct, frozen=True):
    """The way of a queue's dead letters, where the queue is there and has none."""

    queue: str
    rule: DeadLetterRule

    @property
    def name(self) -> str:
        return f"{self.queue} -> {self.rule.queue}"

    @property
    def arguments(self) -> dict[str, Any]:
        """As people read them."""
        return {POLICY: str(self.rule)}
