from __future__ import annotations

import os
import random
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.lab.broker import Broker
from chaos.lab.embedded import LEASE, Embedded
from chaos.lab.kafka import Kafka
from chaos.lab.premises import EFFECTS, ORDERS, Premises, Sink
from chaos.lab.rabbit import QUEUE_TYPES, QueueType, Rabbit
from chaos.lab.servicebus import ServiceBus, Shape
from chaos.lab.sqs import Sqs
from chaos.lab.supervisor import Experiment, Nursery
from support.elasticmq_server import ElasticMq
from support.kafka_server import KafkaServer
from support.postgres_server import PostgresServer
from support.rabbitmq_server import RabbitServer
from support.servicebus.beside import EmulatorBeside

SEED = int(os.environ.get("REDRIVE_CHAOS_SEED") or random.SystemRandom().getrandbits(32))


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


@pytest.fixture(scope="session")
def second_nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


@pytest.fixture(scope="session")
def third_nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


@pytest.fixture(scope="session")
def fourth_nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


@pytest.fixture
def experiment(
    tmp_path: Path, nursery: Nursery, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Experiment]]:
    """A new experiment. The same `REDRIVE_CHAOS_SEED` throws the same dice; the files stay if the test fails.
    `store` is "sqlite", "postgresql" or the URL of one; without a broker it is the embedded one, with that lease.
    """
    made: list[Experiment] = []

    def make(
        *,
        sink: Sink = "store",
        lease: float = LEASE,
        store: str = "sqlite",
        broker: Broker | None = None,
    ) -> Experiment:
        url = None if store == "sqlite" else store
        if store == "postgresql":
            server: PostgresServer = request.getfixturevalue("postgres")
            url = server.emptied_store()
        broker = broker or Embedded(str(tmp_path / "broker.db"), lease)
        made.append(Experiment(Premises(tmp_path, broker, sink=sink, store_url=url), nursery, SEED))
        return made[-1]

    yield make
    for each in made:
        each.clean_up()


@pytest.fixture(params=QUEUE_TYPES)
def rabbit(request: pytest.FixtureRequest, rabbitmq: RabbitServer, rabbitmq_url: str) -> Rabbit:
    """An empty virtual host, where all queues are of one type."""
    queue_type: QueueType = request.param
    return Rabbit(rabbitmq_url, rabbitmq.management_url, queue_type)


@pytest.fixture
def topics(kafka: KafkaServer) -> Kafka:
    """Names of topics, and of a consumer group, that nobody else has, on the broker that all share."""
    return Kafka(kafka.address, kafka.topic_name())


@pytest.fixture
def sqs_queues(elasticmq: ElasticMq) -> Sqs:
    """Names of queues that nobody else has, on the server that all tests of the session share."""
    return Sqs(elasticmq.endpoint, elasticmq.queue_name())


@pytest.fixture
def namespace(service_bus: EmulatorBeside, request: pytest.FixtureRequest) -> ServiceBus:
    """An emulator with the queues that experiments use, in the shape that the test names, or plain ones."""
    told = tomllib.loads(service_bus.settings)["broker"]
    own = told["servicebus"]
    empty = ServiceBus(told["url"], own["administration"], own["tls_ca"], beside=service_bus)
    shape: Shape = getattr(request, "param", "queues")
    return empty.shaped(shape, ORDERS, EFFECTS)
