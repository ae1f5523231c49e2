"""What was said before the command (`--config`, `--profile`, `--verbose`), and the way from there to the desk.

Settings, stores and transports are imported when a command asks for them, never for `--help`.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from redrive.actions import Actions
    from redrive.configuration import Configuration, Flag
    from redrive.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True)
class Invocation:
    config: Path | None = None
    profile: str | None = None
    verbose: bool = False

    def configuration(self, flags: Sequence[Flag] = ()) -> Configuration:
        """The settings and where each came from; `flags` win over all other sources."""
        from redrive.configuration import Flag, load  # noqa: PLC0415  pydantic is slow to import, --help is not

        verbose = [Flag("--verbose", ("log", "level"), "debug")] if self.verbose else []
        return load(config=self.config, profile=self.profile, flags=(*verbose, *flags))


def invocation_of(ctx: typer.Context) -> Invocation:
    return ctx.obj if isinstance(ctx.obj, Invocation) else Invocation()


def settings_of(ctx: typer.Context, flags: Sequence[Flag] = ()) -> Settings:
    """The settings, with logs set up as they say: on stderr, for stdout is for data."""
    from redrive.telemetry.logs import configure_logs  # noqa: PLC0415  as above

    settings = invocation_of(ctx).configuration(flags).settings
    configure_logs(level=settings.log.level, style=settings.log.format)
    return settings


def at_desk(
    ctx: typer.Context, work: Callable[[Actions], Awaitable[T]], *, name: str | None = None, tells: bool = False
) -> T:
    """Runs `work` with the Actions of the configured store and broker, and closes both behind it. `name` is who
    the person says to be; it is recorded as said by whom the operating system knows. `tells`: the command itself
    tells the person what happens, so that the log is for what goes wrong.
    """
    import asyncio  # noqa: PLC0415  as above

    from redrive.approvals import said_name  # noqa: PLC0415  as above
    from redrive.telemetry.logs import configure_logs  # noqa: PLC0415  as above
    from redrive.wiring import desk  # noqa: PLC0415  as above

    settings = settings_of(ctx)
    if tells and settings.log.level == "info":
        configure_logs(level="warning", style=settings.log.format)
    by = actor() if name is None else said_name(name, actor())

    async def run() -> T:
        async with desk(settings, by) as actions:
            return await work(actions)

    return asyncio.run(run())


def actor() -> str:
    """Who runs this command, by the operating system: an environment variable could name anybody."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user need not have a name
        return f"uid {os.getuid()}"
