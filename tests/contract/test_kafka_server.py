"""The tests' own Kafka does what the tests that need it take for granted."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from support import kafka_server
from support.patience import until_now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.kafka_server import KafkaServer, PrivateKafka

TESTS = Path(__file__).parents[1]
PATIENCE = 60.0
AT_ONCE = {"topic.metadata.propagation.max.ms": 0}  # a topic that is unknown now is unknown
OWNER = "from support.kafka_server import own; owned = own(); print(owned.pid, owned._folder, flush=True); input()"
USER = "import sys; from support.shared_kafka import of; print(of(sys.argv[1]).address, flush=True); input()"
AWKWARD: list[tuple[str, bytes | None]] = [
    ("again", b"1"),
    ("binary", b"\x00\xff\xfe"),
    ("again", b"2"),
    ("none", None),
    ("empty", b""),
    ("größe", "schön".encode()),
    ("again", b"1"),
]


def put(server: KafkaServer, topic: str, *records: dict[str, Any]) -> list[KafkaError]:
    """What the broker refuses; all else it has acknowledged when this returns."""
    producer, told = Producer({"bootstrap.servers": server.address, **AT_ONCE}), list[KafkaError | None]()
    for record in records:
        producer.produce(topic, on_delivery=lambda error, _: told.append(error), **record)
    assert producer.flush(PATIENCE) == 0
    assert len(told) == len(records)
    return [error for error in told if error is not None]


def taken(server: KafkaServer, topic: str, count: int) -> list[Message]:
    told = {"bootstrap.servers": server.address, "group.id": uuid4().hex, "auto.offset.reset": "earliest"}
    consumer, found = Consumer(told), list[Message]()
    consumer.subscribe([topic])
    with contextlib.closing(consumer):
        deadline = time.monotonic() + PATIENCE
        while len(found) < count and time.monotonic() < deadline:
            found += consumer.consume(count - len(found), timeout=1)
    return found


def test_a_record_that_is_produced_is_consumed(kafka: KafkaServer) -> None:
    topic = kafka.new_topic()
    assert put(kafka, topic, {"key": b"k", "value": b"v"}) == []
    [message] = taken(kafka, topic, 1)
    assert (message.error(), message.key(), message.value()) == (None, b"k", b"v")


def test_a_topic_has_the_partitions_asked_for_and_is_gone_when_dropped(kafka: KafkaServer) -> None:
    topic, other = kafka.new_topic(partitions=3), kafka.new_topic()
    told = kafka.admin().list_topics(topic, timeout=PATIENCE).topics[topic]
    assert sorted(told.partitions) == [0, 1, 2]
    kafka.drop_topic(topic)
    until_now(lambda: topic not in kafka.topics())
    assert other in kafka.topics()


def test_no_topic_is_made_by_writing_to_it(kafka: KafkaServer) -> None:
    topic = kafka.topic_name()
    [refused] = put(kafka, topic, {"value": b"v"})
    assert refused.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert topic not in kafka.topics()


def test_headers_come_back_in_their_order_with_repeats_bytes_and_null(kafka: KafkaServer) -> None:
    topic = kafka.new_topic()
    assert put(kafka, topic, {"value": b"v", "headers": AWKWARD}) == []
    [message] = taken(kafka, topic, 1)
    assert message.headers() == AWKWARD


def test_the_java_client_tells_every_byte_of_a_record(kafka: KafkaServer) -> None:
    topic = kafka.new_topic(partitions=2)
    whole = {"key": b"\x00k", "value": b"\xff", "headers": AWKWARD, "timestamp": 1_700_000_000_123}
    bare = {"partition": 1, "key": None, "value": None}
    assert put(kafka, topic, {"partition": 1, **whole}, bare, {"partition": 0, "key": b"", "value": b""}) == []
    in_order = sorted(kafka.java_read(topic, 3), key=lambda record: (record.partition, record.offset))
    empty, full, null = in_order
    assert (empty.key, empty.value, empty.headers) == (b"", b"", [])
    assert (full.partition, full.offset, full.timestamp_type) == (1, 0, "CreateTime")
    assert (full.key, full.value, full.headers, full.timestamp) == (b"\x00k", b"\xff", AWKWARD, 1_700_000_000_123)
    assert (null.partition, null.offset, null.key, null.value) == (1, 1, None, None)


def test_an_acknowledged_record_outlives_a_kill_of_the_broker(own_kafka: PrivateKafka) -> None:
    topic, address, before = own_kafka.new_topic(), own_kafka.address, own_kafka.pid
    assert put(own_kafka, topic, {"value": b"keep me"}) == []
    own_kafka.kill()
    assert not Path(f"/proc/{before}").exists()
    own_kafka.start()
    assert own_kafka.address == address
    assert own_kafka.pid != before
    assert [message.value() for message in taken(own_kafka, topic, 1)] == [b"keep me"]


def test_an_acknowledged_record_outlives_an_orderly_restart(own_kafka: PrivateKafka) -> None:
    topic = own_kafka.new_topic()
    assert put(own_kafka, topic, {"value": b"keep me"}) == []
    own_kafka.restart()
    assert [message.value() for message in taken(own_kafka, topic, 1)] == [b"keep me"]


def test_the_next_test_finds_a_broker_that_runs_and_has_no_topics(own_kafka: PrivateKafka) -> None:
    own_kafka.new_topic()
    own_kafka.kill()
    own_kafka.renew()
    assert own_kafka.topics() == []


def test_a_broker_takes_further_settings_and_leaves_nothing_behind() -> None:
    server = kafka_server.own({"message.max.bytes": "2000"})
    try:
        [refused] = put(server, server.new_topic(), {"value": b"v" * 3000})
        assert refused.code() == KafkaError.MSG_SIZE_TOO_LARGE
        left = [Path(f"/proc/{server.pid}"), server._folder]
    finally:
        server.clean_up()
    assert [path for path in left if path.exists()] == []


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that a test starts, ended with it."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(started: list[subprocess.Popen[str]], *command: str) -> None:
    """Python with this; its standard input stays open."""
    python = [sys.executable, "-c", *command]
    started.append(subprocess.Popen(python, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))


def first_line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def broker_at(address: str) -> int:
    """The process that was started for this address."""
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # of those that end while we look
            words = (place / "cmdline").read_bytes().split(b"\0")
            settings = [Path(word.decode()) for word in words if word.endswith(b"/server.properties")]
            if b"kafka.Kafka" in words and f"://{address}," in settings[0].read_text():
                return int(place.name)
    raise LookupError(address)


def is_gone(pid: int) -> bool:
    """Nobody may be left to take note of its death."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


def need_own_programs() -> None:
    if os.environ.get(kafka_server.EXISTING):
        pytest.skip(f"{kafka_server.EXISTING} names a broker that tests do not start")
    kafka_server._require_programs()


def test_a_broker_dies_with_its_owner(started: list[subprocess.Popen[str]]) -> None:
    need_own_programs()
    start(started, OWNER)
    broker, folder = first_line_of(started[0]).split()
    assert not is_gone(int(broker))
    started[0].kill()
    until_now(lambda: is_gone(int(broker)))
    shutil.rmtree(folder)


def test_processes_of_one_run_share_a_broker_until_the_last_is_gone(
    started: list[subprocess.Popen[str]],
) -> None:
    need_own_programs()
    run = uuid4().hex
    for _ in range(3):
        start(started, USER, run)
    [address] = {first_line_of(user) for user in started}
    broker = broker_at(address)
    started[0].kill()
    started[0].wait()
    started[1].communicate("")
    start(started, USER, run)
    assert first_line_of(started[3]) == address
    started[2].kill()
    started[2].wait()
    assert not is_gone(broker)
    started[3].kill()
    until_now(lambda: is_gone(broker))


def test_a_run_that_begins_anew_has_a_broker_again(started: list[subprocess.Popen[str]]) -> None:
    need_own_programs()
    run = uuid4().hex
    for number in range(2):
        start(started, USER, run)
        broker = broker_at(first_line_of(started[number]))
        started[number].kill()
        started[number].wait()
    until_now(lambda: is_gone(broker))
