"""The methods that are not on the hot path, by pamqp's definitions, and how its refusals read in our words.

pamqp refuses names that the specification did not foresee and RabbitMQ takes, so its checks of names are left out;
the broker says itself what it does not want.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pamqp import frame
from pamqp.commands import Basic, Channel, Confirm, Connection, Exchange, Queue
from pamqp.exceptions import UnmarshalingException

from redrive.errors import Unreachable

if TYPE_CHECKING:
    from pamqp.base import Frame


__all__ = ["Basic", "Channel", "Confirm", "Connection"]


class QueueDeclare(Queue.Declare):
    __slots__ = Queue.Declare.__slots__

    def validate(self) -> None:
        """See above."""


class QueueBind(Queue.Bind):
    __slots__ = Queue.Bind.__slots__

    def validate(self) -> None:
        """See above."""


class ExchangeDeclare(Exchange.Declare):
    __slots__ = Exchange.Declare.__slots__

    def validate(self) -> None:
        """See above."""


class BasicConsume(Basic.Consume):
    __slots__ = Basic.Consume.__slots__

    def validate(self) -> None:
        """See above."""


class ChannelClosed(Unreachable):
    """The broker closed the channel, with its reason."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"the broker closed the channel: {text} ({code})")
        self.code = code
        self.text = text


class ConnectionLost(Unreachable):
    pass


def encode(method: Frame, channel: int) -> bytes:
    """ValueError: a name or value that AMQP cannot carry."""
    return frame.marshal(method, channel)


def decode(payload: bytes) -> Any:
    """A method from its frame's payload. ConnectionLost if it is none: the two sides are out of step."""
    try:
        return frame._unmarshal_method_frame(payload)  # noqa: SLF001  the public one wants the whole frame copied
    except UnmarshalingException as error:
        raise ConnectionLost(f"the broker sent a method that cannot be read: {error}") from None
