"""A folder with an App and its settings; its workers are processes of their own, and may be killed."""

from __future__ import annotations

import json
import os
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from redrive import App
from redrive.letter_query import LetterQuery
from redrive.stores import open_store
from redrive.transports import QueueDepth, open_transport
from support.forked import REDRIVE, Forked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

    from redrive.dead_letter import DeadLetter
    from redrive.message import Message

_BEGINNING = """
import asyncio, json, os, signal, sys, threading, time
from pathlib import Path
from redrive import *

app = App("plant")

def note(*words):
    line = " ".join(map(str, words)) + "\\n"
    file = os.open("notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)
"""


class Plant:
    """`source` goes on after `app = App(...)`; what it tells by `note(...)` is in `notes()`."""

    def __init__(self, folder: Path, source: str, **sections: dict[str, Any]) -> None:
        self.folder = folder
        (folder / "plant.py").write_text(_BEGINNING + source)
        (folder / "redrive.toml").write_text("".join(_section(*each) for each in sections.items()))
        self._app = App("test")
        self._closing = AsyncExitStack()
        self.log = folder / "log"

    async def __aenter__(self) -> Self:
        self.use_store(f"sqlite:///{self.folder}/redrive.db")
        self.transport = open_transport(f"embedded:///{self.folder}/redrive-broker.db")
        self._closing.push_async_callback(self.transport.close)
        self._closing.enter_context(self._app.lent(self.transport))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._closing.aclose()

    def use_store(self, url: str) -> None:
        """Letters are looked for here from now on; the workers go by their settings."""
        self.store = open_store(url)
        self._closing.push_async_callback(self.store.close)

    @contextmanager
    def worker(self, *arguments: str, **environment: str) -> Iterator[Forked]:
        """`redrive work plant:app`, killed behind it if it still runs."""
        variables, command = {**os.environ, **environment}, ("work", "plant:app", *arguments)
        with self.log.open("ab") as log:
            files = {"stdout": log.fileno(), "stderr": log.fileno()}
            process = Forked(REDRIVE, *command, cwd=self.folder, env=variables, **files)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    async def send(self, queue: str, *data: Any) -> list[Message]:
        return [await self._app.send(queue, each) for each in data]

    async def letters(self, **which: Any) -> list[DeadLetter]:
        found = await self.store.find(LetterQuery(limit=500, **which))
        return [letter for each in found if (letter := await self.store.get(each.id))]

    async def depth(self, queue: str) -> QueueDepth:
        return (await self.transport.depths()).get(queue, QueueDepth(0, 0, 0))

    def notes(self) -> list[str]:
        notes = self.folder / "notes"
        return notes.read_text().splitlines() if notes.exists() else []

    def logged(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == event]


def _section(name: str, values: dict[str, Any]) -> str:
    return f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
