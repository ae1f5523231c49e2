"""The entities of a namespace: looked at and made over HTTPS, by whoever may manage them.

Its figures lag behind, and it is slow: nothing that moves a message asks it.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.servicebus.management import CorrelationRuleFilter, FalseRuleFilter, TrueRuleFilter

from redrive import servicebus_paths as paths
from redrive.errors import PublishRefused, Unreachable
from redrive.message import cut
from redrive.transports.servicebus.client_errors import NoIdentity
from redrive.transports.servicebus.counts import Count
from redrive.transports.servicebus.entity_facts import EntityFacts, Kind, QueueSpec, SubscriptionSpec, seconds
from redrive.transports.servicebus.topics import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from azure.servicebus.aio.management import ServiceBusAdministrationClient
    from azure.servicebus.management import RuleProperties

    from redrive.servicebus_paths import EntityPath
    from redrive.transports.servicebus.access import Access
    from redrive.transports.servicebus.entity_facts import Spec

_DENIED = frozenset({401, 403})
_RIGHTS = "a policy needs Manage, an identity the role Azure Service Bus Data Owner"
_DETAIL = 300
_CORRELATED = (
    "correlation_id",
    "message_id",
    "to",
    "reply_to",
    "label",
    "session_id",
    "reply_to_session_id",
    "content_type",
)
_RESERVED = "$"
"""In no name of an entity; Azure answers a request for one with an error of its own kind."""


class Denied(Unreachable):
    """It answers, and not to this user."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Service Bus does not tell this user about {what!r}", remedy=_RIGHTS)


class Administration:
    """Connects on first use. Every method raises Unreachable if it gets no answer, or none for this user."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._opened: ServiceBusAdministrationClient | None = None

    async def facts(self, path: str) -> EntityFacts | None:
        """Of the queue, topic or subscription that has this path, or this subqueue. None: there is none."""
        where = paths.parse(path)
        if _RESERVED in where.parent:
            return None
        with _answering(where.parent):
            try:
                return await self._facts(where)
            except ResourceNotFoundError:
                return None

    async def queues(self) -> list[EntityFacts]:
        """All queues of the namespace; subscriptions are asked for by name."""
        with _answering("the namespace"):
            counted = {each.name: each async for each in self._client().list_queues_runtime_properties()}
            told = [each async for each in self._client().list_queues()]
        return [_of(each.name, Kind.QUEUE, each, counted[each.name]) for each in told if each.name in counted]

    async def of(self, entity: str) -> Count | None:
        """Of a subqueue: what lies there is active."""
        where = paths.parse(entity)
        if _RESERVED in where.parent:  # such as what dead letters of a subqueue would be called
            return None
        with _answering(entity):
            try:
                told = await self._counted(where)
            except ResourceNotFoundError:
                return None
        if where.subqueue:
            transfers = where.subqueue == paths.TRANSFER_DEAD_LETTERS
            return Count(_transferred(told) if transfers else told.dead_letter_message_count or 0, 0, 0)
        scheduled = getattr(told, "scheduled_message_count", 0)  # of a subscription they wait in its topic
        return Count(told.active_message_count or 0, scheduled or 0, told.dead_letter_message_count or 0)

    async def rules(self, topic: str) -> dict[str, list[Rule]] | None:
        """Of each of its subscriptions. None: there is no such topic, or this user may not ask."""
        client = self._client()
        try:
            with _answering(topic):
                names = [each.name async for each in client.list_subscriptions(topic)]
                return {name: [_rule(each) async for each in client.list_rules(topic, name)] for name in names}
        except (Denied, ResourceNotFoundError):
            return None

    async def create(self, spec: Spec) -> None:
        """What is there already is left as it is. PublishRefused: Service Bus does not want it so."""
        where = paths.parse(spec.name)
        with _answering(spec.name), suppress(ResourceExistsError):
            try:
                await self._create(spec, where)
            except (ResourceExistsError, ClientAuthenticationError):
                raise
            except HttpResponseError as error:
                raise PublishRefused(
                    f"Service Bus does not make {spec.name!r}: {_told(error)}", permanent=True
                ) from None

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            with suppress(AzureError, OSError):
                await opened.close()

    async def _create(self, spec: Spec, where: EntityPath) -> None:
        if isinstance(spec, QueueSpec):
            await self._client().create_queue(where.name, **spec.options)
        elif isinstance(spec, SubscriptionSpec):
            await self._client().create_subscription(where.name, where.subscription, **spec.options)
        else:
            await self._client().create_topic(where.name)

    async def _facts(self, where: EntityPath) -> EntityFacts:
        client = self._client()
        if where.subscription:
            told: Any = await client.get_subscription(where.name, where.subscription)
            return _of(where.parent, Kind.SUBSCRIPTION, told, await self._counted(where))
        try:
            told = await client.get_queue(where.name)
        except AttributeError:  # the SDK's way to say that it is something else of that name
            return EntityFacts(path=where.name, kind=Kind.TOPIC)
        return _of(where.parent, Kind.QUEUE, told, await self._counted(where))

    async def _counted(self, where: EntityPath) -> Any:
        if where.subscription:
            return await self._client().get_subscription_runtime_properties(where.name, where.subscription)
        return await self._client().get_queue_runtime_properties(where.name)

    def _client(self) -> ServiceBusAdministrationClient:
        if self._opened is None:
            self._opened = self._access.entities()
        return self._opened


@contextmanager
def _answering(what: str) -> Iterator[None]:
    try:
        yield
    except ClientAuthenticationError as error:
        if error.response is None:  # nobody was asked
            raise NoIdentity from error
        raise Denied(what) from None
    except HttpResponseError as error:
        if error.status_code in _DENIED:
            raise Denied(what) from None
        raise Unreachable(f"the administration of Service Bus did not answer: {_told(error)}") from error
    except AzureError as error:
        raise Unreachable(
            f"the administration of Service Bus cannot be reached: {type(error).__name__}",
            remedy="it is HTTPS on port 443 of the namespace, or where broker.servicebus.administration says",
        ) from error


def _rule(told: RuleProperties) -> Rule:
    wanted: Any = told.filter
    if isinstance(wanted, TrueRuleFilter | FalseRuleFilter):  # to the SDK they are kinds of SQL
        return Rule(sql="1=1" if isinstance(wanted, TrueRuleFilter) else "1=0")
    if not isinstance(wanted, CorrelationRuleFilter):
        return Rule(sql=wanted.sql_expression)
    return Rule(
        properties={str(name): value for name, value in (wanted.properties or {}).items()},
        more=any(getattr(wanted, name) is not None for name in _CORRELATED),
    )


def _told(error: HttpResponseError) -> str:
    return f"{error.status_code}, {cut(' '.join(str(error.message).split()), _DETAIL)}"


def _transferred(told: Any) -> int:
    return told.transfer_dead_letter_message_count or 0


def _of(path: str, kind: Kind, told: Any, counted: Any) -> EntityFacts:
    detects = bool(getattr(told, "requires_duplicate_detection", False))  # of a subscription its topic does
    return EntityFacts(
        path=path,
        kind=kind,
        lock=seconds(told.lock_duration) or 0.0,
        most_deliveries=told.max_delivery_count or 0,
        sessions=bool(told.requires_session),
        lives=seconds(told.default_message_time_to_live),
        keeps_expired=bool(told.dead_lettering_on_message_expiration),
        keeps_unfiltered=bool(getattr(told, "dead_lettering_on_filter_evaluation_exceptions", True)),
        forwards_to=_entity(told.forward_to),
        forwards_dead_to=_entity(told.forward_dead_lettered_messages_to),
        drops_duplicates=seconds(told.duplicate_detection_history_time_window) if detects else None,
        deleted_when_idle=seconds(told.auto_delete_on_idle),
        enabled=str(told.status or "Active") == "Active",
        active=counted.active_message_count or 0,
        scheduled=getattr(counted, "scheduled_message_count", 0) or 0,
        dead=counted.dead_letter_message_count or 0,
        transfer_dead=_transferred(counted),
    )


def _entity(target: str | None) -> str:
    """Azure tells it as a URL."""
    return (target or "").rstrip("/").rpartition("/")[2] if "://" in (target or "") else target or ""
