"""The whole way on a real Kafka, by commands alone: `redrive work` as a process, a retry topic, a dead letter, a
redrive that only the group reads in which the message failed.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from redrive.transports.kafka.lags import Lags
from support.desk import Desk
from support.forked import REDRIVE
from support.patience import until
from support.run_shop import Started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.kafka_server import KafkaServer

APP = """
import os
from pathlib import Path

from redrive import App, Message, Permanent, Retry

app = App("shop", retry=Retry(3, ["100ms"]))


@app.handler({queue!r}, name="charge")
async def charge(message: Message) -> None:
    order = message.data["order"]
    with Path("seen").open("a") as seen:
        print(order, message.retry_count, file=seen)
    if order == "hasty" and message.retry_count == 0:
        raise ConnectionError("not yet")
    if order == "broken" and "FAILS" in os.environ and not Path("mended").exists():
        raise Permanent("no such customer")
"""
SETTINGS = """
[app]
name = "{group}"
[broker]
url = "{url}"
[broker.kafka]
partitions = 2
"""


class Service:
    """A folder with an app, settings and a store: one consumer group."""

    def __init__(self, folder: Path, url: str, queue: str, group: str) -> None:
        folder.mkdir()
        self.desk, self._folder, self.queue = Desk(folder), folder, queue
        (folder / "app.py").write_text(APP.format(queue=queue))
        (folder / "redrive.toml").write_text(SETTINGS.format(url=url, group=group))

    async def redrive(self, *arguments: str) -> str:
        ended = await asyncio.to_thread(self.desk.process, *arguments)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def work(self, **environment: str) -> Started:
        return Started(REDRIVE, "work", "app:app", cwd=self._folder, env={**os.environ, **environment})

    @property
    def seen(self) -> list[str]:
        """Every attempt: the order and its retries so far."""
        file = self._folder / "seen"
        return sorted(file.read_text().splitlines()) if file.exists() else []

    async def letters(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(await self.redrive("list", "--output", "json"))
        return found

    async def status(self, letter_id: str) -> str:
        return str(json.loads(await self.redrive("show", letter_id, "--output", "json"))["status"])

    def mend(self) -> None:
        (self._folder / "mended").touch()


@pytest.fixture
async def services(tmp_path: Path, kafka: KafkaServer) -> AsyncIterator[tuple[Service, Service]]:
    """Billing fails at broken orders; audit reads the same topic in a group of its own, and fails at none."""
    queue = kafka.topic_name()
    billing, audit = (
        Service(tmp_path / group, kafka.url, queue, f"{group}-{queue}") for group in ("billing", "audit")
    )
    await billing.redrive("setup", "app:app", "--yes")
    await audit.redrive("db", "upgrade")
    started = [billing.work(FAILS="yes"), audit.work()]
    try:
        yield billing, audit
        assert [await each.stop() for each in started] == [0, 0]
    finally:
        for each in started:
            each.kill()


async def test_a_failure_is_retried_by_a_topic_set_apart_and_redriven_to_its_own_group(
    services: tuple[Service, Service], kafka: KafkaServer
) -> None:
    billing, audit = services
    for order in ("fine", "hasty", "broken"):
        await billing.redrive("send", billing.queue, json.dumps({"order": order}), "--key", order)
    await until(lambda: billing.seen == ["broken 0", "fine 0", "hasty 0", "hasty 1"])
    await until(lambda: audit.seen == ["broken 0", "fine 0", "hasty 0", "hasty 1"])  # its own retry, not billing's
    [letter] = await until(billing.letters)
    assert (letter["status"], letter["queue"]) == ("PENDING", billing.queue)
    assert len(kafka.java_read(f"{billing.queue}_retry_100ms", 2)) == 2  # one of each group

    billing.mend()
    await billing.redrive("retry", letter["id"], "--yes")

    async def resolved() -> bool:
        return await billing.status(letter["id"]) == "RESOLVED"

    await until(resolved)
    [sent] = kafka.java_read(f"{billing.queue}_retry", 1)
    assert sent.key == b"broken"
    assert billing.seen == ["broken 0", "broken 0", "fine 0", "hasty 0", "hasty 1"]
    await until(lambda: _has_read(kafka, f"audit-{billing.queue}", f"{billing.queue}_retry"))
    assert audit.seen == ["broken 0", "fine 0", "hasty 0", "hasty 1"]
    assert await audit.letters() == []


async def _has_read(kafka: KafkaServer, group: str, topic: str) -> bool:
    """It has committed everything of that topic: the redrive went by."""
    lags = await Lags(kafka.admin(), within=10).of(group, {topic: 2}, {})
    return not any(lags.values())
