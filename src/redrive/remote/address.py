"""Where the server is, and what is shown to it. Neither goes where others could read it."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from redrive.errors import UsageError
from redrive.secret_text import SecretText

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TOKEN_VARIABLE = "REDRIVE_TOKEN"  # noqa: S105  the name of a variable
SERVER_VARIABLE = "REDRIVE_SERVER"
HOW_TO_GET_A_TOKEN = (
    "`redrive tokens create NAME --grant ROLE` makes one, where the store is; "
    f"give it as {TOKEN_VARIABLE} or by --token-file"
)
_LONGEST = 8192
_API = ("/api/v1", "/api")


class Server(msgspec.Struct, frozen=True):
    url: str
    """Without a slash at its end; the API is below it."""
    token: SecretText
    is_local: bool


def server_of(url: str, *, token_file: Path | None, environ: Mapping[str, str]) -> Server:
    """UsageError says what is wrong with it."""
    plain, local = _checked_url(url)
    return Server(plain, SecretText(_token(plain, token_file, environ)), local)


def _checked_url(given: str) -> tuple[str, bool]:
    try:
        parts = urlsplit(given.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _no_url(given) from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise UsageError(
            "the URL of a server has a host and a path, nothing else", remedy=f"a token goes into {TOKEN_VARIABLE}"
        )
    if parts.scheme not in {"http", "https"} or not host:
        raise _no_url(given)
    local = _is_loopback(host)
    if parts.scheme == "http" and not local:
        raise UsageError(
            f"over http://{host} the token and the letters could be read on the way",
            remedy="give an https:// URL; http is for this machine alone",
        )
    path = parts.path.rstrip("/")
    for ending in _API:
        path = path.removesuffix(ending)
    return f"{parts.scheme}://{parts.netloc}{path.rstrip('/')}", local


def _no_url(given: str) -> UsageError:
    return UsageError(f"{given!r} is no server's URL", remedy="write it like https://redrive.example.org")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _token(url: str, file: Path | None, environ: Mapping[str, str]) -> str:
    found = environ.get(TOKEN_VARIABLE, "").strip() if file is None else _read(file)
    if not found:
        raise UsageError(f"{url} wants a token, and none is given", remedy=HOW_TO_GET_A_TOKEN)
    if not (found.isascii() and found.isprintable()) or " " in found or len(found) > _LONGEST:
        raise UsageError("that is no token", remedy=f"it is one word; {HOW_TO_GET_A_TOKEN}")
    return found


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}", remedy="name a readable file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not text", remedy="it should hold the token alone") from None
