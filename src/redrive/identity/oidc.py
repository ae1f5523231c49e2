"""An OpenID Connect provider: who its tokens speak of, and the way of a browser through it (code flow with PKCE).

Its addresses come from its discovery document, its keys from its key set; both are kept for an hour. A key that is
not known is asked for anew, but not more often than every thirty seconds, whatever tokens come in.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from redrive.access import Grant, Identity
from redrive.errors import Refused, Unreachable
from redrive.identity.claims import Expected, Unbelievable, at_path, believed, marks, usable_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redrive.clock import Clock
    from redrive.outgoing import Outgoing

KEPT_FOR = 3600.0
ASKED_EVERY = 30.0
_OK = 200
_LONGEST_NAME = 200
_MOST_KEYS = 100
_log = structlog.get_logger("redrive.identity")


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say about it."""

    issuer: str
    client_id: str
    client_secret: str = ""
    audience: str = ""
    """Whom access tokens are for. Empty: the client."""
    roles_claim: str = "realm_access.roles"
    roles: tuple[tuple[str, Grant], ...] = ()
    """What each role of the provider's grants here. Roles that are not named grant nothing."""
    name_claim: str = "sub"
    """Whatever nobody can change about themselves: approvals by a second person stand on it."""
    scopes: tuple[str, ...] = ("openid", "profile")

    def __repr__(self) -> str:
        return f"Provider({self.issuer!r})"


class SignIn(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-in that has begun: kept here while the browser is at the provider's."""

    nonce: str
    verifier: str
    redirect_uri: str
    return_to: str

    def __repr__(self) -> str:
        return "SignIn(...)"


class _Addresses(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class Oidc:
    def __init__(self, provider: Provider, outgoing: Outgoing, clock: Clock) -> None:
        self._provider = provider
        self._outgoing = outgoing
        self._clock = clock
        self._addresses: _Addresses | None = None
        self._keys: dict[str, Mapping[str, Any]] = {}
        self._fetched = float("-inf")
        self._asked = float("-inf")
        self._turn = asyncio.Lock()

    async def identify(self, token: str, *, request_id: str = "") -> Identity | None:
        """Whom the access token speaks of. None if it proves nothing or its roles grant nothing; Unreachable if
        the provider's keys are not known and cannot be had.
        """
        try:
            claims = await self._claims(token, Expected(issuer=self._provider.issuer, audience=self._audience))
            return self._identity(claims, self._granted(claims), request_id)
        except Unbelievable as error:
            _log.info("token refused", why=str(error))
            return None

    @property
    def _audience(self) -> str:
        return self._provider.audience or self._provider.client_id

    async def authorization_url(self, sign_in: SignIn, state: str) -> str:
        """Where the browser signs in."""
        addresses = await self._discovered()
        url: str = prepare_grant_uri(
            addresses.authorization_endpoint,
            client_id=self._provider.client_id,
            response_type="code",
            redirect_uri=sign_in.redirect_uri,
            scope=" ".join(self._provider.scopes),
            state=state,
            nonce=sign_in.nonce,
            code_challenge=create_s256_code_challenge(sign_in.verifier),
            code_challenge_method="S256",
        )
        return url

    async def signed_in(self, sign_in: SignIn, code: str, *, request_id: str = "") -> Identity | None:
        """Whom the provider says has signed in. None as for `identify`."""
        try:
            answer = await self._exchanged(sign_in, code)
            expected = Expected(
                issuer=self._provider.issuer, audience=self._provider.client_id, nonce=sign_in.nonce
            )
            claims = await self._claims(_text(answer, "id_token"), expected)
            return self._identity(claims, await self._granted_with(answer, claims), request_id)
        except Unbelievable as error:
            _log.info("sign-in refused", why=str(error))
            return None

    async def _exchanged(self, sign_in: SignIn, code: str) -> Mapping[str, Any]:
        addresses = await self._discovered()
        body = prepare_token_request(
            "authorization_code", code=code, redirect_uri=sign_in.redirect_uri, code_verifier=sign_in.verifier
        )
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        client = ClientAuth(self._provider.client_id, self._provider.client_secret, self._method(addresses))
        url, headers, body = client.prepare("POST", addresses.token_endpoint, headers, body)
        answer = await self._outgoing.post(url, body.encode(), headers=headers)
        if answer.status != _OK:
            raise Unbelievable("the provider gives nothing for the code")
        return _table(answer.body)

    def _method(self, addresses: _Addresses) -> str:
        if not self._provider.client_secret:
            return "none"
        basic = "client_secret_basic"
        return basic if basic in addresses.token_endpoint_auth_methods_supported else "client_secret_post"

    async def _granted_with(self, answer: Mapping[str, Any], claims: Mapping[str, Any]) -> tuple[Grant, ...]:
        """By the id token's roles; some providers name them in the access token alone."""
        if at_path(claims, self._provider.roles_claim) is not None:
            return self._granted(claims)
        expected = Expected(
            issuer=self._provider.issuer, audience=self._audience, made_for=self._provider.client_id
        )
        access = await self._claims(_text(answer, "access_token"), expected)
        if access.get("sub") != claims.get("sub"):
            raise Unbelievable("its tokens are about two people")
        return self._granted(access)

    def _granted(self, claims: Mapping[str, Any]) -> tuple[Grant, ...]:
        named = at_path(claims, self._provider.roles_claim)
        roles = named if isinstance(named, list) else [named]
        return tuple(dict.fromkeys(grant for role, grant in self._provider.roles if role in roles))

    def _identity(self, claims: Mapping[str, Any], grants: tuple[Grant, ...], request_id: str) -> Identity | None:
        name = at_path(claims, self._provider.name_claim)
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
            raise Unbelievable("it has no name that can be written down")
        if not grants:
            raise Unbelievable("its roles grant nothing here")
        return Identity(name=f"oidc:{name}", grants=grants, request_id=request_id)

    async def _claims(self, token: str, expected: Expected) -> Mapping[str, Any]:
        signature = marks(token)
        jwk = await self._key(signature.key_id)
        if jwk is None:
            raise Unbelievable("its key is not the provider's")
        key = usable_key(jwk, signature.algorithm)
        return believed(token, key, expected, algorithm=signature.algorithm, now=self._clock.now())

    async def _key(self, key_id: str) -> Mapping[str, Any] | None:
        if key_id not in self._keys or self._is_old():
            async with self._turn:  # one asks, and all who wait have the answer
                await self._refresh(key_id)
        return self._keys.get(key_id)

    def _is_old(self) -> bool:
        return self._clock.monotonic() - self._fetched >= KEPT_FOR

    async def _refresh(self, key_id: str) -> None:
        now = self._clock.monotonic()
        if (key_id in self._keys and not self._is_old()) or now - self._asked < ASKED_EVERY:
            if not self._keys:
                raise Unreachable("the identity provider's keys are not known", remedy="is it up?")
            return
        self._asked = now
        try:
            await self._fetch()
        except (Unreachable, Refused):
            _log.warning("identity provider not reached", issuer=self._provider.issuer)
            if not self._keys:
                raise
        else:
            self._fetched = now

    async def _fetch(self) -> None:
        self._addresses = None if self._is_old() else self._addresses
        answer = await self._outgoing.get((await self._discovered()).jwks_uri)
        keys = _table(answer.body).get("keys") if answer.status == _OK else None
        if not isinstance(keys, list) or len(keys) > _MOST_KEYS:
            raise Unreachable("the identity provider gives no keys")
        named = [each for each in keys if isinstance(each, dict) and isinstance(each.get("kid"), str)]
        ids = [each["kid"] for each in named]
        self._keys = {each["kid"]: each for each in named if ids.count(each["kid"]) == 1}

    async def _discovered(self) -> _Addresses:
        if self._addresses is None:
            issuer = self._provider.issuer
            answer = await self._outgoing.get(issuer.rstrip("/") + "/.well-known/openid-configuration")
            self._addresses = self._checked(answer.body if answer.status == _OK else b"")
        return self._addresses

    def _checked(self, document: bytes) -> _Addresses:
        try:
            found = msgspec.json.decode(document, type=_Addresses)
        except (msgspec.DecodeError, RecursionError):
            raise Unreachable("the identity provider has no discovery document that can be read") from None
        if found.issuer != self._provider.issuer:
            raise Unreachable(
                "the identity provider says that it is another one", remedy="write oidc.issuer exactly as it says"
            )
        for address in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
            self._outgoing.check(address)
        return found


def _table(body: bytes) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unreachable("the identity provider's answer cannot be read")
    return found


def _text(answer: Mapping[str, Any], name: str) -> str:
    found = answer.get(name)
    if not isinstance(found, str):
        raise Unbelievable(f"the provider gives no {name}")
    return found
