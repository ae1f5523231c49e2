"""`redrive setup` on a real Kafka: topics are made as told, and what exists is never changed."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from redrive.transports.kafka.topics import OVERHEAD, USUAL_SIZE
from redrive.transports.kafka.transport import KafkaTransport
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.transports.kafka.cluster_facts import TopicFacts
    from support.desk import Ended
    from support.kafka_server import KafkaServer


class Shop(Desk):
    """A folder with an app of one handler, and Kafka as its broker."""

    def __init__(self, folder: Path, kafka: KafkaServer) -> None:
        super().__init__(folder)
        self.queue, self._kafka = kafka.topic_name(), kafka
        self.write()
        # A name of its own for each test: modules stay imported.
        self.target = f"shop_{uuid4().hex}"
        handler = f"@app.handler('{self.queue}')\nasync def handle(body: bytes) -> None: ...\n"
        (folder / f"{self.target}.py").write_text(f"from redrive import App\napp = App('shop')\n{handler}")

    def write(self, *lines: str, broker: str = "") -> None:
        retry = '[retry]\nattempts = 3\njitter = "none"\n'
        settings = "\n".join([f'[broker]\nurl = "{self._kafka.url}"\n{broker}\n[broker.kafka]', *lines, retry])
        (self.folder / "redrive.toml").write_text(settings)

    def setup(self, *arguments: str) -> Ended:
        return self.redrive("setup", f"{self.target}:app", *arguments)

    def topics(self) -> dict[str, TopicFacts]:
        """By what follows the queue's name."""
        return asyncio.run(self._topics())

    async def _topics(self) -> dict[str, TopicFacts]:
        transport = KafkaTransport(self._kafka.url)
        facts = await transport.administration().cluster(configured=lambda name: name.startswith(self.queue))
        await transport.close()
        found = {name: each for name, each in facts.topics.items() if name.startswith(self.queue)}
        return {name.removeprefix(self.queue): each for name, each in found.items()}


@pytest.fixture
def shop(tmp_path: Path, kafka: KafkaServer) -> Shop:
    return Shop(tmp_path, kafka)


BESIDE = {"_retry", "_retry_5s", "_retry_10s", "_dlq"}


def test_what_is_shown_is_made_once_as_the_settings_say(shop: Shop) -> None:
    shop.write("partitions = 2", "replication = 1", 'retention = "9d"', "max_message_bytes = 500000")

    looked = shop.setup("--dry-run")
    assert (looked.code, shop.topics()) == (0, {})
    assert "Would make 5 topics; nothing was changed." in looked.err
    made = shop.setup("--yes")
    found = shop.topics()
    again = shop.setup()

    assert (made.code, "Made 5 topics." in made.err) == (0, True), made.err
    assert found.keys() == {"", *BESIDE}
    assert {len(each.partitions) for each in found.values()} == {2}
    assert {found[each].number("retention.ms") for each in BESIDE} == {9 * 86_400_000}
    assert {found[each].number("max.message.bytes") for each in BESIDE} == {500_000 + OVERHEAD}
    assert found[""].number("max.message.bytes") == 500_000
    assert (again.code, "Nothing was missing." in again.err) == (0, True)


def test_the_tree_tells_topics_of_one_kind_together(shop: Shop) -> None:
    shop.write("partitions = 2", broker='retry_queue = "{queue}-retry"\ndead_letter_queue = "{queue}-dlt"')
    lines = shop.setup("--dry-run").out.splitlines()
    assert lines[0].endswith("Kafka, 1 broker, consumer group redrive")
    assert f"    topic {shop.queue} (messages): missing" in lines
    assert f"    topic {shop.queue}-retry (redriven messages): missing" in lines
    assert f"    topics {shop.queue}-retry_5s, {shop.queue}-retry_10s (2 delay topics): missing" in lines
    assert f"    topic {shop.queue}-dlt (dead letters): missing" in lines
    assert lines.count("      partitions = 2") == 4
    assert f"      max.message.bytes = {USUAL_SIZE + OVERHEAD}" in lines


@pytest.mark.parametrize(("mode", "role"), [("single", "retries"), ("blocking", "redriven messages")])
def test_one_retry_topic_is_made_where_there_is_to_be_one(shop: Shop, mode: str, role: str) -> None:
    shop.write(f'retry_topics = "{mode}"', "partitions = 1")
    made = shop.setup("--yes")
    assert (made.code, f"topic {shop.queue}_retry ({role})" in made.out) == (0, True)
    assert shop.topics().keys() == {"", "_retry", "_dlq"}


def test_an_existing_topic_is_left_as_it_is_and_its_differences_are_told(shop: Shop, kafka: KafkaServer) -> None:
    shop.write("partitions = 2", 'retention = "9d"')
    for name, partitions, config in (
        (shop.queue, 3, {"max.message.bytes": "700000"}),
        (f"{shop.queue}_dlq", 1, {"max.message.bytes": "700000", "retention.ms": "1000"}),
    ):
        kafka.make_topic(name, partitions=partitions, settings=config)
    before = shop.topics()

    ended = shop.setup("--yes", "--output", "json")

    told = {each["name"].removeprefix(shop.queue): each for each in json.loads(ended.out)}
    differences = {
        name: {each["argument"]: (each["current"], each["wanted"]) for each in told[name]["differences"]}
        for name in ("", "_dlq")
    }
    assert ended.code == 4
    assert differences[""] == {"partitions": (3, 2)}
    assert differences["_dlq"] == {
        "partitions": (1, 3),
        "max.message.bytes": (700_000, 700_000 + OVERHEAD),
        "retention.ms": (1000, 9 * 86_400_000),
    }
    assert f"topic {shop.queue}: partitions is 3, wanted is 2; it is left as it is" in ended.err
    assert "kafka-configs.sh --alter --add-config retention.ms=777600000" in ended.err
    after = shop.topics()
    assert (after[""], after["_dlq"]) == (before[""], before["_dlq"])
    assert {len(after[each].partitions) for each in BESIDE - {"_dlq"}} == {3}  # as the queue has them


def test_a_topic_of_others_with_other_partitions_is_as_good_where_nobody_said_how_many(
    shop: Shop, kafka: KafkaServer
) -> None:
    kafka.make_topic(shop.queue, partitions=1)
    assert shop.setup("--yes").code == 0


def test_what_the_brokers_refuse_is_told_in_their_words(shop: Shop) -> None:
    shop.write("replication = 7")
    ended = shop.setup("--yes")
    assert ended.code == 4
    assert "INVALID_REPLICATION_FACTOR" in ended.err


def test_a_group_that_only_the_code_could_name_is_asked_for(shop: Shop) -> None:
    assert 'Set app.name = "shop" too' in shop.setup("--dry-run").err
    shop.write('group = "billing"')
    ended = shop.setup("--dry-run")
    assert ("Set app.name" in ended.err, "consumer group billing" in ended.out) == (False, True)


def test_collect_makes_no_topic(shop: Shop, kafka: KafkaServer) -> None:
    assert shop.redrive("db", "upgrade").code == 0
    ended = shop.redrive("collect", f"{shop.queue}_dlq", "--once")
    assert f"there is no queue '{shop.queue}_dlq' on the broker" in ended.err
    assert f"{shop.queue}_dlq" not in kafka.topics()
