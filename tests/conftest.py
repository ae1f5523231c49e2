"""No test depends on how fast the machine is: hypothesis would otherwise measure every example.

PostgreSQL, RabbitMQ and ElasticMQ are started once each, by the first test that asks for them, in each of pytest's
processes; Kafka once for all of them.
Nobody waits for a disk: the folders of the tests are in memory, those of failed tests stay.
"""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from support import compiled_once, elasticmq_server, kafka_server, postgres_server, rabbitmq_server
from support.in_memory import folder_in_memory
from support.sqs_account import CREDENTIALS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.certificates import Certificates
    from support.elasticmq_server import ElasticMq
    from support.kafka_server import KafkaServer, PrivateKafka
    from support.moto_server import MotoSqs
    from support.postgres_server import PostgresServer, PrivatePostgres
    from support.rabbitmq_server import PrivateRabbit, RabbitServer
    from support.servicebus.beside import EmulatorBeside

settings.register_profile("unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# Whoever starts the tests in the background of a script has Ctrl-C ignored, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

compiled_once.share()

if (in_memory := folder_in_memory()) is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", in_memory)  # pytest's own name for where `tmp_path` is


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` means: more than the processors, since many tests wait for a server, and never very many,
    since each process has servers of its own. One process, where all would share a server that is named to us.
    """
    if os.environ.get(postgres_server.EXISTING) or os.environ.get(rabbitmq_server.EXISTING):
        return 0
    return min(2 * (os.cpu_count() or 1), 8)


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder that is not in memory, for what looks at where it is: `redrive doctor` only warns of it."""
    with tempfile.TemporaryDirectory(prefix="redrive-", dir="/var/tmp") as folder:
        yield Path(folder)


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


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    """The broker of all sessions of this run: `kafka.new_topic()` gives the name of an empty topic."""
    server = kafka_server.available()
    yield server
    server.clean_up()


@pytest.fixture(scope="session")
def second_kafka() -> Iterator[PrivateKafka]:
    """Not for tests: they ask for `own_kafka`, which is this broker without topics."""
    server = kafka_server.own()
    yield server
    server.clean_up()


@pytest.fixture
def own_kafka(second_kafka: PrivateKafka) -> PrivateKafka:
    """A broker for this test alone, which it may stop, start and kill."""
    second_kafka.renew()
    return second_kafka


@pytest.fixture(scope="session")
def sqs_endpoint() -> Iterator[str]:
    """Not for tests: they ask for `sqs`."""
    from support import moto_server  # noqa: PLC0415  it takes seconds to import

    with moto_server.serving() as endpoint:
        yield endpoint


@pytest.fixture
def new_sqs_endpoint(sqs_endpoint: str) -> str:
    """SQS as moto plays it, without queues, in the time of everybody."""
    from support import moto_server  # noqa: PLC0415  as above

    moto_server.forget_everything()
    return sqs_endpoint


@pytest.fixture
def sqs(sqs_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> MotoSqs:
    """SQS as moto plays it, with a clock that the test moves."""
    from redrive.testing import ManualClock  # noqa: PLC0415  as above
    from support import moto_server  # noqa: PLC0415  as above

    clock = ManualClock()
    moto_server.in_the_hands_of(clock, monkeypatch)
    return moto_server.MotoSqs(sqs_endpoint, clock)


@pytest.fixture(scope="session")
def elasticmq_server_of_session() -> Iterator[ElasticMq]:
    """Not for tests: they ask for `elasticmq`."""
    server = elasticmq_server.available()
    yield server
    server.clean_up()


@pytest.fixture
def elasticmq(elasticmq_server_of_session: ElasticMq, monkeypatch: pytest.MonkeyPatch) -> ElasticMq:
    """SQS as ElasticMQ plays it, for all tests of the session: `elasticmq.queue_name()` is nobody else's."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return elasticmq_server_of_session


@pytest.fixture(scope="session")
def loopback_certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    from support.certificates import make_certificates  # noqa: PLC0415  only those who use it

    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def service_bus(loopback_certificates: Certificates) -> Iterator[EmulatorBeside]:
    """An emulator of Service Bus for this test alone, without entities, beside it: for commands."""
    from support.servicebus.beside import emulated_beside  # noqa: PLC0415  as above

    with emulated_beside(loopback_certificates) as emulator:
        yield emulator
