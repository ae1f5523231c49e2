"""Pages that somebody reads at night: each command on them is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_lines import commands_in, parsed

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["runbooks", "metrics", "alerts", "alert-channels"])
def test_every_command_on_the_page_is_one(name: str) -> None:
    commands = commands_in((DOCS / f"{name}.md").read_text())

    assert commands
    for each in commands:
        try:
            parsed(each, in_text=True)
        except Exception as error:
            raise AssertionError(f"redrive {' '.join(each)}: {error}") from error


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("list kind:critical", "unexpected extra argument"),
        ("list -w 'knid:critical'", "knid"),
        ("runs paus ID", "No such command"),
        ("runs pause ID --now", "No such option"),
    ],
)
def test_a_command_that_is_none_is_noticed(wrong: str, told: str) -> None:
    [command] = commands_in(f"see `redrive {wrong}` first")

    with pytest.raises(Exception, match=told):
        parsed(command, in_text=True)


def test_commands_are_found_in_text_and_in_examples() -> None:
    page = "`redrive runs\nlist`\n```\nredrive stats rate   # per hour\n$ redrive groups\n```\nredrive is a word"

    assert commands_in(page) == [["runs", "list"], ["stats", "rate"], ["groups"]]
