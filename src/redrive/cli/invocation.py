"""What was said before the command (`--config`, `--server` and their like), and the way from there to the desk.

Settings, stores and transports are imported when a command asks for them, never for `--help`.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from redrive.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from redrive.actions import Actions
    from redrive.configuration import Configuration, Flag
    from redrive.desk import Desk
    from redrive.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True)
class Invocation:
    config: Path | None = None
    profile: str | None = None
    verbose: bool = False
    log_level: str | None = None
    """Wins over `verbose`."""
    server: str | None = None
    """Its URL: what people do goes through it. None: to the store itself."""
    token_file: Path | None = None

    @property
    def level(self) -> str | None:
        """Of the log, if anything was said about it here."""
        return self.log_level or ("debug" if self.verbose else None)

    def configuration(self, flags: Sequence[Flag] = ()) -> Configuration:
        """The settings and where each came from; `flags` win over all other sources."""
        from redrive.configuration import Flag, load  # noqa: PLC0415  pydantic is slow to import, --help is not

        option = "--verbose" if self.log_level is None else "--log-level"
        level = [] if self.level is None else [Flag(option, ("log", "level"), self.level)]
        return load(config=self.config, profile=self.profile, flags=(*level, *flags))


def invocation_of(ctx: typer.Context) -> Invocation:
    return ctx.obj if isinstance(ctx.obj, Invocation) else Invocation()


def goes_through_server(ctx: typer.Context) -> bool:
    return invocation_of(ctx).server is not None


def settings_of(ctx: typer.Context, flags: Sequence[Flag] = ()) -> Settings:
    """The settings, with logs set up as they say: on stderr, for stdout is for data. UsageError if the command
    was to go through a server: what needs them works on the store and the broker themselves.
    """
    from redrive.telemetry.logs import configure_logs  # noqa: PLC0415  as above

    if goes_through_server(ctx):
        raise UsageError(
            f"`{ctx.command_path}` works on the store or the broker itself, not through a server",
            remedy="leave out --server and REDRIVE_SERVER, and run it where the store is",
        )
    settings = invocation_of(ctx).configuration(flags).settings
    configure_logs(level=settings.log.level, style=settings.log.format)
    return settings


def at_desk(
    ctx: typer.Context, work: Callable[[Desk], Awaitable[T]], *, name: str | None = None, tells: bool = False
) -> T:
    """Runs `work` at the desk: through the server if one was named, else at the store, as `at_store` does."""
    if not goes_through_server(ctx):
        return at_store(ctx, work, name=name, tells=tells)
    if name is not None:
        raise UsageError(
            "through a server, you are whoever the token is for", remedy="leave out --as, or use another token"
        )
    import asyncio  # noqa: PLC0415  as above

    async def run() -> T:
        async with server_desk(ctx) as desk:
            return await work(desk)

    return asyncio.run(run())


def server_desk(ctx: typer.Context) -> AbstractAsyncContextManager[Desk]:
    """The desk of the server that was named, for the token that was given."""
    from redrive.remote.address import server_of  # noqa: PLC0415  as above
    from redrive.telemetry.logs import configure_logs  # noqa: PLC0415  as above

    given = invocation_of(ctx)
    configure_logs(level=given.level or "warning")
    server = server_of(given.server or "", token_file=given.token_file, environ=os.environ)
    try:
        from redrive.remote.desk import remote_desk  # noqa: PLC0415  as above
    except ModuleNotFoundError as missing:
        raise ConfigurationError(
            f"the package {missing.name} is not installed", remedy="pip install 'redrive[remote]'"
        ) from missing
    return remote_desk(server)


def at_store(
    ctx: typer.Context, work: Callable[[Actions], Awaitable[T]], *, name: str | None = None, tells: bool = False
) -> T:
    """Runs `work` with the Actions of the configured store and broker, and closes both behind it. `name` is who
    the person says to be; it is recorded as said by whom the operating system knows. `tells`: the command itself
    tells the person what happens, so that the log is for what goes wrong.
    """
    import asyncio  # noqa: PLC0415  as above

    from redrive.access import local  # noqa: PLC0415  as above
    from redrive.approvals import said_name  # noqa: PLC0415  as above
    from redrive.telemetry.logs import configure_logs  # noqa: PLC0415  as above
    from redrive.wiring import desk  # noqa: PLC0415  as above

    settings = settings_of(ctx)
    if tells and settings.log.level == "info" and invocation_of(ctx).level is None:
        configure_logs(level="warning", style=settings.log.format)
    by = actor() if name is None else said_name(name, actor())

    async def run() -> T:
        async with desk(settings, local(by)) as actions:
            return await work(actions)

    return asyncio.run(run())


def actor() -> str:
    """Who runs this command, by the operating system: an environment variable could name anybody."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user need not have a name
        return f"uid {os.getuid()}"
