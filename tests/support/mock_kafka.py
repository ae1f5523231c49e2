"""A cluster of brokers inside this process that answers with the errors a test asks for: librdkafka's own mock
cluster, which is in the library that confluent-kafka brings along. It is a fake: it knows producing, fetching and
consumer groups, and nothing of what a disk or another program would do.

Topics are made by `topic`, since it makes none when it is asked as a broker is.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

PRODUCE, FETCH, OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT = 0, 1, 8, 9, 11, 12
BROKERS = 3
_PRODUCER = 0
_PATIENCE = 30.0
_TEXT = 512

_cluster, _text, _count = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
_broker, _api = ctypes.c_int32, ctypes.c_int16
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "conf_new": (ctypes.c_void_p, []),
    "conf_set": (ctypes.c_int, [ctypes.c_void_p, _text, _text, _text, _count]),
    "new": (ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p, _text, _count]),
    "destroy": (None, [ctypes.c_void_p]),
    "mock_cluster_new": (_cluster, [ctypes.c_void_p, ctypes.c_int]),
    "mock_cluster_destroy": (None, [_cluster]),
    "mock_cluster_bootstraps": (_text, [_cluster]),
    "mock_set_controller_id": (ctypes.c_int, [_cluster, _broker]),
    "mock_group_initial_rebalance_delay_ms": (None, [_cluster, ctypes.c_int32]),
    "mock_topic_create": (ctypes.c_int, [_cluster, _text, ctypes.c_int, ctypes.c_int]),
    "mock_partition_set_leader": (ctypes.c_int, [_cluster, _text, ctypes.c_int32, _broker]),
    "mock_coordinator_set": (ctypes.c_int, [_cluster, _text, _text, _broker]),
    "mock_push_request_errors_array": (None, [_cluster, _api, _count, ctypes.c_void_p]),
    "mock_set_apiversion": (ctypes.c_int, [_cluster, _api, _api, _api]),
    "mock_clear_request_errors": (None, [_cluster, _api]),
    "mock_broker_set_rtt": (ctypes.c_int, [_cluster, _broker, ctypes.c_int]),
    "mock_broker_set_down": (ctypes.c_int, [_cluster, _broker]),
    "mock_broker_set_up": (ctypes.c_int, [_cluster, _broker]),
    "mock_start_request_tracking": (None, [_cluster]),
    "mock_clear_requests": (None, [_cluster]),
    "mock_get_requests": (ctypes.POINTER(ctypes.c_void_p), [_cluster, ctypes.POINTER(_count)]),
    "mock_request_api_key": (_api, [ctypes.c_void_p]),
    "mock_request_destroy_array": (None, [ctypes.POINTER(ctypes.c_void_p), _count]),
}


class MockKafka:
    """Brokers 1 to 3, until it is closed."""

    def __init__(self) -> None:
        self._library = _library()
        said = ctypes.create_string_buffer(_TEXT)
        settings = self._call("conf_new")
        self._call(
            "conf_set", settings, b"log_level", b"0", said, _TEXT
        )  # it has no brokers of its own, and says so
        self._owner = self._call("new", _PRODUCER, settings, said, _TEXT)
        assert self._owner, said.value
        self._cluster = self._call("mock_cluster_new", self._owner, BROKERS)
        assert self._cluster, "no mock cluster"
        self.address: str = self._call("mock_cluster_bootstraps", self._cluster).decode()
        self._ask("set_controller_id", 1)  # or whoever asks for settings waits for one
        self._ask("group_initial_rebalance_delay_ms", 0)
        self._ask("start_request_tracking")

    def close(self) -> None:
        self._ask("cluster_destroy")
        self._call("destroy", self._owner)

    def topic(self, name: str, *, partitions: int = 1) -> None:
        assert self._ask("topic_create", name.encode(), partitions, BROKERS) == 0
        for partition in range(partitions):
            self.lead(name, partition, broker=1)

    def lead(self, topic: str, partition: int, *, broker: int) -> None:
        assert self._ask("partition_set_leader", topic.encode(), partition, broker) == 0

    def coordinate(self, group: str, *, broker: int) -> None:
        assert self._ask("coordinator_set", b"group", group.encode(), broker) == 0

    def answer(self, api: int, *codes: int) -> None:
        """The next requests of this kind get these errors, one each; 0 is none."""
        self._ask("push_request_errors_array", api, len(codes), (ctypes.c_int * len(codes))(*codes))

    def answer_well(self, api: int) -> None:
        """Errors that nobody has got yet are forgotten."""
        self._ask("clear_request_errors", api)

    def speak_no_newer(self, api: int, version: int) -> None:
        """Requests of this kind are of that version at most, for clients that come from now on."""
        assert self._ask("set_apiversion", api, 0, version) == 0

    @contextlib.contextmanager
    def slow(self, seconds: float) -> Iterator[None]:
        """Every answer takes that long."""
        self._ask("broker_set_rtt", -1, round(seconds * 1000))
        try:
            yield
        finally:
            self._ask("broker_set_rtt", -1, 0)

    @contextlib.contextmanager
    def down(self, broker: int = -1) -> Iterator[None]:
        """-1: all of them."""
        self._ask("broker_set_down", broker)
        try:
            yield
        finally:
            self._ask("broker_set_up", broker)

    def asked(self, api: int) -> int:
        """How many requests of this kind there were, since `forget`."""
        count = _count()
        found = self._ask("get_requests", ctypes.byref(count))
        kinds = [self._call("mock_request_api_key", found[each]) for each in range(count.value)]
        self._call("mock_request_destroy_array", found, count)
        return kinds.count(api)

    def forget(self) -> None:
        self._ask("clear_requests")

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        """-1: nothing."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": group})
        with contextlib.closing(consumer):
            [told] = consumer.committed([TopicPartition(topic, partition)], timeout=_PATIENCE)
        return max(told.offset, -1)

    def commit(self, group: str, topic: str, offset: int, partition: int = 0) -> None:
        """As if the group, of which nobody is there, had done so."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": group})
        with contextlib.closing(consumer):
            consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)

    def write(self, topic: str, count: int, partition: int = 0) -> None:
        producer = Producer({"bootstrap.servers": self.address})
        for _ in range(count):
            producer.produce(topic, b"{}", partition=partition)
        assert producer.flush(_PATIENCE) == 0

    def written(self, topic: str, partition: int = 0) -> int:
        """How many records the partition has."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "nobody"})
        with contextlib.closing(consumer):
            _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_PATIENCE)
        return int(high)

    def _ask(self, what: str, *given: Any) -> Any:
        return self._call(f"mock_{what}", self._cluster, *given)

    def _call(self, what: str, *given: Any) -> Any:
        return getattr(self._library, f"rd_kafka_{what}")(*given)


def _library() -> ctypes.CDLL:
    """The very librdkafka that the client library uses: it is loaded already, and found by where that lies."""
    package = Path(confluent_kafka.__file__).parent
    folders = (package.with_name("confluent_kafka.libs"), package / ".dylibs")  # of a wheel for Linux, for macOS
    found = [str(file) for folder in folders for file in folder.glob("librdkafka*")]
    library = ctypes.CDLL(found[0] if found else ctypes.util.find_library("rdkafka"))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library
