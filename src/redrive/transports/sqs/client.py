"""One client of aiobotocore, made on first use."""

from __future__ import annotations

import asyncio
import contextlib
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from botocore.exceptions import BotoCoreError, ClientError

from redrive.errors import ConfigurationError, Unreachable
from redrive.transports.sqs.fifo import is_fifo
from redrive.transports.sqs.refusals import NO_CREDENTIALS, answered, away, without_credentials

if TYPE_CHECKING:
    from redrive.transports.sqs.address import Address

_CONNECTIONS = 50
_LAST_MOMENT = 5.0


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
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def owner(self) -> dict[str, str]:
        """Whose queues are meant, where that has to be said."""
        return {"QueueOwnerAWSAccountId": self._address.account} if self._address.account else {}

    async def call(self, operation: str, **given: Any) -> dict[str, Any]:
        """SqsRefusal if SQS says no, Unreachable if it says nothing."""
        client = self._client or await self._open()
        self._begun()
        try:
            answer: dict[str, Any] = await getattr(client, operation)(**given)
        except ClientError as raised:
            raise answered(raised) from None
        except NO_CREDENTIALS as raised:
            raise without_credentials(raised) from None
        except (BotoCoreError, OSError, TimeoutError) as raised:
            raise away(type(raised).__name__) from None
        finally:
            self._ended()
        return answer

    async def close(self) -> None:
        """What is under way is waited for, a moment: the client would leave it without an answer, for ever."""
        self._closed = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_MOMENT):
                await self._idle.wait()
        async with self._opening:
            opened, self._opened, self._client = self._opened, None, None
        if opened is not None:
            await opened.aclose()

    def _begun(self) -> None:
        self._check_open()
        self._under_way += 1
        self._idle.clear()

    def _ended(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._idle.set()

    def _check_open(self) -> None:
        if self._closed:
            raise Unreachable("the transport is closed", remedy="open a new one")

    async def _open(self) -> Any:
        async with self._opening:
            self._check_open()
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
                    events = self._client.meta.events
                    events.register_first("needs-retry.sqs.SendMessageBatch", _not_unasked)
                    events.register_first("needs-retry.sqs.StartMessageMoveTask", _never)
                except (*NO_CREDENTIALS, OSError) as raised:
                    raise without_credentials(raised) from None
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


def _never(**_: Any) -> bool:
    """What was begun and not answered would be refused the second time, as if it were somebody else's."""
    return False
