"""Browsers on their way through an identity provider and back: an answer fits one sign-in of one browser, once."""

from __future__ import annotations

import hmac
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from redrive.access import Identity
from redrive.accounts import Purpose
from redrive.identity.oidc import SignIn
from redrive.identity.sessions import digest, new_secret

if TYPE_CHECKING:
    from redrive.accounts import AccountStore
    from redrive.clock import Clock
    from redrive.identity.oidc import Oidc

HOLDS_FOR = timedelta(minutes=10)
_LONGEST = 2048
_decoder = msgspec.json.Decoder(SignIn)


class Begun(msgspec.Struct, frozen=True):
    url: str
    """Where the browser goes."""
    state: str
    """For a cookie of this browser alone; it is asked for when the browser comes back."""


class Finished(msgspec.Struct, frozen=True):
    identity: Identity
    return_to: str
    """A path of ours."""


def local_path(text: str) -> str:
    """The path, if it leads to a page of ours and nowhere else; else our first page."""
    is_ours = text.startswith("/") and not text.startswith(("//", "/\\"))
    return text if is_ours and len(text) <= _LONGEST and text.isprintable() and "\\" not in text else "/"


class SignIns:
    def __init__(self, store: AccountStore, oidc: Oidc, clock: Clock) -> None:
        self._store = store
        self._oidc = oidc
        self._clock = clock

    async def begin(self, redirect_uri: str, return_to: str = "/") -> Begun:
        """`redirect_uri` is ours, as the provider knows it. Unreachable if the provider cannot be asked."""
        sign_in = SignIn(
            nonce=new_secret(), verifier=new_secret(), redirect_uri=redirect_uri, return_to=local_path(return_to)
        )
        state = new_secret()
        url = await self._oidc.authorization_url(sign_in, state)
        note, until = msgspec.json.encode(sign_in), self._clock.now() + HOLDS_FOR
        await self._store.add_code(digest(state) or b"", Purpose.SIGN_IN, expires_at=until, note=note)
        return Begun(url, state)

    async def finish(self, *, state: str, cookie: str, code: str, request_id: str = "") -> Finished | None:
        """Who came back, by the answer's query and the browser's cookie. None, whatever is wrong."""
        key = digest(state)
        if key is None or not hmac.compare_digest(state.encode(), cookie.encode("utf-8", "replace")):
            return None
        note = await self._store.take_code(key, Purpose.SIGN_IN)
        if note is None or not 0 < len(code) <= _LONGEST:
            return None
        sign_in = _decoder.decode(note)
        identity = await self._oidc.signed_in(sign_in, code, request_id=request_id)
        return None if identity is None else Finished(identity, sign_in.return_to)
