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
    for example in EXAMPLES.glob("*.py"):
        shutil.copy(example, tmp_path)
    return tmp_path


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"NO_COLOR": "1"},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def redrive(folder: Path, *arguments: str) -> str:
    return run(folder, "-m", "redrive", *arguments)


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
