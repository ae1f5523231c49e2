"""`redrive doctor` and `redrive queues` on a real Kafka."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from redrive.testing.letters import a_message
from redrive.transports.kafka.transport import KafkaTransport
from support.desk import Desk
from support.patience import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.kafka_server import KafkaServer

DAY = 86_400_000


class Cluster:
    """A desk on topics of its own."""

    def __init__(self, folder: Path, kafka: KafkaServer) -> None:
        self.desk = Desk(folder)
        self.queue, self._kafka = kafka.topic_name(), kafka
        self.group = f"group-{self.queue}"
        self.configure()
        assert self.desk.redrive("db", "upgrade").code == 0

    def configure(self, *lines: str, url: str | None = None) -> None:
        head = f'[broker]\nurl = "{url or self._kafka.url}"\n[broker.kafka]\ngroup = "{self.group}"'
        (self.desk.folder / "redrive.toml").write_text("\n".join([head, *lines]))

    def topic(self, beside: str = "", **settings: str) -> None:
        config = {name.replace("_", "."): value for name, value in settings.items()}
        self._kafka.make_topic(self.queue + beside, settings=config)

    def doctor(self) -> tuple[int, dict[str, dict[str, str]]]:
        """What is told of each of our topics."""
        ended = self.desk.redrive("doctor", "--queue", self.queue, "--output", "json")
        found: dict[str, dict[str, str]] = {}
        for each in json.loads(ended.out):
            name = (each["queue"] or "").removeprefix(self.queue) if each["queue"] else "broker"
            found.setdefault(name, {})[each["check"]] = each["level"]
        return ended.code, found

    def queues(self, *arguments: str) -> list[dict[str, Any]]:
        ended = self.desk.redrive("queues", *arguments, "--output", "json")
        assert ended.code == 0, ended.err
        rows: list[dict[str, Any]] = json.loads(ended.out)
        return rows


@pytest.fixture
def cluster(disk_path: Path, kafka: KafkaServer) -> Cluster:
    return Cluster(disk_path, kafka)


def test_every_way_to_lose_a_message_that_topics_have_is_told(cluster: Cluster) -> None:
    cluster.topic()
    cluster.topic("_retry")
    cluster.topic("_retry_1h", retention_ms="60000", unclean_leader_election_enable="true")
    cluster.topic("_dlq", retention_ms=str(DAY), max_message_bytes="1000", cleanup_policy="compact")

    code, found = cluster.doctor()

    assert code == 1
    assert found["broker"]["broker"] == "ok"
    assert found[""] == {"replication": "warn"}
    assert found["_retry*"] == {"replication": "warn"}
    assert found["_retry_1h"] == {"retention": "problem", "unclean-leader": "problem"}
    assert found["_dlq"] == {
        "replication": "warn",
        "retention": "warn",
        "size": "problem",
        "compacted": "problem",
    }


def test_a_topic_that_is_missing_is_a_problem(cluster: Cluster) -> None:
    code, found = cluster.doctor()
    assert (code, found[""]) == (1, {"topic": "problem"})


def test_brokers_that_do_not_answer_have_an_exit_code_of_their_own(cluster: Cluster) -> None:
    cluster.configure('connect_timeout = "500ms"', url="kafka://127.0.0.1:1")
    code, found = cluster.doctor()
    assert (code, found["broker"]["broker"]) == (6, "problem")


def test_a_group_that_nobody_has_named_is_a_warning(cluster: Cluster) -> None:
    cluster.topic()
    config = cluster.desk.folder / "redrive.toml"
    config.write_text(config.read_text().replace(f'group = "{cluster.group}"', ""))
    _, found = cluster.doctor()
    assert found["broker"]["group"] == "warn"


async def test_what_waits_and_who_consumes_is_told(cluster: Cluster, kafka: KafkaServer) -> None:
    """Two of three are done; one retry waits; a dead letter lies there that nobody collects."""
    transport = KafkaTransport(kafka.url, group=cluster.group)
    for _ in range(3):
        await transport.send(a_message(queue=cluster.queue))
    receiving = transport.receive(cluster.queue, prefetch=3)
    first, second, _held = [await anext(receiving) for _ in range(3)]
    await transport.ack(first)
    await transport.retry(second, second.message, delay=3600, trail=b"")
    await transport.send(a_message(queue=cluster.queue), queue=f"{cluster.queue}_dlq")

    async def figures() -> dict[str, dict[str, Any]]:
        rows = await asyncio.to_thread(cluster.queues, "--queue", cluster.queue)
        return {row["name"].removeprefix(cluster.queue): row for row in rows}

    async def committed() -> bool:
        told = await figures()
        return bool(told[""]["ready"] == 1 and told["_retry"]["consumers"] == 1)

    await until(committed)
    told = await figures()
    assert {name: (row["ready"], row["delayed"], row["consumers"]) for name, row in told.items()} == {
        "": (1, 0, 1),
        "_retry": (0, 1, 1),
        "_dlq": (1, 0, 0),
    }
    await receiving.aclose()
    await transport.close()


def test_without_a_name_only_topics_that_the_group_has_read_are_shown(cluster: Cluster) -> None:
    cluster.topic()
    ended = cluster.desk.redrive("queues")
    assert ended.code == 0
    assert f"only topics that the consumer group '{cluster.group}' has read" in ended.err
    assert cluster.queue not in [line.split()[0] for line in ended.out.splitlines() if line.strip()]
    cluster.configure(f"[queues.{cluster.queue}]\nconcurrency = 1")
    assert [row["name"] for row in cluster.queues()] == [cluster.queue]
