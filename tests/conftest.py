"""No test depends on how fast the machine is: hypothesis would otherwise measure every example.

PostgreSQL and RabbitMQ are started once each, by the first test that asks for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from support import postgres_server, rabbitmq_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.postgres_server import PostgresServer, PrivatePostgres
    from support.rabbitmq_server import PrivateRabbit, RabbitServer

settings.register_profile("unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The session's server: `postgres.new_database()` gives the URL of an empty database."""
    server = postgres_server.available()
    yield server
    server.clean_up()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """A new, empty database for this test alone."""
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def postgres_store_url(postgres: PostgresServer) -> str:
    """A database with the tables of a store and nothing in them; cheaper than a new one."""
    return postgres.emptied_store()


@pytest.fixture
def own_postgres() -> Iterator[PrivatePostgres]:
    """A server for this test alone, which it may stop, start and kill."""
    server = postgres_server.own()
    yield server
    server.clean_up()


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitServer]:
    """The session's broker: `rabbitmq.new_vhost()` gives the URL of an empty virtual host."""
    server = rabbitmq_server.available()
    yield server
    server.clean_up()


@pytest.fixture
def rabbitmq_url(rabbitmq: RabbitServer) -> Iterator[str]:
    """A new, empty virtual host for this test alone."""
    url = rabbitmq.new_vhost()
    yield url
    rabbitmq.drop_vhost(url)


@pytest.fixture(scope="session")
def second_rabbitmq() -> Iterator[PrivateRabbit]:
    """Not for tests: they ask for `own_rabbitmq`, which is this node as good as new."""
    server = rabbitmq_server.own(tls=True)
    yield server
    server.clean_up()


@pytest.fixture
def own_rabbitmq(second_rabbitmq: PrivateRabbit) -> PrivateRabbit:
    """A node for this test alone, which it may stop, start, kill and set with `ctl`. It listens for TLS too."""
    second_rabbitmq.renew()
    return second_rabbitmq
