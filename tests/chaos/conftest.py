from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.lab.kafka import Kafka
from chaos.lab.premises import LEASE, Premises, Sink
from chaos.lab.rabbit import QUEUE_TYPES, QueueType, Rabbit
from chaos.lab.supervisor import Experiment, Nursery
from support.kafka_server import KafkaServer
from support.postgres_server import PostgresServer
from support.rabbitmq_server import RabbitServer

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
    `store` is "sqlite", "postgresql" or the URL of one; without `rabbit` and `kafka` the broker is the embedded
    one.
    """
    made: list[Experiment] = []

    def make(
        *,
        sink: Sink = "store",
        lease: float = LEASE,
        store: str = "sqlite",
        rabbit: Rabbit | None = None,
        kafka: Kafka | None = None,
    ) -> Experiment:
        url = None if store == "sqlite" else store
        if store == "postgresql":
            server: PostgresServer = request.getfixturevalue("postgres")
            url = server.emptied_store()
        premises = Premises(tmp_path, sink=sink, lease=lease, store_url=url, rabbit=rabbit, kafka=kafka)
        made.append(Experiment(premises, nursery, SEED))
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
