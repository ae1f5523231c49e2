"""Settings of `redrive serve`: see `redrive.settings`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from redrive.section import Section
from redrive.setting_values import OptionalPath, Positive, QueueNames, Timeout, number, unset


def _public_url(value: Any) -> Any:
    whole = isinstance(value, str) and value.startswith(("https://", "http://")) and value.isprintable()
    if value is not None and (not whole or any(each in value for each in " @?#")):
        raise ValueError("should be a URL such as 'https://redrive.example.org', or 'none'")
    return value


class ServerSettings(Section):
    """Of `redrive serve`."""

    host: str = "127.0.0.1"
    """Another than this machine's own needs TLS, or behind_proxy."""
    port: Annotated[int, BeforeValidator(number), Field(ge=0, le=65535)] = 8642
    """0: any that is free."""
    root_path: str = ""
    """Where a proxy has it, if not at /."""
    public_url: Annotated[str | None, BeforeValidator(_public_url), BeforeValidator(unset)] = None
    """Where people reach the console, for links in alerts. None: alerts have no link."""
    behind_proxy: bool = False
    """A proxy ends TLS, and its X-Forwarded-For and X-Forwarded-Proto count."""
    trusted_proxies: QueueNames = ("127.0.0.1",)
    """Addresses and networks of such proxies."""
    tls_certificate: OptionalPath = None
    tls_key: OptionalPath = None
    engine: bool = True
    """Carry out redrive runs, automatic rules too."""
    upkeep: bool = True
    """Index letters for search, expire what is too old, forget old sessions."""
    collector: bool = True
    """Bring in dead letters of the [collector] queues, if there are any."""
    read_only: bool = False
    """Nothing can be changed through it. Needs no engine."""
    header_timeout: Timeout = 10.0
    """How long a client may take for the headers of a request, or to begin one."""
    request_timeout: Timeout = 10.0
    """How long an answer may take, its request's body included."""
    concurrency: Positive = 16
    """Requests of one identity at the same time."""
