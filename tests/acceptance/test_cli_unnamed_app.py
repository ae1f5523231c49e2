"""Two topologies of RabbitMQ name their exchanges after the app. Who has not told the command line that name can
do all that needs no exchange, and is told the remedy for the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.dead_letters import dead
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

TOPOLOGIES = {
    "ttl-loop": "broker.rabbitmq.exchange",
    "dead-letter-exchange": "broker.rabbitmq.dead_letter_exchange",
}


@pytest.fixture(params=TOPOLOGIES)
def topology(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(tmp_path: Path, topology: str, rabbitmq_url: str) -> Desk:
    desk = Desk(tmp_path)
    broker = f'[broker]\nurl = "{rabbitmq_url}"\n[broker.rabbitmq]\ntopology = "{topology}"\n'
    (tmp_path / "redrive.toml").write_text(f'{broker}[store]\nurl = "{desk.store_url}"\n')
    return desk


def test_letters_are_looked_at_and_closed_without_it(desk: Desk) -> None:
    [letter] = desk.record(dead())
    for command in (("list",), ("show", letter), ("groups",), ("stats",), ("queues",)):
        ended = desk.redrive(*command)
        assert (ended.code, "app.name" in ended.err) == (0, False), (command, ended.err)
    assert desk.redrive("discard", letter, "--reason", "no use", "--yes").code == 0


def test_what_sends_needs_it_and_tells_the_remedy(desk: Desk, topology: str) -> None:
    [letter] = desk.record(dead())
    for command in (("retry", letter, "--yes"), ("send", "orders", "{}"), ("collect", "orders_dlq", "--once")):
        ended = desk.redrive(*command)
        assert ended.code == 2, (command, ended.err)
        assert "set app.name" in ended.err
        assert TOPOLOGIES[topology] in ended.err
    assert desk.letter(letter).status == "PENDING"
