"""The examples of docs/edit.md do what it says."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from redrive.edit_parsing import parse_operations
from redrive.editing import apply
from redrive.header_class import HeaderClass, header_class
from redrive.message import Message

WHEN = datetime(2026, 2, 28, 22, 53, 42, tzinfo=UTC)
PAGE = (Path(__file__).parents[2] / "docs" / "edit.md").read_text()
EXAMPLES = re.findall(r"```(edit|patch)\n(.*?)\n(.*?)\n([^\n]*)\n```", PAGE, re.DOTALL)


def _given(kind: str, text: str) -> list[tuple[str, str | bytes]]:
    if kind == "patch":
        return [("patch", text.encode())]
    words = [shlex.split(line) for line in text.splitlines()]
    return [(option.removeprefix("--"), value) for option, value in words]


@pytest.mark.parametrize(("kind", "before", "operations", "after"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_example(kind: str, before: str, operations: str, after: str) -> None:
    message = Message(id="m-1", queue="orders", body=before.encode(), sent_at=WHEN)

    assert apply(message, parse_operations(_given(kind, operations))).body == after.encode()


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == PAGE.count("```edit\n") + PAGE.count("```patch\n") > 5


@pytest.mark.parametrize("kind", [HeaderClass.LOCKED, HeaderClass.SENSITIVE])
def test_the_headers_that_it_names_are_of_the_class_it_says(kind: HeaderClass) -> None:
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| {kind} |"))
    names = re.findall(r"`([^`]+)`", row)

    assert len(names) > 5
    assert {header_class(name.replace("*", "anything")) for name in names} == {kind}
