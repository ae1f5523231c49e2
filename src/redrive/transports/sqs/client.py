"""One client of aiobotocore, made on first use, and what SQS says in our words."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from redrive.errors import ConfigurationError, PublishRefused, Unreachable
from redrive.transports.sqs.fifo import is_fifo

if TYPE_CHECKING:
    from redrive.errors import RedriveError
    from redrive.transports.sqs.address import Address

_MISSING = frozenset({"NonExistentQueue", "QueueDoesNotExist"})
_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "KmsAccessDenied", "AuthorizationError"})
_STRANGERS = frozenset(
    {
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_REFUSED = frozenset(
    {
        "InvalidAttributeValue",
        "InvalidMessageContents",
        "InvalidParameterValue",
        "KmsDisabled",
        "KmsNotFound",
        "MessageTooLong",
        "BatchRequestTooLong",
        "UnsupportedOperation",
    }
)
_LOST = frozenset({"InvalidIdFormat", "MessageNotInflight", "ReceiptHandleIsInvalid"})
_CONNECTIONS = 50


class SqsRefusal(Exception):
    """SQS answered, and said no. `code` without what some versions of its protocol put before it."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(f"{said} ({code})" if said else code)
        self.code = code.replace("#", ".").rpartition(".")[2]

    @property
    def is_missing(self) -> bool:
        return self.code in _MISSING

    @property
    def is_of_receipt(self) -> bool:
        """The message is no longer held by whoever has that receipt, or is gone."""
        return self.code in _LOST or (self.code == "InvalidParameterValue" and "eceipt" in str(self))


class SqsClient:
    """`endpoint`: another address than AWS's own; empty: as the environment and the profile say, else AWS's.
    `patience`: seconds for an answer, beside those that were asked for.
    """

    def __init__(self, address: Address, *, endpoint: str, connect_timeout: float, patience: float) -> None:
        self._address = address
        self._endpoint = endpoint
        self._config = AioConfig(
            connect_timeout=connect_timeout,
            read_timeout=patience,
            max_pool_connections=_CONNECTIONS,
            parameter_validation=False,  # a tenth of what a request costs, and SQS looks itself
            retries={"mode": "standard", "max_attempts": 2},
        )
        self._opening = asyncio.Lock()
        self._opened: AsyncExitStack | None = None
        self._client: Any = None
        self._closed = False

    @property
    def owner(self) -> dict[str, str]:
        """Whose queues are meant, where that has to be said."""
        return {"QueueOwnerAWSAccountId": self._address.account} if self._address.account else {}

    async def call(self, operation: str, **given: Any) -> dict[str, Any]:
        """SqsRefusal if SQS says no, Unreachable if it says nothing."""
        client = self._client or await self._open()
        try:
            answer: dict[str, Any] = await getattr(client, operation)(**given)
        except ClientError as raised:
            raise _refusal(raised) from None
        except (NoCredentialsError, PartialCredentialsError):
            raise Unreachable(
                "there are no credentials for AWS",
                remedy="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give this machine a role",
            ) from None
        except (BotoCoreError, OSError, TimeoutError) as raised:
            raise away(type(raised).__name__) from None
        return answer

    async def close(self) -> None:
        self._closed = True
        async with self._opening:
            opened, self._opened, self._client = self._opened, None, None
        if opened is not None:
            await opened.aclose()

    async def _open(self) -> Any:
        async with self._opening:
            if self._closed:
                raise Unreachable("the transport is closed", remedy="open a new one")
            if self._client is None:
                opened = AsyncExitStack()
                try:
                    made = get_session().create_client(
                        "sqs",
                        region_name=self._address.region,
                        endpoint_url=self._endpoint or None,
                        config=self._config,
                    )
                    self._client = await opened.enter_async_context(made)
                    self._client.meta.events.register_first("needs-retry.sqs.SendMessageBatch", _not_unasked)
                except (BotoCoreError, ValueError) as raised:
                    raise ConfigurationError(
                        f"there is no client for SQS with these settings: {type(raised).__name__}",
                        remedy="correct the region in broker.url, broker.sqs.endpoint, and AWS_PROFILE if any",
                    ) from None
                self._opened = opened
            return self._client


def _not_unasked(
    *, request_dict: dict[str, Any], caught_exception: Exception | None = None, **_: Any
) -> bool | None:
    """Whether to repeat a request. The client would, if it was not answered: messages may be in their queue then,
    and be there twice without anybody's knowing. That is for whoever sends them to decide. A FIFO queue knows the
    repetition by its deduplication id.
    """
    if caught_exception is None or is_fifo(str(json.loads(request_dict["body"])["QueueUrl"])):
        return None
    return False


def away(said: object) -> Unreachable:
    return Unreachable(
        f"SQS does not answer: {said}",
        remedy="see that the region in broker.url, or broker.sqs.endpoint, can be reached; work goes on by itself",
    )


def not_sent(refusal: SqsRefusal, queue: str) -> RedriveError:
    """Why a message is not where it should be."""
    if refusal.code in _DENIED:
        return PublishRefused(
            f"SQS does not let us send to queue {queue!r}: {refusal}",
            permanent=True,
            remedy="allow sqs:SendMessage for it, and kms:GenerateDataKey if it is encrypted with your own key",
        )
    if refusal.is_missing:
        return PublishRefused(f"there is no queue {queue!r}", permanent=True, remedy="make it: redrive setup")
    if refusal.code in _REFUSED:
        return PublishRefused(
            f"SQS refused a message for queue {queue!r}: {refusal.code}",
            permanent=True,
            remedy="change what it refuses: see the code in the API reference of SQS",
        )
    return unusable(refusal)


def unusable(refusal: SqsRefusal) -> Unreachable:
    """Why nothing can be done now that is no message's fault."""
    if refusal.code in _DENIED:
        return Unreachable(
            f"SQS does not let us: {refusal}",
            remedy="allow what docs/sqs.md lists; work goes on by itself",
        )
    if refusal.code in _STRANGERS:
        return Unreachable(
            f"AWS does not know us: {refusal.code}", remedy="renew the credentials; work goes on by itself"
        )
    return away(refusal)


def _refusal(raised: ClientError) -> SqsRefusal | Unreachable:
    error = raised.response.get("Error", {})
    status = raised.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status >= 500:  # noqa: PLR2004  HTTP's own
        return away(f"HTTP {status}")
    return SqsRefusal(str(error.get("Code", "")), str(error.get("Message", "")))
