"""The server and the console of the demonstration, beside the shop, with a link that signs in once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.settings import Settings


async def serve_console(settings: Settings, on_link: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM. On a free port if the usual one is taken."""
    try:
        await _serve(settings, on_link)
    except ConfigurationError:
        own = settings.server.model_copy(update={"port": 0})
        await _serve(settings.model_copy(update={"server": own}), on_link)


async def _serve(settings: Settings, on_link: Callable[[str], None]) -> None:
    from redrive.serving import serve  # noqa: PLC0415  its packages need not be installed

    found: list[str] = []

    def on_code(code: str) -> None:
        # Behind the `#`, so that no server, proxy or log is told the code.
        on_link(f"{found[0]}/sign-in#code={code}")

    await serve(settings, on_ready=found.append, on_code=on_code)
