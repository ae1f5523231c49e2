"""Between a store and its PostgreSQL: cuts the line at a COMMIT, before the server has it or before its answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from support.postgres_wire import Wire


class CutCommit(Wire):
    """Lets everything pass until `cut` is called: then the next COMMIT behind a statement with that beginning is
    the last thing on its connection. The statement must be new to the connection: it is sent as text only once.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._statement: bytes | None = None
        self._reaches_server = False
        self.cuts = 0

    def cut(self, statement: str, *, reaches_server: bool) -> None:
        self._statement, self._reaches_server = statement.encode(), reaches_server

    async def _pass(
        self,
        ours: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        servers: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        (reader, writer), (there, back) = ours, servers
        committing = asyncio.Event()
        await asyncio.gather(self._up(reader, back, committing), self._down(there, writer, committing))

    async def _up(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, committing: asyncio.Event
    ) -> None:
        met = False
        with suppress(OSError):
            while data := await reader.read(65536):
                met = met or (self._statement is not None and self._statement in data)
                if met and b"COMMIT" in data:
                    self._statement, met = None, False
                    self.cuts += 1
                    committing.set()
                    if not self._reaches_server:
                        break
                back.write(data)
            back.close()

    async def _down(
        self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, committing: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while data := await there.read(65536):
                if committing.is_set():  # the answer: it is done, and nobody here hears of it
                    break
                writer.write(data)
            writer.close()
