"""A client of RabbitMQ's management HTTP API: it only asks.

Every answer comes within a deadline, is bounded in size and is never followed elsewhere: the password that goes
with each request is for this server alone. No error and no log line holds it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from redrive.errors import NotFound, Refused, Unreachable
from redrive.transports.rabbitmq import broker_parsing as parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    from redrive.transports.rabbitmq.management_address import ManagementAddress

T = TypeVar("T")

DEADLINE = 3.0
LARGEST_ANSWER = 16 * 2**20
_PAGE = 500
_MOST_PAGES = 1000
_QUEUE_COLUMNS = (
    "name,type,durable,auto_delete,exclusive,arguments,effective_policy_definition,messages,messages_ready,"
    "messages_unacknowledged,messages_dlx,consumers,message_stats,memory,message_bytes,state,delivery_limit"
)
_OK, _BAD_REQUEST, _UNAUTHORISED, _FORBIDDEN, _NOT_FOUND, _SERVER_ERROR = 200, 400, 401, 403, 404, 500
_LONGEST_REASON = 200
_ENABLE = "run `rabbitmq-plugins enable rabbitmq_management`, or set broker.rabbitmq.management_url"


class NotEnabled(Unreachable):
    """Nothing listens there, or something that is no management API: the plugin may be off."""


class NotAllowed(Refused):
    """The user may not log in to it, or may not ask this."""


class Management:
    """Safe to use from many tasks of one event loop. Raises NotEnabled, NotAllowed, or Unreachable when it is too
    slow, too large or broken.
    """

    def __init__(
        self,
        address: ManagementAddress,
        *,
        security: ssl.SSLContext | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        self._address = address
        self._deadline = deadline
        self._bases = list(address.bases)
        self._vhost = quote(address.vhost, safe="")
        self._client = httpx2.AsyncClient(
            auth=httpx2.BasicAuth(address.user, address.password),
            timeout=deadline,
            follow_redirects=False,
            trust_env=False,  # neither a proxy nor a .netrc has to do with it
            headers={"accept": "application/json", "accept-encoding": "identity"},
            verify=security or True,
        )

    async def overview(self) -> OverviewFacts:
        return parse.overview(_table(await self._get("overview")))

    async def queues(self) -> list[QueueFacts]:
        """All queues of the vhost."""
        found: list[QueueFacts] = []
        for page in range(1, _MOST_PAGES + 1):
            asked = {"page": str(page), "page_size": str(_PAGE), "columns": _QUEUE_COLUMNS}
            # Queues may be deleted while they are counted: a page that is gone was behind the last one.
            gone: dict[str, Any] = {} if page == 1 else {"absent": {}}
            answer = _table(await self._get(f"queues/{self._vhost}", asked, **gone))
            found += _each(answer.get("items"), parse.queue)
            pages = answer.get("page_count")
            if not isinstance(pages, int) or page >= pages:
                return found
        raise Unreachable(f"there are more than {_MOST_PAGES * _PAGE:,} queues", remedy="name those you mean")

    async def queue(self, name: str) -> QueueFacts | None:
        """None: there is no such queue."""
        found = await self._get(f"queues/{self._vhost}/{quote(name, safe='')}", absent=None)
        return None if found is None else parse.queue(_table(found))

    async def exchanges(self) -> list[ExchangeFacts]:
        return _each(await self._get(f"exchanges/{self._vhost}"), parse.exchange)

    async def bindings(self, source: str | None = None) -> list[BindingFacts]:
        """Of one exchange, or all of the vhost. An exchange that does not exist has none."""
        # The default exchange has no name, and the API no path for it.
        path = f"exchanges/{self._vhost}/{quote(source, safe='')}/bindings/source" if source else None
        found = await self._get(path or f"bindings/{self._vhost}", absent=[])
        facts = _each(found, parse.binding)
        return facts if source is None else [each for each in facts if each.source == source]

    async def permissions(self) -> list[PermissionFacts]:
        """Of the user in all vhosts. It may look at its own only if it is an administrator."""
        user = quote(self._address.user, safe="")
        return _each(await self._get(f"users/{user}/permissions"), parse.permission)

    async def nodes(self) -> list[NodeFacts]:
        return _each(await self._get("nodes"), parse.node)

    async def consumers(self) -> list[ConsumerFacts]:
        return _each(await self._get(f"consumers/{self._vhost}"), parse.consumer)

    async def connections(self) -> list[ConnectionFacts]:
        return _each(
            await self._get(f"vhosts/{self._vhost}/connections", {"columns": "name,state,user"}),
            parse.connection,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def _get(self, path: str, asked: Mapping[str, str] | None = None, **absent: Any) -> Any:
        """The answer, or `absent` where there is no such thing."""
        status, body = await self._answer(path, asked or {})
        if status in {_UNAUTHORISED, _FORBIDDEN}:
            raise _denied(self._address, body)
        if status in {_BAD_REQUEST, _NOT_FOUND} and "absent" in absent:
            return absent["absent"]
        if status == _NOT_FOUND:
            raise NotFound(
                f"{self._bases[0]} knows nothing of vhost {self._address.vhost!r}",
                remedy=f"name another one in broker.url, or {_ENABLE}",
            )
        if status >= _SERVER_ERROR:
            raise Unreachable(f"the management API at {self._bases[0]} answers {status}", remedy="see its log")
        if status == _OK:
            with contextlib.suppress(msgspec.DecodeError):
                return msgspec.json.decode(body)
        raise NotEnabled(f"{self._bases[0]} answers, but not as a management API", remedy=_ENABLE)

    async def _answer(self, path: str, asked: Mapping[str, str]) -> tuple[int, bytes]:
        """Of the first host that listens; it is asked first from then on."""
        for base in tuple(self._bases):
            try:
                async with asyncio.timeout(self._deadline):
                    answer = await self._read(f"{base}/api/{path}", asked)
            except (httpx2.ConnectError, httpx2.InvalidURL) as error:
                if _is_distrust(error):
                    raise _distrusted(base) from None
                continue
            except (TimeoutError, httpx2.HTTPError) as error:
                raise _away(base, error) from None
            self._bases.remove(base)
            self._bases.insert(0, base)
            return answer
        raise NotEnabled(f"nothing answers at {self._address}", remedy=_ENABLE)

    async def _read(self, url: str, asked: Mapping[str, str]) -> tuple[int, bytes]:
        body = bytearray()
        async with self._client.stream("GET", url, params=dict(asked)) as response:
            async for part in response.aiter_bytes():
                body += part
                if len(body) > LARGEST_ANSWER:
                    raise Unreachable(f"the answer of {url} is larger than {LARGEST_ANSWER // 2**20} MiB")
            return response.status_code, bytes(body)


def _away(base: str, error: Exception) -> Unreachable:
    kind = "does not answer in time" if isinstance(error, TimeoutError | httpx2.TimeoutException) else "broke off"
    return Unreachable(f"the management API at {base} {kind}", remedy="check the broker's load and its log")


def _is_distrust(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _distrusted(base: str) -> Unreachable:
    return Unreachable(
        f"no trusted TLS connection to {base}",
        remedy="check its certificate, and broker.rabbitmq.tls_ca",
    )


def _denied(address: ManagementAddress, body: bytes) -> NotAllowed:
    why: Any = None
    with contextlib.suppress(msgspec.DecodeError):
        why = _table(msgspec.json.decode(body)).get("reason")
    told = f": {why}" if isinstance(why, str) and len(why) <= _LONGEST_REASON else ""
    return NotAllowed(
        f"the management API refuses user {address.user!r}{told}",
        remedy="check the password, and give the user the tag `monitoring` (rabbitmqctl set_user_tags)",
    )


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _each(values: Any, parsed: Callable[[Mapping[str, Any]], T]) -> list[T]:
    listed = values if isinstance(values, list) else []
    return [parsed(value) for value in listed if isinstance(value, dict)]
