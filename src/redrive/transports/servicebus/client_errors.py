"""What the SDK raises, in our words. None of its texts holds a key; none of ours holds a payload."""

from __future__ import annotations

from azure.core.exceptions import ClientAuthenticationError
from azure.servicebus.exceptions import (
    MessageAlreadySettled,
    MessageLockLostError,
    MessageNotFoundError,
    MessageSizeExceededError,
    MessagingEntityDisabledError,
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusQuotaExceededError,
    SessionLockLostError,
)

from redrive.errors import LeaseLost, PublishRefused, RedriveError, Unreachable

LOST = (MessageLockLostError, MessageAlreadySettled, MessageNotFoundError, SessionLockLostError)
"""Somebody else has the message, or nobody has it any more."""


class NoIdentity(Unreachable):
    def __init__(self) -> None:
        super().__init__(
            "Entra ID does not say who this is",
            remedy="give the process an identity, run `az login`, or name a policy and its key",
        )


class NoSuchEntity(PublishRefused):
    def __init__(self, entity: str) -> None:
        super().__init__(
            f"there is no queue or topic {entity!r}", permanent=False, remedy="make it, or run `redrive setup`"
        )


class TooLarge(PublishRefused):
    def __init__(self, entity: str) -> None:
        super().__init__(
            f"the message is larger than {entity!r} takes",
            permanent=True,
            remedy="the standard tier takes 256 KiB, all properties included; premium takes more",
        )


def of_settling(error: Exception) -> RedriveError:
    if isinstance(error, LOST):
        return LeaseLost("the lock on this message is over: somebody else may have it")
    return Unreachable(f"Service Bus did not settle a message: {type(error).__name__}")


def of_sending(error: Exception, entity: str) -> RedriveError:
    if isinstance(error, MessagingEntityNotFoundError):
        return NoSuchEntity(entity)
    if isinstance(error, MessageSizeExceededError):
        return TooLarge(entity)
    if isinstance(error, ServiceBusQuotaExceededError | MessagingEntityDisabledError):
        return PublishRefused(f"{entity!r} takes no messages now: it is full or disabled", permanent=False)
    return of_asking(error, entity)


def of_asking(error: Exception, entity: str) -> RedriveError:
    if isinstance(error, MessagingEntityNotFoundError):
        return Unreachable(f"there is no {entity!r} in this namespace", remedy="make it, or run `redrive setup`")
    if isinstance(error, ServiceBusAuthenticationError | ServiceBusAuthorizationError):
        return Unreachable(
            f"Service Bus refused the credentials for {entity!r}",
            remedy="the policy needs Listen and Send; check the key in the address",
        )
    if ClientAuthenticationError in (type(error), type(getattr(error, "inner_exception", None))):
        return NoIdentity()
    return Unreachable(f"Service Bus cannot be reached for {entity!r}: {type(error).__name__}")
