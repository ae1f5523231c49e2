"""What the settings say about RabbitMQ, in the words of its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redrive.transports.rabbitmq.topology_choice import Choice, choose
from redrive.transports.rabbitmq.topology_loop import Loop

if TYPE_CHECKING:
    from redrive.settings import Settings
    from redrive.transports.rabbitmq.topology import Topology

_OPTIONS = (
    "heartbeat",
    "connect_timeout",
    "publish_timeout",
    "consumer_timeout",
    "declare",
    "persistent",
    "max_message_size",
    "tls_ca",
    "tls_certificate",
    "tls_key",
)


def topology(settings: Settings, *, app: str = "") -> Topology:
    """`app`: the name that the app has in code, where it is known."""
    broker, rabbit = settings.broker, settings.broker.rabbitmq
    loops = {name: Loop(own.loop.ttl, own.loop.cycles) for name, own in settings.queues.items()}
    return choose(
        Choice(
            topology=rabbit.topology,
            app=settings.app.name or app,
            retry=broker.retry_queue,
            dead=broker.dead_letter_queue,
            queue_type=rabbit.queue_type,
            max_priority=rabbit.max_priority,
            exchange=rabbit.exchange,
            dead_letter_exchange=rabbit.dead_letter_exchange,
            dead_letter_routing_key=rabbit.dead_letter_routing_key,
            automatic_dlx=rabbit.automatic_dlx,
            dead_letter_ttl=rabbit.dead_letter_ttl,
            loops=loops,
        )
    )


def transport_options(settings: Settings, *, app: str = "") -> dict[str, Any]:
    rabbit = settings.broker.rabbitmq
    chosen = topology(settings, app=app)
    management = None if rabbit.management_url is None else rabbit.management_url.reveal()
    told = {name: getattr(rabbit, name) for name in _OPTIONS}
    return {**told, "names": chosen.names, "topology": chosen, "management_url": management}
