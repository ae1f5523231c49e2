"""Ctrl-C inside an event loop: at a question it ends the command, in an editor it is the editor's."""

from __future__ import annotations

import asyncio
import signal

import pytest
import typer

from redrive.cli.changing import confirm
from redrive.cli.interrupting import interruptible, left_to_the_editor


def test_at_a_question_ctrl_c_ends_it_before_an_answer_can_count() -> None:
    answered = []

    async def ask() -> None:
        with interruptible():
            signal.raise_signal(signal.SIGINT)
            answered.append("y")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(ask())
    assert not answered


def test_confirm_asks_interruptibly(monkeypatch: pytest.MonkeyPatch) -> None:
    def ctrl_c_and_then_yes(*_: object, **__: object) -> bool:
        signal.raise_signal(signal.SIGINT)
        return True

    monkeypatch.setattr(typer, "confirm", ctrl_c_and_then_yes)
    for stream in ("sys.stdin", "sys.stderr"):
        monkeypatch.setattr(f"{stream}.isatty", lambda: True, raising=False)

    async def ask() -> None:
        confirm("Discard 1 letter?", yes=False)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(ask())


def test_in_an_editor_ctrl_c_does_not_throw_the_text_away() -> None:
    async def edit() -> str:
        with left_to_the_editor():
            signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        return "the text"

    assert asyncio.run(edit()) == "the text"


def test_afterwards_ctrl_c_does_what_it_did_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interruptible():
        pass
    assert signal.getsignal(signal.SIGINT) is before
