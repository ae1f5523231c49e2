"""The embedded broker, looked at: a file that is there, whole, and ours to write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from redrive.finding import ok, problem, warn
from redrive.transports.embedded import path_of
from redrive.transports.embedded_table import MEMORY
from redrive.transports.inspection import Figures, QueueFigures

if TYPE_CHECKING:
    from collections.abc import Collection

    from redrive.finding import Finding
    from redrive.transports import Transport
    from redrive.transports.inspection import Expected


class EmbeddedInspector:
    def __init__(self, url: str, transport: Transport) -> None:
        path = path_of(url)
        self._file = None if path == MEMORY else Path(path)
        self._transport = transport

    async def findings(self, expected: Expected) -> list[Finding]:  # noqa: ARG002  its queues are made on first use
        if self._file is None:
            return [warn("broker", "lives in this process alone", "name a file in broker.url")]
        if not self._file.exists():
            remedy = "`redrive send` and `redrive work` make it; if there should be one, see broker.url"
            return [warn("broker", f"there is no {self._file} yet", remedy)]
        held = sum(depth.total for depth in (await self._transport.depths()).values())
        if not os.access(self._file, os.W_OK):
            remedy = "let the user of the workers own it"
            return [problem("broker", f"{self._file} cannot be written", remedy)]
        return [ok("broker", f"{self._file} holds {held:,} message{'' if held == 1 else 's'}")]

    async def figures(
        self,
        queues: Collection[str] = (),
        *,
        known: Collection[str] = (),  # noqa: ARG002  the file knows them all
    ) -> Figures:
        if self._file is None or not self._file.exists():
            return Figures(empty_too=False)
        names = self._transport.names
        wanted = {each for name in queues for each in (name, names.retry_of(name), names.dead_of(name))}
        depths = await self._transport.depths()
        shown = (
            QueueFigures(name=name, ready=depth.ready, delayed=depth.delayed, unacked=depth.leased)
            for name, depth in sorted(depths.items())
            if not wanted or name in wanted
        )
        return Figures(queues=tuple(shown), empty_too=False)

    async def close(self) -> None:
        pass
