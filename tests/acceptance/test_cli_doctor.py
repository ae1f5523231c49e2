"""`redrive doctor` and `redrive queues` on a real RabbitMQ and on the embedded broker."""

from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import termios
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from redrive.disk import ground_of
from redrive.testing.letters import a_message
from support.desk import Desk, Ended
from support.rabbitmq_server import RabbitServer, vhost_of

PASSWORD = "hunter2-not-told"  # noqa: S105  a canary
SAFE = {
    "x-queue-type": "quorum",
    "x-dead-letter-exchange": "",
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}


class Broker:
    """A desk on a virtual host of its own."""

    def __init__(self, folder: Path, server: RabbitServer, url: str) -> None:
        self.desk = Desk(folder)
        self._server, self._url = server, url
        self.configure()
        assert self.desk.redrive("db", "upgrade").code == 0

    def configure(self, *lines: str, url: str | None = None, management: str | None = None) -> None:
        settings = f"""
[broker]
url = "{url or self._url}"
[broker.rabbitmq]
management_url = "{management or self._server.management_url}"
"""
        (self.desk.folder / "redrive.toml").write_text("\n".join([settings, *lines]))

    def queue(self, name: str, arguments: dict[str, object] | None = None, **facts: object) -> None:
        path = f"/queues/{quote(vhost_of(self._url), safe='')}/{quote(name, safe='')}"
        body = {"durable": True, "arguments": arguments or {"x-queue-type": "quorum"}, **facts}
        self._server.api("PUT", path, body)

    def doctor(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        ended = self.desk.redrive("doctor", *arguments, "--output", "json")
        assert ended.err == ""
        found: list[dict[str, Any]] = json.loads(ended.out)
        return ended.code, found


@pytest.fixture
def broker(disk_path: Path, rabbitmq: RabbitServer, rabbitmq_url: str) -> Broker:
    return Broker(disk_path, rabbitmq, rabbitmq_url)


def told(found: list[dict[str, Any]], queue: str) -> dict[str, str]:
    return {each["check"]: each["level"] for each in found if each["queue"] == queue}


def test_a_broker_as_it_should_be_has_no_problems(broker: Broker) -> None:
    broker.queue("orders")
    broker.queue("orders_dlq")
    broker.queue("orders_retry.5000", {**SAFE, "x-dead-letter-routing-key": "orders", "x-message-ttl": 5000})

    code, found = broker.doctor()

    assert code == 0
    assert {each["level"] for each in found} <= {"ok", "warn"}, found  # alarms are told a while after the start
    assert {each["queue"] for each in found if each["queue"]} == {"orders", "orders_dlq", "orders_retry.5000"}
    assert {"broker", "version", "alarms", "permissions", "store", "spool", "journal"} <= {
        each["check"] for each in found
    }


@pytest.mark.parametrize("topology", ["delay-queues", "plain-queues", "ttl-loop", "dead-letter-exchange"])
def test_what_setup_makes_has_no_problems(broker: Broker, topology: str) -> None:
    broker.configure(f'topology = "{topology}"', '[app]\nname = "shop"', "[queues.orders]")
    assert broker.desk.redrive("setup", "--yes").code == 0

    code, found = broker.doctor()

    assert (code, [each for each in found if each["level"] == "problem"]) == (0, [])
    looked_at = {each["queue"] for each in found if each["queue"]}
    assert len(looked_at) > 1, looked_at
    assert "orders" in looked_at


def test_every_place_where_messages_may_be_lost_is_found_and_makes_it_fail(broker: Broker) -> None:
    broker.queue("astray", {**SAFE, "x-dead-letter-exchange": "gone"})
    broker.queue("unroutable", {**SAFE, "x-dead-letter-routing-key": "nobody"})
    broker.queue("vanishing", {"x-queue-type": "quorum", "x-message-ttl": 60_000})
    broker.queue("full", {"x-queue-type": "quorum", "x-max-length": 5})
    broker.queue("limited", {"x-queue-type": "quorum", "x-delivery-limit": 3})
    broker.queue("unsafe", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "full"})
    broker.queue("fleeting", {"x-expires": 600_000}, durable=False)

    code, found = broker.doctor()

    assert code == 1
    assert told(found, "astray") == {"dead-letter-exchange": "problem"}
    assert told(found, "unroutable") == {"dead-letter-route": "problem"}
    assert told(found, "vanishing") == {"ttl": "problem"}
    assert told(found, "full") == {"overflow": "problem"}
    assert told(found, "limited") == {"delivery-limit": "problem"}
    assert told(found, "unsafe") == {"classic": "warn", "dead-letter-strategy": "warn"}
    assert told(found, "fleeting") == {"durable": "problem", "expires": "problem", "classic": "warn"}
    levels = [each["level"] for each in found]
    assert levels == sorted(levels, key=["problem", "warn", "unknown", "ok"].index)


def test_the_table_tells_level_check_queue_what_and_remedy(broker: Broker) -> None:
    broker.queue("vanishing", {"x-queue-type": "quorum", "x-message-ttl": 60_000})

    ended = broker.desk.redrive("doctor")

    assert ended.code == 1
    header, first, *_ = ended.out.splitlines()
    assert header.split() == ["LEVEL", "PLACE", "CHECK", "QUEUE", "WHAT", "REMEDY"]
    assert first.split()[:4] == ["problem", "broker", "ttl", "vanishing"]
    assert "older than 1m vanish" in first
    assert "name a dead-letter exchange" in first


def test_the_queues_of_an_app_are_looked_at_with_the_time_their_handlers_may_take(broker: Broker) -> None:
    (broker.desk.folder / "doctored_shop.py").write_text(
        """
from redrive import App, Retry, fixed
app = App("shop")

@app.handler("orders", timeout="10m", retry=Retry(3, fixed("5s"), immediate=2))
async def order(message): ...

@app.handler("mails")
async def mail(message): ...
"""
    )
    broker.queue("orders")
    broker.queue("strangers", {"x-message-ttl": 1})

    code, found = broker.doctor("doctored_shop:app")

    assert code == 1
    assert told(found, "orders") == {"consumer-timeout": "problem", "queue": "ok"}  # three times ten minutes
    assert told(found, "mails") == {"queue": "problem"}
    assert told(found, "strangers") == {}
    assert "redrive setup" in next(each["remedy"] for each in found if each["queue"] == "mails")


def test_settings_of_queues_count_as_an_app_does(broker: Broker) -> None:
    broker.queue("orders")
    broker.configure('[queues.orders]\nhandler_timeout = "20m"')
    assert told(broker.doctor()[1], "orders") == {"consumer-timeout": "warn", "queue": "ok"}
    broker.configure('[queues.orders]\nhandler_timeout = "5m"\nconcurrency = 10\nprefetch = 40')
    assert told(broker.doctor()[1], "orders") == {"consumer-timeout": "warn", "queue": "ok"}  # the last of 40
    broker.configure('consumer_timeout = "1h"', '[queues.orders]\nhandler_timeout = "20m"')
    assert told(broker.doctor()[1], "orders") == {"queue": "ok"}


def test_only_the_named_queue_and_its_own(broker: Broker) -> None:
    for name in ("orders", "orders_dlq", "mails"):
        broker.queue(name)
    assert {each["queue"] for each in broker.doctor("--queue", "orders")[1]} == {None, "orders", "orders_dlq"}


def test_without_the_management_api_it_says_so_and_asks_by_amqp(broker: Broker, unused_tcp_port: int) -> None:
    broker.queue("orders")
    broker.configure(management=f"http://127.0.0.1:{unused_tcp_port}")

    code, found = broker.doctor("--queue", "orders")
    assert code == 0
    (missing,) = [each for each in found if each["check"] == "management"]
    assert missing["level"] == "warn"
    assert "rabbitmq-plugins enable rabbitmq_management" in missing["remedy"]
    assert told(found, "orders") == {"queue": "ok"}

    code, found = broker.doctor("--queue", "nobody")
    assert (code, told(found, "nobody")) == (1, {"queue": "problem"})


def test_a_user_whom_the_management_api_refuses_is_a_warning(broker: Broker, rabbitmq: RabbitServer) -> None:
    host = rabbitmq.management_url.removeprefix("http://").rpartition("@")[2]
    broker.configure(management=f"http://guest:{PASSWORD}@{host}")
    ended = broker.desk.redrive("doctor", "--output", "json")
    (refused,) = [each for each in json.loads(ended.out) if each["check"] == "management"]
    assert (ended.code, refused["level"]) == (0, "warn")
    assert "refuses user 'guest'" in refused["what"]
    assert PASSWORD not in ended.out + ended.err


def test_what_the_user_may_not_ask_is_a_warning_and_the_rest_is_told(
    broker: Broker, rabbitmq: RabbitServer, rabbitmq_url: str
) -> None:
    rabbitmq.api("PUT", "/users/doctored", {"password": PASSWORD, "tags": "management"})
    allowed = {"configure": ".*", "write": ".*", "read": ".*"}
    rabbitmq.api("PUT", f"/permissions/{quote(vhost_of(rabbitmq_url), safe='')}/doctored", allowed)
    host = rabbitmq.management_url.removeprefix("http://").rpartition("@")[2]
    broker.queue("vanishing", {"x-queue-type": "quorum", "x-message-ttl": 60_000})
    broker.configure(management=f"http://doctored:{PASSWORD}@{host}")

    code, found = broker.doctor()

    rabbitmq.api("DELETE", "/users/doctored")
    assert code == 1
    assert told(found, "vanishing") == {"ttl": "problem"}
    (alarms,) = [each for each in found if each["check"] == "alarms"]
    assert alarms["level"] == "warn"
    assert "monitoring" in alarms["remedy"]


def test_a_broker_that_is_away_is_6_and_the_rest_is_looked_at(broker: Broker, unused_tcp_port: int) -> None:
    broker.configure(url=f"amqp://shop:{PASSWORD}@127.0.0.1:{unused_tcp_port}/")
    for output in ("table", "json"):
        ended = broker.desk.redrive("doctor", "--output", output)
        assert ended.code == 6
        assert "cannot reach" in ended.out
        assert "spool" in ended.out
        assert PASSWORD not in ended.out + ended.err
    ended = broker.desk.redrive("queues")
    assert (ended.code, ended.out) == (6, "")
    assert PASSWORD not in ended.err


def queues(ended: Ended) -> dict[str, dict[str, Any]]:
    assert ended.code == 0, ended
    return {each["name"]: each for each in json.loads(ended.out)}


def test_queues_shows_what_lies_where(broker: Broker) -> None:
    broker.queue("orders")
    broker.queue("orders_retry.5000", {**SAFE, "x-dead-letter-routing-key": "orders", "x-message-ttl": 5000})
    broker.queue("orders_retry.10000", {**SAFE, "x-dead-letter-routing-key": "orders", "x-message-ttl": 10000})
    broker.queue("mails", {"x-max-length": 10})
    found = queues(broker.desk.redrive("queues", "--output", "json"))
    assert {name: each["type"] for name, each in found.items()} == {
        "orders": "quorum",
        "orders_retry": "quorum",
        "mails": "classic",
    }
    assert set(found["mails"]) == {
        "name", "type", "ready", "delayed", "unacked", "consumers", "incoming", "outgoing",
    }  # fmt: skip
    only = queues(broker.desk.redrive("queues", "--queue", "orders", "--output", "json"))
    assert set(only) == {"orders", "orders_retry"}
    table = broker.desk.redrive("queues").out
    assert table.splitlines()[0].split() == [
        "QUEUE", "TYPE", "READY", "DELAYED", "UNACKED", "CONSUMERS", "IN/S", "OUT/S",
    ]  # fmt: skip


def test_queues_without_the_management_api_shows_those_it_can_name(broker: Broker, unused_tcp_port: int) -> None:
    broker.queue("orders")
    broker.queue("mails")
    assert broker.desk.redrive("send", "orders", "{}").code == 0
    broker.configure("[queues.orders]", management=f"http://127.0.0.1:{unused_tcp_port}")

    ended = broker.desk.redrive("queues", "--output", "json")
    assert [(name, each["ready"], each["consumers"]) for name, each in queues(ended).items()] == [("orders", 1, 0)]
    assert "only queues that are named" in ended.err
    named = queues(broker.desk.redrive("queues", "--queue", "mails", "--queue", "nobody", "--output", "json"))
    assert [(name, each["ready"]) for name, each in named.items()] == [("mails", 0)]


class TestTheEmbeddedBroker:
    def test_in_a_new_folder_nothing_is_made(self, disk_path: Path) -> None:
        desk = Desk(disk_path)
        ended = desk.redrive("doctor", "--output", "json")
        assert ended.code == 6  # there is no store
        assert {each["check"]: each["level"] for each in json.loads(ended.out)} == {
            "store": "problem", "broker": "warn", "spool": "ok", "journal": "ok", "settings": "ok",
            "encryption": "unknown", "temporary": "warn", "one-disk": "warn",
        }  # fmt: skip
        assert queues(desk.redrive("queues", "--output", "json")) == {}
        assert list(disk_path.iterdir()) == []

    def test_with_messages_all_is_well(self, disk_path: Path) -> None:
        desk = Desk(disk_path)
        assert desk.redrive("db", "upgrade").code == 0
        desk.send("orders", [a_message(queue="orders")] * 3)
        desk.send("orders_dlq", [a_message(queue="orders_dlq")])
        desk.send("mails", [a_message(queue="mails")])
        ended = desk.redrive("doctor", "--output", "json")
        assert ended.code == 0
        found = json.loads(ended.out)
        assert {each["check"] for each in found if each["level"] != "ok"} == {"temporary", "one-disk"}
        assert {each["place"] for each in found} == {"broker", "store", "disk", "settings"}
        found = queues(desk.redrive("queues", "--output", "json"))
        assert {name: each["ready"] for name, each in found.items()} == {"orders": 3, "orders_dlq": 1, "mails": 1}
        assert set(queues(desk.redrive("queues", "-q", "orders", "-o", "json"))) == {"orders", "orders_dlq"}

    def test_a_damaged_file_is_6(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path)
        desk.redrive("db", "upgrade")
        (tmp_path / "redrive-broker.db").write_bytes(b"not a database at all" * 100)
        ended = desk.redrive("doctor")
        assert ended.code == 6
        assert "redrive-broker.db" in ended.out

    def test_what_is_in_memory_is_a_problem(self, tmp_path: Path) -> None:
        if not ground_of(tmp_path).in_memory:
            pytest.skip("the folders of these tests are on a disk here")
        desk = Desk(tmp_path)
        desk.redrive("db", "upgrade")
        ended = desk.redrive("doctor", "--output", "json")
        assert ended.code == 1
        lost = [each["what"].partition(",")[0] for each in json.loads(ended.out) if each["check"] == "in-memory"]
        assert {"the store", "the broker", "the spool", "the archive", "the ledger's key"} <= set(lost)

    def test_a_store_that_is_behind_is_told_and_left_as_it_is(self, disk_path: Path) -> None:
        desk = Desk(disk_path)
        desk.redrive("db", "upgrade")
        behind = "UPDATE redrive_version SET version_num = '0010'"
        with closing(sqlite3.connect(disk_path / "redrive.db")) as store:
            store.execute(behind)
            store.commit()
        before = (disk_path / "redrive.db").read_bytes()

        ended = desk.redrive("doctor", "--output", "json")

        assert ended.code == 1
        (told,) = [each for each in json.loads(ended.out) if each["check"] == "store"]
        assert "the schema is 0010" in told["what"]
        assert (disk_path / "redrive.db").read_bytes() == before


def test_watch_needs_a_terminal(tmp_path: Path) -> None:
    ended = Desk(tmp_path).redrive("queues", "--watch")
    assert ended.code == 2
    assert "--watch" in ended.err


def test_watch_looks_again_and_again_until_ctrl_c(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.send("orders", [a_message(queue="orders")])
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    program = "import redrive.cli.queues as q; q._EVERY = 0.01; from redrive.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "queues", "--watch"],
        cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while seen.count(b"orders") < 3:  # it ends by the test's timeout
        seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    while True:
        try:
            seen += os.read(ours, 65536)
        except OSError:  # Linux: the other side is gone
            break
    assert process.wait() == 0
    assert b"Traceback" not in seen
    os.close(ours)
