"""The whole desk through a server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from redrive.remote.accounts import RemoteAccounts
from redrive.remote.alerts import RemoteAlerts
from redrive.remote.groups import RemoteGroups
from redrive.remote.letters import RemoteLetters
from redrive.remote.line import Line, opened_line
from redrive.remote.runs import RemoteRuns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.remote.address import Server


class RemoteActions(RemoteLetters, RemoteGroups, RemoteRuns, RemoteAlerts, RemoteAccounts):
    """As `redrive.actions.Actions`, whose promises these are. Whoever the token is for asks."""

    def __init__(self, line: Line) -> None:
        self._line = line


@asynccontextmanager
async def remote_desk(server: Server) -> AsyncIterator[RemoteActions]:
    async with opened_line(server) as line:
        yield RemoteActions(line)
