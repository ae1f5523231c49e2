"""G10 under kill -9: workers and engines of an ordered queue are killed wherever they stand. None is lost, and the
messages of no key are ever handled in another order than they were sent in.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from redrive import faults
from redrive.clock import SystemClock, new_id
from redrive.dead_letter import Actor, Status
from redrive.letter_query import LetterQuery
from redrive.message import Message
from redrive.run import ENDED, Brakes, RunPlan
from redrive.stores import open_store
from redrive.transports import open_transport
from support.amounts import ORDER_KILLS
from support.forked import REDRIVE, Forked
from support.patience import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chaos.lab.kafka import Kafka

KILLS = ORDER_KILLS
CUSTOMERS, EACH = 6, 8
SHOP = """
import os
from redrive import App, Message, Retry

app = App("shop", retry=Retry(2, "50ms"))
effects = os.open("effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@app.handler({queue!r})
async def charge(order: dict):
    if order["number"] % 3 == 1 and os.path.exists("broken"):
        raise (TimeoutError if order["number"] == 1 else ValueError)("no such customer")
    os.write(effects, f"{{order['customer']}} {{order['number']}}\\n".encode())
"""
ENGINE_ALONE = """
import asyncio, json, sys
from redrive.clock import SystemClock
from redrive.engine import RedriveEngine
from redrive.stores import open_store
from redrive.transports import open_transport

async def serve():
    parts = {"store": open_store(sys.argv[1]), "clock": SystemClock()}
    parts["transport"] = open_transport(sys.argv[2], **json.loads(sys.argv[3]))
    await RedriveEngine(owner="engine", lease=3.0, in_flight=8, **parts).serve()

asyncio.run(serve())
"""
"""With a short lease: what a killed one had in hand is soon another's."""
WORKER = sorted(name for name in faults.POINTS if name.startswith("worker.") and "sinks" not in name)
ENGINE = sorted(name for name in faults.POINTS if name.startswith("engine."))


class Place:
    """With `topics` its broker is a Kafka."""

    def __init__(self, folder: Path, store_url: str, broker_url: str, topics: Kafka | None = None) -> None:
        self.folder = folder
        self.store_url = store_url
        self.broker_url = broker_url
        self.topics = topics
        self.queue = "orders" if topics is None else topics.name
        self.kills = KILLS if topics is None else max(KILLS // 4, 2)  # a worker joins its group before it begins
        self.processes: list[Forked] = []
        (folder / "shop.py").write_text(SHOP.format(queue=self.queue))
        (folder / "broken").touch()
        (folder / "redrive.toml").write_text(
            f'[app]\nname = "{self.queue}"\n[broker]\nurl = "{broker_url}"\nlease = "2s"\n'
            f'[store]\nurl = "{store_url}"\n[queues.{self.queue}]\nordered_by = "key"\n'
        )

    @property
    def options(self) -> dict[str, Any]:
        """Of the transport, beside its URL."""
        return {} if self.topics is None else {"group": self.queue}

    def note_death(self) -> None:
        if self.topics is not None:
            self.topics.bury([each.pid for each in self.processes if each.poll() is None])

    def work(self, faults: str = "") -> Forked:
        return self._start(REDRIVE, "work", "shop:app", faults=faults)

    def carry_out(self, faults: str = "") -> Forked:
        return self._start(ENGINE_ALONE, self.store_url, self.broker_url, json.dumps(self.options), faults=faults)

    def _start(self, code: str, *arguments: str, faults: str) -> Forked:
        environment = {**os.environ, "REDRIVE_FAULTS": faults}
        with (self.folder / "log").open("ab") as log:
            files = {"stdout": log.fileno(), "stderr": log.fileno()}
            process = Forked(code, *arguments, cwd=self.folder, env=environment, **files)
        self.processes.append(process)
        return process

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def effects(self) -> dict[str, list[int]]:
        """Of each customer: the numbers of their orders as they were handled, each once."""
        found: dict[str, list[int]] = defaultdict(list)
        told = self.folder / "effects"
        for line in told.read_text().splitlines() if told.exists() else ():
            customer, number = line.split()
            if int(number) not in found[customer]:
                found[customer].append(int(number))
        return found


@pytest.fixture(params=["sqlite and embedded", "postgresql and rabbitmq", "sqlite and kafka"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    store, broker = f"sqlite:///{tmp_path}/redrive.db", f"embedded:///{tmp_path}/broker.db"
    topics: Kafka | None = None
    if request.param == "postgresql and rabbitmq":
        store, broker = request.getfixturevalue("postgres_store_url"), request.getfixturevalue("rabbitmq_url")
    elif request.param == "sqlite and kafka":
        topics = request.getfixturevalue("topics")
        broker = f"kafka://{topics.server}"
    found = Place(tmp_path, store, broker, topics)
    yield found
    found.end()


@pytest.mark.timeout(120 + 8 * KILLS)
async def test_killed_anywhere_the_orders_of_each_customer_stay_in_their_order(place: Place) -> None:
    dice = random.Random(17)  # noqa: S311  not a secret
    transport, store = open_transport(place.broker_url, **place.options), open_store(place.store_url)
    try:
        await _send(transport, place.queue)
        for _ in range(place.kills // 2):
            await _killed(place, place.work(f"{dice.choice(WORKER)}=kill9:0.1"), dice)
        place.work()
        await until(lambda: _all_are_met(place, store), within=90)

        (place.folder / "broken").unlink()
        # Quarantined ones as well: a message that was in hand at three kills is suspected of them.
        every, brakes = LetterQuery(queue=place.queue), Brakes(publish_errors=None)
        plan = RunPlan(selection=every, quarantined=True, brakes=brakes, reason="well again")
        run = await store.create_run(plan, by=Actor("ann"))
        for _ in range(place.kills - place.kills // 2):
            await _killed(place, place.carry_out(f"{dice.choice(ENGINE)}=kill9:0.3"), dice)
        place.carry_out()
        await until(lambda: _has_ended(store, run.id), within=300)
        await until(lambda: _none_is_open(store), within=90)

        expected = {f"customer-{each}": list(range(EACH)) for each in range(CUSTOMERS)}
        assert place.effects() == expected
    finally:
        await transport.close()
        await store.close()


async def _send(transport: Any, queue: str) -> None:
    for number in range(EACH):
        for each in range(CUSTOMERS):
            customer = f"customer-{each}"
            body = json.dumps({"customer": customer, "number": number}).encode()
            now = SystemClock().now()
            await transport.send(Message(id=new_id(), queue=queue, body=body, sent_at=now, key=customer.encode()))


async def _killed(place: Place, process: Forked, dice: random.Random) -> None:
    """By itself at its failpoint, or by us."""
    try:
        await asyncio.to_thread(process.wait, dice.uniform(0.3, 1.5))
    except subprocess.TimeoutExpired:
        process.kill()
        await asyncio.to_thread(process.wait)
    await asyncio.to_thread(place.note_death)


async def _all_are_met(place: Place, store: Any) -> bool:
    """Whether each message was handled or is a letter. A broker does not tell what a worker has in hand."""
    handled = sum(map(len, place.effects().values()))
    return bool(handled + (await store.count(LetterQuery())).number == CUSTOMERS * EACH)


async def _has_ended(store: Any, run_id: str) -> bool:
    return (await store.run(run_id)).status in ENDED


async def _none_is_open(store: Any) -> bool:
    counted = [await store.count(LetterQuery(status=each)) for each in Status if each is not Status.RESOLVED]
    return not sum(each.number for each in counted)
