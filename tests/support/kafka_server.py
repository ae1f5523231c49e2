"""A Kafka of the tests' own: one broker in a temporary folder, on free loopback ports, gone with the tests.

It is its own controller (KRaft) and makes no topic unasked. All of pytest's processes share one (`shared_kafka`),
since topics keep their tests apart; a test that stops or kills a broker has one of its own.

`REDRIVE_TEST_KAFKA=host:port` names an existing broker instead; the tests that stop the broker are then skipped.

`python -m support.kafka_server` fetches what is needed, which is what `make kafka` does.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewTopic

from support import kafka_programs
from support.certificates import make_certificates
from support.fetched_jars import NotHere
from support.in_memory import folder_in_memory
from support.java_reading import JavaRecord, java_read
from support.loopback_ports import free_ports
from support.patience import until_now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EXISTING = "REDRIVE_TEST_KAFKA"
_PATIENCE = 120.0
_LOOK_EVERY = 0.02
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "200",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.segment.delete.delay.ms": "1000",
}
# A killed broker is still registered, and the next one is let in when the session of the dead one is over.
_SHORT_SESSION = ("--override", "broker.session.timeout.ms=1000")

_LOGIN = "org.apache.kafka.common.security"
_FEWEST_ROUNDS = 4096  # of SCRAM, that Kafka allows

_silent = logging.Logger("of clients whose broker is killed")  # noqa: LOG001  so that no handler of others sees it
_silent.addHandler(logging.NullHandler())
_starter = ThreadPoolExecutor(1)


class KafkaServer:
    """A broker that the tests may ask for topics, whoever started it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._made: list[str] = []

    @property
    def url(self) -> str:
        return f"kafka://{self.address}"

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address}, logger=_silent)

    def topic_name(self) -> str:
        """A name that nobody else has; a topic with it in its own name is dropped at the end."""
        name = f"redrive-test-{uuid4().hex[:12]}"
        self._made.append(name)
        return name

    def new_topic(self, *, partitions: int = 1, settings: Mapping[str, str] | None = None) -> str:
        """The name of a new, empty topic."""
        name = self.topic_name()
        self.make_topic(name, partitions=partitions, settings=settings)
        return name

    def make_topic(self, name: str, *, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
        asked = NewTopic(name, partitions, 1, config=dict(settings or {}))
        admin = self.admin()  # which must be there until it has the answer
        admin.create_topics([asked], operation_timeout=_PATIENCE)[name].result(_PATIENCE)
        until_now(lambda: _is_led(admin, name), within=_PATIENCE)

    def drop_topic(self, name: str) -> None:
        self._drop([name])

    def topics(self) -> list[str]:
        """Those of the broker's own are not among them."""
        return [name for name in self.admin().list_topics(timeout=_PATIENCE).topics if not name.startswith("__")]

    def java_read(self, topic: str, count: int) -> list[JavaRecord]:
        """That many records of the topic from its beginning, as the plain Java client sees them."""
        return java_read(self.address, topic, count)

    def clean_up(self) -> None:
        if self._made:
            self._drop([topic for topic in self.topics() if any(name in topic for name in self._made)])
        self._made.clear()

    def _drop(self, names: list[str]) -> None:
        admin = self.admin()
        if names:
            for dropped in admin.delete_topics(names, operation_timeout=_PATIENCE).values():
                dropped.result(_PATIENCE)


def _is_led(admin: AdminClient, topic: str) -> bool:
    """Whether records can be written to it."""
    told = admin.list_topics(topic, timeout=_PATIENCE).topics[topic]
    return bool(told.partitions) and all(each.leader >= 0 for each in told.partitions.values())


class PrivateKafka(KafkaServer):
    """A broker of our own, which a test may stop, start and kill. It keeps its ports and its data.

    `settings` are further lines of server.properties, `options` of Java. With `users`, and their passwords, it
    listens at `secure_address` too, with TLS and SASL (SCRAM-SHA-512 and PLAIN), where nobody else is let in.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        options: Sequence[str] | None = None,
        users: Mapping[str, str] | None = None,
    ) -> None:
        _require_programs()
        self._options = (
            [f"-XX:SharedArchiveFile={kafka_programs.KAFKA.archive()}"] if options is None else [*options]
        )
        self._folder = Path(tempfile.mkdtemp(prefix="redrive-kafka-", dir=folder_in_memory()))
        self._port, self._controller, secure = free_ports(3)
        self.secure_address = f"127.0.0.1:{secure}"
        super().__init__(f"127.0.0.1:{self._port}")
        self._broker: subprocess.Popen[bytes] | None = None
        self._was_killed = False
        try:
            secured = {} if users is None else self._secured(users)
            self._make({**secured, **(settings or {})})
            self.start()
            if users:
                self._let_in(users)
        except BaseException:
            self.clean_up()
            raise

    @property
    def authority(self) -> Path:
        """Who trusts it trusts the certificate at `secure_address`."""
        return self._folder / "certificates" / "authority.pem"

    @property
    def log(self) -> str:
        """What it says of itself, and what Java says of it."""
        files = sorted(self._folder.glob("*.log"))
        return "\n".join(file.read_text(errors="replace") for file in files)

    @property
    def pid(self) -> int | None:
        """Of the broker's process, while it runs."""
        return None if self._broker is None else self._broker.pid

    def start(self) -> None:
        """Does nothing if it runs; comes back when the broker takes requests."""
        if self._broker is None or self._broker.poll() is not None:
            # From a thread that lives as long as the tests: Linux ends the child with the thread that started it.
            self._broker = _starter.submit(self._spawned).result()
        deadline = time.monotonic() + _PATIENCE
        while not self._is_ready():
            assert self._broker.poll() is None, f"Kafka ended while it started:\n{self.log}"
            assert time.monotonic() < deadline, f"Kafka does not start:\n{self.log}"
            time.sleep(_LOOK_EVERY)
        self._was_killed = False

    def stop(self) -> None:
        """The orderly way: partitions are given up, logs written and closed."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As a power cut of the broker's process: no shutdown, and recovery from the logs at the next start."""
        self._end(signal.SIGKILL)
        self._was_killed = True

    def restart(self) -> None:
        self.stop()
        self.start()

    def renew(self) -> None:
        """Runs as a new broker does: no topic of an earlier test is left."""
        self.start()
        self._made.clear()
        self._drop(self.topics())

    def clean_up(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _listeners(self) -> str:
        return f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self._controller}"

    def _make(self, settings: Mapping[str, str]) -> None:
        kafka_programs.copy_of_empty_disk(self._folder / "data")
        ours = {
            "listeners": self._listeners,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "log.dirs": str(self._folder / "data"),
        }
        lines = [f"{name}={value}" for name, value in {**_SETTINGS, **ours, **settings}.items()]
        (self._folder / "server.properties").write_text("\n".join([*lines, ""]))

    def _secured(self, users: Mapping[str, str]) -> dict[str, str]:
        made = make_certificates(self._folder / "certificates")
        shown = self._folder / "shown.pem"
        shown.write_text(made.key.read_text() + made.certificate.read_text())
        plain = " ".join(f'user_{name}="{password}"' for name, password in users.items())
        return {
            "listeners": f"{self._listeners},SASL_SSL://{self.secure_address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required {plain};",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(shown),
        }

    def _let_in(self, users: Mapping[str, str]) -> None:
        """SCRAM's users are in the broker's own records, and not in its settings."""
        how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _FEWEST_ROUNDS)
        asked: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(name, how, password.encode()) for name, password in users.items()
        ]
        admin = self.admin()  # as above
        for done in admin.alter_user_scram_credentials(asked).values():
            done.result(_PATIENCE)

    def _spawned(self) -> subprocess.Popen[bytes]:
        command = kafka_programs.java(self._folder / "broker.log", self._options)
        session = _SHORT_SESSION if self._was_killed else ()
        with (self._folder / "output.log").open("ab") as output:
            return subprocess.Popen(
                [*command, "kafka.Kafka", str(self._folder / "server.properties"), *session],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C in the terminal is for pytest, which then stops us
                preexec_fn=_die_with_the_tests,  # noqa: PLW1509  a killed pytest runs no finalizer
            )

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError, KafkaException):
            socket.create_connection(("127.0.0.1", self._port), timeout=_PATIENCE).close()
            return self._takes_groups()
        return False

    def _takes_groups(self) -> bool:
        """A consumer that comes before would try again after its heartbeat, which is seconds later."""
        admin = self.admin()
        try:
            admin.describe_consumer_groups(["nobody"], request_timeout=1)["nobody"].result(_PATIENCE)
        except KafkaException as answer:
            return bool(answer.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND)
        return True

    def _end(self, how: signal.Signals) -> None:
        if self._broker is not None:
            self._broker.send_signal(how)
            self._broker.wait(timeout=_PATIENCE)
            self._broker = None


def available() -> KafkaServer:
    """The broker for this session's tests; skips (fails with CI=true) where there is none."""
    existing = os.environ.get(EXISTING)
    if existing:
        return KafkaServer(existing)
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return PrivateKafka()
    _require_programs()
    from support import shared_kafka  # noqa: PLC0415  which is made of what is above

    return shared_kafka.of(run)


def own(settings: Mapping[str, str] | None = None, *, users: Mapping[str, str] | None = None) -> PrivateKafka:
    """A second broker, for tests that stop it or set it up differently."""
    if os.environ.get(EXISTING):
        pytest.skip(f"{EXISTING} names a broker that tests do not stop")
    return PrivateKafka(settings, users=users)


def _require_programs() -> None:
    try:
        kafka_programs.KAFKA.require()
    except NotHere as why:
        missing = f"{why}, or set {EXISTING}=host:port"
        if os.environ.get("CI") == "true":
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)


def _die_with_the_tests() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _keep_classes() -> None:
    """Those of a broker that ran once, so that all others start faster."""
    archive = kafka_programs.KAFKA.archive()
    if archive.exists():
        return
    half = archive.with_name(f"half-made-{uuid4().hex}.jsa")
    server = PrivateKafka(options=[f"-XX:ArchiveClassesAtExit={half}"])
    try:
        server.new_topic()
        server.stop()
        half.replace(archive)
    finally:
        server.clean_up()
        half.unlink(missing_ok=True)


def main() -> None:
    try:
        kafka_programs.make()
        _keep_classes()
    except NotHere as why:
        print(f"no Kafka for the tests: {why}, or set {EXISTING}=host:port; its tests will be skipped")  # noqa: T201  this is a command


if __name__ == "__main__":
    main()
