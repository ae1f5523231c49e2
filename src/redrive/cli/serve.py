"""`redrive serve`: the API, in one process with engine, upkeep and collector."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.cli.invocation import settings_of
from redrive.cli.option_sets import taking
from redrive.cli.outcome import ExitCode
from redrive.cli.output import note

if TYPE_CHECKING:
    from redrive.configuration import Flag
    from redrive.settings import Settings

app = typer.Typer()

_PARTS = "Parts"


def _option(*names: str, help_: str, metavar: str | None = None, panel: str | None = None) -> Any:
    return typer.Option(*names, help=help_, metavar=metavar, show_default=False, rich_help_panel=panel)


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """One field for each option, named as the setting that it overrides."""

    host: Annotated[str | None, _option("--host", help_="Listen there; 127.0.0.1 if nothing is said.")] = None
    port: Annotated[int | None, _option("--port", "-p", help_="And there; 8642 if nothing is said.")] = None
    root_path: Annotated[
        str | None, _option("--root-path", metavar="/PATH", help_="Where a proxy has it, if not at /.")
    ] = None
    behind_proxy: Annotated[
        bool | None, _option("--behind-proxy", help_="A proxy ends TLS, and tells who asks.")
    ] = None
    tls_certificate: Annotated[
        Path | None, _option("--tls-cert", metavar="FILE", help_="Serve HTTPS with it.")
    ] = None
    tls_key: Annotated[Path | None, _option("--tls-key", metavar="FILE", help_="Its key.")] = None
    read_only: Annotated[
        bool | None, _option("--read-only", help_="Only show: nothing can be changed.", panel=_PARTS)
    ] = None
    engine: Annotated[
        bool | None, _option("--engine/--no-engine", help_="Carry out redrive runs and rules.", panel=_PARTS)
    ] = None
    upkeep: Annotated[
        bool | None, _option("--upkeep/--no-upkeep", help_="Index, expire, forget sessions.", panel=_PARTS)
    ] = None
    collector: Annotated[
        bool | None,
        _option("--collector/--no-collector", help_="Collect from the queues of the settings.", panel=_PARTS),
    ] = None

    def flags(self) -> list[Flag]:
        from redrive.configuration import Flag  # noqa: PLC0415  not needed for --help

        given = asdict(self).items()
        return [
            Flag(f"--{name.replace('_', '-')}", ("server", name), value)
            for name, value in given
            if value is not None
        ]


@app.command("serve")
@taking(ServerOptions, "options")
def serve(ctx: typer.Context, options: ServerOptions) -> int:
    """Serve the HTTP API, and carry out redrive runs beside it, until Ctrl-C or SIGTERM.

    Works with no configuration at all. The first start prints a one-time code that makes whoever has it an
    administrator; `redrive tokens create` on the machine of the store does the same.
    """
    asyncio.run(_serve(settings_of(ctx, options.flags())))
    return ExitCode.OK


async def _serve(settings: Settings) -> None:
    from redrive.errors import ConfigurationError  # noqa: PLC0415  not needed for --help

    try:
        from redrive.serving import serve as serving  # noqa: PLC0415  as above
    except ModuleNotFoundError as missing:
        raise ConfigurationError(
            f"the package {missing.name} is not installed", remedy="pip install 'redrive[server]'"
        ) from missing
    await serving(settings, on_ready=_tell_ready, on_code=_tell_code)


def _tell_ready(url: str) -> None:
    note(f"The console is at {url}/. Redrive serves {url}/api/v1 (see {url}/docs). Ctrl-C ends it.")


def _tell_code(code: str) -> None:
    note(f"Nobody can sign in yet. This code makes you an administrator, once, within 15 minutes: {code}")
