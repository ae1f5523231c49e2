"""A worker on SQS that is killed at each step of a retry: before it is sent, after, and before the old is deleted.
On a FIFO queue a retry is not sent; there it is killed while it sends a dead letter, and while a retry waits.

The points are those that begin with `sqs.`
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from redrive.faults import POINTS
from support.desk import Desk
from support.moto_server import CREDENTIALS, URL

APP = """
from pathlib import Path
from redrive import App

app = App("shop")

@app.handler("{queue}")
async def charge(body: bytes) -> None:
    with Path("handled").open("ab") as file:
        file.write(b".")
    raise TimeoutError("the bank is slow")
"""
SETTINGS = """
[broker]
url = "{url}"
dead_letter_queue = "{{queue}}_dlq"
[broker.sqs]
endpoint = "{endpoint}"
visibility = "2s"
wait = "1s"
[retry]
attempts = 2
delays = ["1s"]
[dead_letters]
sink = "{sink}"
"""
POINTS_OF_SQS = {point for point in POINTS if point.startswith("sqs.")}


class Shop(Desk):
    """A folder with an app of one handler, which fails, and SQS as its broker."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        super().__init__(folder)
        self._endpoint = endpoint

    def write(self, queue: str, sink: str) -> None:
        (self.folder / "app.py").write_text(APP.format(queue=queue))
        settings = SETTINGS.format(url=URL, endpoint=self._endpoint, sink=sink)
        (self.folder / "redrive.toml").write_text(settings)

    def sent_and_killed_at(self, point: str, queue: str) -> None:
        """One message; the next worker finishes what the first could not."""
        sent = self.redrive("send", queue, '{"order": 17}')
        assert sent.code == 0, sent.err
        died = self.process("work", "app:app", "--drain", faults=f"{point}=kill9")
        assert died.returncode == -signal.SIGKILL, died.stderr
        mended = self.process("work", "app:app", "--drain")
        assert mended.returncode == 0, mended.stderr

    def letters(self) -> list[str]:
        """Of which queues they are."""
        return [each["queue"] for each in json.loads(self.redrive("list", "--output", "json").out)]

    @property
    def handled(self) -> int:
        return len((self.folder / "handled").read_bytes())


@pytest.fixture
def shop(tmp_path: Path, new_sqs_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return Shop(tmp_path, new_sqs_endpoint)


@pytest.mark.parametrize("point", sorted(POINTS_OF_SQS - {"sqs.kept"}))
def test_killed_while_it_sends_a_retry_a_worker_loses_nothing_and_makes_one_letter(shop: Shop, point: str) -> None:
    shop.write("orders", "store")
    shop.sent_and_killed_at(point, "orders")
    assert shop.letters() == ["orders"]
    assert 2 <= shop.handled <= 4


@pytest.mark.parametrize("point", sorted(POINTS_OF_SQS - {"sqs.retry_confirmed"}))
def test_killed_on_a_fifo_queue_a_worker_begins_anew_loses_nothing_and_makes_one_letter(
    shop: Shop, point: str
) -> None:
    shop.write("orders.fifo", "queue")
    shop.sent_and_killed_at(point, "orders.fifo")
    collected = shop.redrive("collect", "orders_dlq.fifo", "--once")
    assert collected.code == 0, collected.err
    assert shop.letters() == ["orders.fifo"]
    assert shop.handled == (3 if point == "sqs.kept" else 4)
