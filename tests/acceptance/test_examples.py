"""The examples do what they say, run as a reader would run them."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for example in EXAMPLES.iterdir():
        if example.suffix in {".py", ".toml"}:
            shutil.copy(example, tmp_path)
    return tmp_path


def run(folder: Path, *command: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"NO_COLOR": "1"} | environment,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def redrive(folder: Path, *arguments: str, **environment: str) -> str:
    return run(folder, "-m", "redrive", *arguments, **environment)


def test_the_checkout_example_charges_one_order_and_sets_the_other_apart(folder: Path) -> None:
    redrive(folder, "send", "orders", '{"order_id": 123, "total": 299.90}', "--source", "checkout-service")
    redrive(folder, "send", "orders", '{"order_id": 124, "total": -1}')
    told = redrive(folder, "work", "checkout:app", "--drain")
    assert "charged order 123 from checkout-service" in told
    assert "set apart:" in told
    (letter,) = json.loads(redrive(folder, "list", "--output", "json"))
    assert letter["queue"] == "orders"
    assert letter["status"] == "PENDING"


def test_the_readme_shows_the_checkout_example_as_it_is() -> None:
    shown = README.read_text().split("```python\n")[1].split("```")[0]
    code = (EXAMPLES / "checkout.py").read_text().replace("from __future__ import annotations\n\n", "")
    for definition in ("class Order:", "@app.handler(", "@charge.on_dead_letter"):
        line = next(line for line in shown.splitlines() if definition in line)
        assert line in code.splitlines()


def test_the_class_handler_gives_up_after_its_max_retries(folder: Path) -> None:
    redrive(folder, "send", "notifications", '{"order_id": 7}')
    told = redrive(folder, "work", "class_handlers:app", "--drain")
    assert "gave up after 3 attempts: mail server away for order 7" in told


def test_the_inbox_example_books_once(folder: Path) -> None:
    redrive(folder, "send", "payments", '{"account": "A-1", "amount": 50}')
    redrive(folder, "work", "once_with_inbox:app", "--drain")
    with sqlite3.connect(folder / "bank.db") as bank:
        assert bank.execute("SELECT account, amount FROM bookings").fetchall() == [("A-1", 50.0)]
    bank.close()


def test_the_example_without_an_app_succeeds_on_the_third_call(folder: Path) -> None:
    assert "succeeded after 3 calls" in run(folder, "without_an_app.py")


class OnRabbit:
    """An example with its settings file, on the tests' broker."""

    def __init__(self, folder: Path, name: str, url: str) -> None:
        self._folder, self._name, self._url = folder, name, url

    def redrive(self, *arguments: str, **environment: str) -> str:
        told = ("-c", f"{self._name}.toml", *arguments)
        return redrive(self._folder, *told, REDRIVE_BROKER__URL=self._url, **environment)

    def work(self, **environment: str) -> str:
        return self.redrive("work", f"{self._name}:app", "--drain", **environment)

    def hurry(self, **durations: str) -> None:
        """Other durations in its settings, by the ones that stand there."""
        settings = self._folder / f"{self._name}.toml"
        text = settings.read_text()
        for written, instead in durations.items():
            assert f'"{written[1:]}"' in text
            text = text.replace(f'"{written[1:]}"', f'"{instead}"')
        settings.write_text(text)


def test_s3_the_checkout_on_rabbitmq_gives_up_and_is_put_back(folder: Path, rabbitmq_url: str) -> None:
    example = OnRabbit(folder, "rabbitmq_checkout", rabbitmq_url)
    example.redrive("send", "orders", '{"order_id": 123, "total": 299.90}', "--source", "checkout-service")
    assert "in the dead-letter queue after 5 attempts: Connection refused" in example.work()
    assert "Reprocessed 1 message" in example.redrive("reprocess", "--queue", "orders_dlq", "--yes")
    assert "processed order 123 from checkout-service" in example.work(DATABASE="there")


def test_s4_the_loop_goes_round_so_often_and_ends_in_limbo(folder: Path, rabbitmq_url: str) -> None:
    example = OnRabbit(folder, "rabbitmq_loop", rabbitmq_url)
    example.hurry(_10m="200ms", _3m="100ms")
    example.redrive("setup", "rabbitmq_loop:app", "--yes")
    for queue in ("sgp.frequencia.calculo", "sgp.fechamento.reabertura.notificacao.dre"):
        example.redrive("send", queue, '{"turma": 7}')
    told = example.work()
    assert (told.count("calculating 7"), told.count("notifying 7")) == (11, 4)
    example.redrive("collect", "sgp.frequencia.calculo.limbu", "--once")
    (letter,) = json.loads(example.redrive("list", "--output", "json"))
    assert (letter["queue"], letter["attempts"]) == ("sgp.frequencia.calculo", 11)


def test_s2_users_are_dead_lettered_through_the_exchange_and_put_back(folder: Path, rabbitmq_url: str) -> None:
    example = OnRabbit(folder, "rabbitmq_users", rabbitmq_url)
    example.hurry(_2s="100ms")
    assert "dlx.meajudaai" in example.redrive("setup", "rabbitmq_users:app", "--yes")
    for name in ("Ana", "", "slow"):
        example.redrive("send", "users-events", json.dumps({"user_id": 1, "name": name}))
    told = example.work()
    assert "created user 1" in told
    assert "dead letter after 1 attempts: a user needs a name" in told
    assert "dead letter after 3 attempts: the CRM does not answer" in told
    assert "Reprocessed 2 messages" in example.redrive("reprocess", "--queue", "dlq.users-events", "--yes")
    assert example.work().count("dead letter after") == 2
